#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/unique_function.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace dflow {

/// A callback for asynchronous work: the work calls it at its end, with ok or with its error.
///
/// Single shot: the first call counts, later ones do nothing. Dropped without a call it reports Internal, so nobody
/// waits for forgotten work.
///
/// Thread safety: one thread at a time.
class Completion {
 public:
  Completion() noexcept = default;
  Completion(std::nullptr_t) noexcept {}
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Completion> && std::invocable<std::decay_t<F>&, Status>)
  Completion(F&& finish) : finish_(std::forward<F>(finish)) {}
  Completion(Completion&&) noexcept = default;
  Completion& operator=(Completion&& other) noexcept {
    UniqueFunction<void(Status)> old = std::exchange(finish_, std::exchange(other.finish_, nullptr));
    drop(old);
    return *this;
  }
  Completion& operator=(std::nullptr_t) noexcept { return *this = Completion(); }
  ~Completion() { drop(finish_); }

  explicit operator bool() const noexcept { return static_cast<bool>(finish_); }
  void operator()(Status status) {
    if (UniqueFunction<void(Status)> finish = std::exchange(finish_, nullptr)) finish(std::move(status));
  }

  /// The status that a dropped completion reports.
  static Status dropped();
  static bool was_dropped(const Status& status);

 private:
  static void drop(UniqueFunction<void(Status)>& finish) noexcept;

  UniqueFunction<void(Status)> finish_;
};

}  // namespace dflow
