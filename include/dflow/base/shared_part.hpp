#pragma once

#include <memory>
#include <utility>

namespace dflow {

/// A part that values share and none changes. Moving it copies it: who holds one stays of use when it was moved from.
///
/// Thread safety: as std::shared_ptr.
template <class T>
class SharedPart : public std::shared_ptr<T> {
 public:
  SharedPart() = default;
  SharedPart(std::shared_ptr<T> part) noexcept : std::shared_ptr<T>(std::move(part)) {}
  SharedPart(const SharedPart&) noexcept = default;
  SharedPart& operator=(const SharedPart&) noexcept = default;
  ~SharedPart() = default;
};

}  // namespace dflow
