#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/session/feed.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow::detail {

/// The result of a step that nobody waits for: its status and one tensor per fetched edge, none after an error.
using AnyDone = UniqueFunction<void(Status, std::vector<AnyTensor>)>;

/// A token that names an executor, an allocator or a slot to be cancelled by, as Asio's tokens may.
template <class Token>
concept Associated = requires { typename Token::executor_type; } || requires { typename Token::allocator_type; } ||
                     requires { typename Token::cancellation_slot_type; };

template <class Done, class Results>
inline constexpr bool takes_results = false;
template <class Done, class... Rs>
inline constexpr bool takes_results<Done, std::tuple<Rs...>> = requires(Done& done) {
  { done(std::declval<Status>(), std::declval<Rs>()...) } -> std::same_as<void>;
};

/// `void(Status, results...)`, callable and without further requirements.
template <class Done, class Results>
concept AsyncCallback = takes_results<Done, Results> && !Associated<Done>;

/// How `run_async` begins a step for any other token and what it returns: `initiate(token, stop, start)`, where
/// `start(stop, AnyDone)` begins it. Partial specialisations are in <dflow/net/asio.hpp>.
template <class Token, class Results>
struct AsyncToken {
  static_assert(never<Token>,
                "run_async(feeds, fetches..., done): the callback comes last, returns nothing and takes a Status and a "
                "Tensor<T> for each edge that is fetched; for a completion token of Asio include <dflow/net/asio.hpp>");
};

template <class Tuple, class Done, std::size_t... I>
void deliver(Done& done, Status status, std::vector<AnyTensor>& tensors, std::index_sequence<I...>) {
  if (status.ok()) {
    done(std::move(status), typed_result<Tuple, I>(tensors.data())...);
  } else {
    done(std::move(status), std::tuple_element_t<I, Tuple>()...);
  }
}

/// Gives `done` the tensors with their types; after an error empty ones.
template <class Results, class Done>
AnyDone typed_done(Done done) {
  if constexpr (std::is_constructible_v<bool, const Done&> && !std::is_empty_v<Done>) {
    if (!static_cast<bool>(done)) return nullptr;  // an empty function
  }
  return [done = std::move(done)](Status status, std::vector<AnyTensor> tensors) mutable {
    tensors.resize(EdgesOfResults<Results>::all);
    deliver<Results>(done, std::move(status), tensors, std::make_index_sequence<std::tuple_size_v<Results>>{});
  };
}

/// Calls `f(last, others...)` from arguments in the order others, last: only a pack at the end of a call is deduced.
template <class F, class... Args>
decltype(auto) last_first(F&& f, Args&&... args) {
  using All = std::tuple<Args&&...>;
  All all(std::forward<Args>(args)...);
  constexpr std::size_t last = sizeof...(Args) - 1;
  return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
    return f(std::forward<std::tuple_element_t<last, All>>(std::get<last>(all)), std::get<I>(all)...);
  }(std::make_index_sequence<last>{});
}

}  // namespace dflow::detail
