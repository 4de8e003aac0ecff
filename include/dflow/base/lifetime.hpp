#pragma once

#include <memory>
#include <utility>

namespace dflow {

namespace detail {
struct LifetimeCell;
/// Until `leave`, the object of the cell cannot end. Returns false, and there is nothing to leave, if it has ended.
bool enter_lifetime(LifetimeCell& cell) noexcept;
void leave_lifetime(LifetimeCell& cell) noexcept;
bool is_lifetime_over(LifetimeCell& cell) noexcept;
}  // namespace detail

/// A member of an object that others refer to without owning it. It tells a `Reference` when the object is gone.
/// Declare it last, so that it ends before the rest of the object. A copy or a move of the object begins a lifetime of
/// its own.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) noexcept {}
  Lifetime& operator=(const Lifetime&) noexcept { return *this; }
  ~Lifetime() {
    if (cell_ != nullptr) end();
  }

 private:
  template <class T>
  friend class Reference;
  void begin();
  void end() noexcept;

  std::shared_ptr<detail::LifetimeCell> cell_;  ///< null before the first reference
};

/// Refers to an object that has a `Lifetime`, and knows whether the object is gone.
///
/// Thread safety: a value type. Making the first reference to an object needs the lock of the object's owner.
template <class T>
class Reference {
 public:
  Reference() = default;
  /// Precondition: `lifetime` is a member of `object`.
  Reference(T& object, Lifetime& lifetime) : object_(&object) {
    lifetime.begin();
    cell_ = lifetime.cell_;
  }

  bool is_empty() const noexcept { return object_ == nullptr; }
  /// Null if it is empty or the object is gone.
  T* get() const noexcept { return cell_ == nullptr || detail::is_lifetime_over(*cell_) ? nullptr : object_; }
  /// Calls `use(object)`, which must not throw, unless the object is gone. If another thread destroys the object, it
  /// waits until `use` has returned.
  template <class Use>
  void with(Use&& use) const noexcept {
    if (cell_ == nullptr || !detail::enter_lifetime(*cell_)) return;
    std::forward<Use>(use)(*object_);
    detail::leave_lifetime(*cell_);
  }

 private:
  T* object_ = nullptr;
  std::shared_ptr<detail::LifetimeCell> cell_;
};

}  // namespace dflow
