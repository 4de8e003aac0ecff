#pragma once

/// Public: Asio completion tokens for `Session::run_async` and `PreparedStep::run_async`, for sessions in this
/// process and on a cluster.
///
/// ```cpp
/// #include <dflow/net/asio.hpp>
/// asio::awaitable<void> train(df::Session& session) {
///   float value = (co_await session.run_async({{images, x}, {labels, y}}, loss, step, asio::use_awaitable)).scalar();
/// }
/// auto future = session.run_async({{images, x}}, logits, asio::use_future);  // std::future<df::Tensor<float>>
/// ```
///
/// A token gets the results of `run`: nothing, a `Tensor<T>`, or a tuple of tensors. A failed step throws its `Error`
/// out of `co_await` and `future.get()`. A handler is `void(std::exception_ptr, results...)` or `void(Status,
/// results...)`; after an error its tensors are empty.
///
/// The handler runs on its associated executor, and never inside `run_async`. The executor has outstanding work until
/// then, and its context must live until then. Without an associated executor, the handler runs where callbacks run
/// (`SessionOptions::callbacks`). A `terminal` or `partial` signal of the associated cancellation slot stops the step
/// with Cancelled, as `RunOptions::stop` does; both may be used together.
///
/// Only this header of the library needs Asio where it is used: 1.20 or later, without Boost.

#include <dflow/session/async_token.hpp>

#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/dispatch.hpp>
#include <asio/execution/blocking.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/query.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

namespace dflow::detail {

/// A step under way for an Asio handler. `First` is the handler's first argument: a Status, or an exception.
template <class Handler, class First, class... Rs>
class AsioRun : public std::enable_shared_from_this<AsioRun<Handler, First, Rs...>> {
 public:
  explicit AsioRun(Handler handler)
      : handler_(std::move(handler)),
        slot_(asio::get_associated_cancellation_slot(handler_)),
        work_(asio::make_work_guard(asio::get_associated_executor(handler_))) {}

  template <class Start>
  void begin(const std::stop_token& outer, Start& start) {
    std::stop_token stop = outer;
    if (slot_.is_connected()) {
      std::stop_source source;
      stop = source.get_token();
      if (outer.stop_possible()) outer_.emplace(outer, Stop{source});
      slot_.assign(Stop{std::move(source)});
    }
    initiator_.store(std::this_thread::get_id());
    start(stop, typed_done<std::tuple<Rs...>>([self = this->shared_from_this()](Status status, Rs... results) {
            self->end(std::move(status), std::move(results)...);
          }));
    initiator_.store(std::thread::id());
  }

 private:
  struct Stop {
    std::stop_source source;

    void operator()() { source.request_stop(); }
    void operator()(asio::cancellation_type_t type) {
      constexpr auto meant = asio::cancellation_type_t::terminal | asio::cancellation_type_t::partial;
      if ((type & meant) != asio::cancellation_type_t::none) source.request_stop();
    }
  };

  /// The call of the handler, which its executor runs.
  struct Completion {
    using executor_type = asio::associated_executor_t<Handler>;
    using allocator_type = asio::associated_allocator_t<Handler>;

    std::shared_ptr<AsioRun> run;
    std::tuple<First, Rs...> results;

    executor_type get_executor() const noexcept { return asio::get_associated_executor(run->handler_); }
    allocator_type get_allocator() const noexcept { return asio::get_associated_allocator(run->handler_); }
    void operator()() {
      run->wait_until_handed_over();
      if (run->slot_.is_connected()) run->slot_.clear();
      run->outer_.reset();
      const auto work = std::move(run->work_);
      Handler handler = std::move(run->handler_);
      run = nullptr;
      std::apply(std::move(handler), std::move(results));
    }
  };

  void end(Status status, Rs... results) {
    const auto self = this->shared_from_this();
    Completion completion{self, {first_of(std::move(status)), std::move(results)...}};
    ender_.store(std::this_thread::get_id());
    hand_over(std::move(completion));
    is_handed_over_.store(true);
    is_handed_over_.notify_all();
  }
  void hand_over(Completion completion) {
    const auto executor = asio::get_associated_executor(handler_);
    if (waits_for_what_it_runs(executor)) is_handed_over_.store(true);
    if (initiator_.load() == std::this_thread::get_id()) {
      asio::post(executor, std::move(completion));  // errors of the call show within it
    } else {
      asio::dispatch(executor, std::move(completion));
    }
  }
  template <class Executor>
  static bool waits_for_what_it_runs(const Executor& executor) {
    if constexpr (asio::can_query<Executor, asio::execution::blocking_t>::value) {
      return asio::query(executor, asio::execution::blocking) == asio::execution::blocking.always;
    } else {
      return false;
    }
  }
  /// The handler may destroy the executor's context, so this waits until the thread that handed the handler over has
  /// left the context.
  void wait_until_handed_over() const noexcept {
    if (ender_.load() != std::this_thread::get_id()) is_handed_over_.wait(false);
  }
  static First first_of(Status status) {
    if constexpr (std::is_same_v<First, Status>) {
      return status;
    } else {
      return status.ok() ? nullptr : std::make_exception_ptr(Error(std::move(status)));
    }
  }

  Handler handler_;
  asio::associated_cancellation_slot_t<Handler> slot_;
  asio::executor_work_guard<asio::associated_executor_t<Handler>> work_;
  std::optional<std::stop_callback<Stop>> outer_;
  std::atomic<std::thread::id> initiator_;
  std::atomic<std::thread::id> ender_;
  std::atomic<bool> is_handed_over_{false};
};

template <class Token, class... Rs>
struct AsyncToken<Token, std::tuple<Rs...>> {
  /// A callback that takes a Status keeps this signature with an executor; all other handlers take an exception.
  using First = std::conditional_t<takes_results<Token, std::tuple<Rs...>>, Status, std::exception_ptr>;

  template <class Start>
  static auto initiate(Token token, std::stop_token stop, Start start) {
    return asio::async_initiate<Token, void(First, Rs...)>(
        [](auto handler, const std::stop_token& outer, Start begin) {
          using Run = AsioRun<decltype(handler), First, Rs...>;
          std::make_shared<Run>(std::move(handler))->begin(outer, begin);
        },
        token, std::move(stop), std::move(start));
  }
};

}  // namespace dflow::detail
