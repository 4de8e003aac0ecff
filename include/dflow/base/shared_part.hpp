#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace dflow {

/// A part that copies of a value share. Moving it copies it: the value stays of use when it was moved from.
///
/// Thread safety: as std::shared_ptr.
template <class T>
class SharedPart : public std::shared_ptr<T> {
 public:
  SharedPart() = default;
  template <class U>
    requires std::is_convertible_v<U*, T*>
  SharedPart(std::shared_ptr<U> part) noexcept : std::shared_ptr<T>(std::move(part)) {}
  SharedPart(const SharedPart&) noexcept = default;
  SharedPart& operator=(const SharedPart&) noexcept = default;
  ~SharedPart() = default;
};

}  // namespace dflow
