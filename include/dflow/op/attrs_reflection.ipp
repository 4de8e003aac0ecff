#pragma once

#include <dflow/op/attrs_reflection.hpp>

namespace dflow::reflect {

void reject_attr(std::string_view field, AttrKind want, const AttrValue& got) {
  throw_error(Status::invalid_argument(
      str_cat("attribute '", field, "' must be ", attr_kind_name(want), ", got ", attr_kind_name(kind_of(got)))));
}

void reject_attr_range(std::string_view field, std::int64_t value) {
  throw_error(Status::invalid_argument(str_cat("attribute '", field, "' cannot hold ", value)));
}

void reject_attr_range(std::string_view field, double value) {
  throw_error(Status::invalid_argument(str_cat("attribute '", field, "' cannot hold ", value)));
}

std::int64_t enum_from_name(std::string_view field, std::span<const std::string_view> names, std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<std::int64_t>(i);
    known += str_cat(i == 0 ? "" : ", ", names[i]);
  }
  throw_error(Status::invalid_argument(str_cat("attribute '", field, "' is '", name, "', which is none of ", known)));
}

namespace detail {

/// Ends the object that lies behind it.
struct alignas(std::max_align_t) ObjectHead {
  void* object() noexcept { return this + 1; }
  ~ObjectHead() {
    if (destroy != nullptr) destroy(object());
  }

  void (*destroy)(void* object) noexcept = nullptr;
};

/// Allocates so many bytes more than it is asked for.
template <class T>
struct WithRoomBehind {
  using value_type = T;

  explicit WithRoomBehind(std::size_t room) noexcept : room_bytes(room) {}
  template <class U>
  explicit(false) WithRoomBehind(const WithRoomBehind<U>& other) noexcept : room_bytes(other.room_bytes) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T) + room_bytes)); }
  void deallocate(T* block, std::size_t) noexcept { ::operator delete(block); }
  friend bool operator==(const WithRoomBehind&, const WithRoomBehind&) = default;

  std::size_t room_bytes;
};

}  // namespace detail

std::shared_ptr<void> make_shared_object(std::size_t bytes, void (*construct)(void*, void*), void* from,
                                         void (*destroy)(void*) noexcept) {
  auto head = std::allocate_shared<detail::ObjectHead>(detail::WithRoomBehind<detail::ObjectHead>(bytes));
  void* object = head->object();
  construct(object, from);
  head->destroy = destroy;
  return {std::move(head), object};
}

}  // namespace dflow::reflect
