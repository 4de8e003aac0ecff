#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace dflow {

template <class Signature>
class UniqueFunction;

/// A callable that is owned and only moves: may hold promises, buffers, other UniqueFunctions. Callables of up to 48
/// bytes that move without throwing are stored inside, so scheduling one allocates nothing.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  static constexpr std::size_t inline_bytes = 48;

  UniqueFunction() noexcept = default;
  UniqueFunction(std::nullptr_t) noexcept {}
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, UniqueFunction> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  UniqueFunction(F&& f) {
    using Stored = std::decay_t<F>;
    if constexpr (fits_inline<Stored>) {
      ::new (static_cast<void*>(storage_)) Stored(std::forward<F>(f));
      call_ = [](void* storage, Args... args) -> R {
        return static_cast<R>((*std::launder(static_cast<Stored*>(storage)))(std::forward<Args>(args)...));
      };
      if constexpr (!(std::is_trivially_copyable_v<Stored> && std::is_trivially_destructible_v<Stored>)) {
        manage_ = [](void* from, void* to) noexcept {
          Stored* stored = std::launder(static_cast<Stored*>(from));
          if (to != nullptr) ::new (to) Stored(std::move(*stored));
          stored->~Stored();
        };
      }
    } else {
      ::new (static_cast<void*>(storage_)) Stored*(new Stored(std::forward<F>(f)));
      call_ = [](void* storage, Args... args) -> R {
        return static_cast<R>((**std::launder(static_cast<Stored**>(storage)))(std::forward<Args>(args)...));
      };
      manage_ = [](void* from, void* to) noexcept {
        Stored* stored = *std::launder(static_cast<Stored**>(from));
        if (to != nullptr) {
          ::new (to) Stored*(stored);
        } else {
          delete stored;
        }
      };
    }
  }

  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  UniqueFunction& operator=(std::nullptr_t) noexcept {
    reset();
    return *this;
  }
  ~UniqueFunction() { reset(); }

  explicit operator bool() const noexcept { return call_ != nullptr; }

  /// Calls the stored function. Calling an empty function is a bug.
  R operator()(Args... args) { return call_(storage_, std::forward<Args>(args)...); }

 private:
  template <class Stored>
  static constexpr bool fits_inline = sizeof(Stored) <= inline_bytes && alignof(Stored) <= alignof(std::max_align_t) &&
                                      std::is_nothrow_move_constructible_v<Stored>;

  void take(UniqueFunction& other) noexcept {
    if (other.manage_ != nullptr) {
      other.manage_(other.storage_, storage_);
    } else {
      std::memcpy(storage_, other.storage_, inline_bytes);
    }
    call_ = std::exchange(other.call_, nullptr);
    manage_ = std::exchange(other.manage_, nullptr);
  }
  void reset() noexcept {
    call_ = nullptr;
    if (auto* manage = std::exchange(manage_, nullptr)) manage(storage_, nullptr);
  }

  alignas(std::max_align_t) std::byte storage_[inline_bytes];
  R (*call_)(void* storage, Args... args) = nullptr;
  /// Moves the function at `from` to `to`, or destroys it if `to` is null. Null if a plain copy of bytes moves the
  /// function.
  void (*manage_)(void* from, void* to) noexcept = nullptr;
};

/// A piece of work for a pool. It must not throw: an exception that leaves it ends the process.
using Task = UniqueFunction<void()>;

}  // namespace dflow
