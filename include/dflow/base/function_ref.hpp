#pragma once

#include <type_traits>
#include <utility>

namespace dflow {

template <class Signature>
class FunctionRef;

/// A callable that is only borrowed for the duration of a call: two words, no allocation. It does not own: bind it to a
/// parameter, never to a member that outlives the callable.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F&, Args...>)
  FunctionRef(F&& f) noexcept {
    using Callable = std::remove_reference_t<F>;
    if constexpr (std::is_function_v<Callable>) {
      target_.function = reinterpret_cast<void (*)()>(&f);
      call_ = [](Target target, Args... args) -> R {
        return static_cast<R>(reinterpret_cast<Callable*>(target.function)(std::forward<Args>(args)...));
      };
    } else {
      target_.object = const_cast<void*>(static_cast<const volatile void*>(&f));
      call_ = [](Target target, Args... args) -> R {
        return static_cast<R>((*static_cast<Callable*>(target.object))(std::forward<Args>(args)...));
      };
    }
  }

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  union Target {
    void* object;
    void (*function)();
  };

  Target target_;
  R (*call_)(Target, Args...);
};

}  // namespace dflow
