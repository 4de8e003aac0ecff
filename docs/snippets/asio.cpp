// The snippets of docs/distributed.md for <dflow/net/asio.hpp>.

#include <dflow/dflow.hpp>
#include <dflow/net/asio.hpp>

#include <asio/io_context.hpp>
#include <asio/use_future.hpp>

#include <future>

#if defined(ASIO_HAS_CO_AWAIT)  // not where Asio does not know the compiler's coroutines
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/use_awaitable.hpp>

namespace df = dflow;

int main() {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = x * 2.0f + 1.0f;
  df::Session session(graph);
  // [awaited]
  const auto thrice = [&](float value) -> asio::awaitable<float> {
    for (int i = 0; i < 3; ++i) value = (co_await session.run_async({{x, value}}, y, asio::use_awaitable)).scalar();
    co_return value;
  };
  asio::io_context context;
  std::future<float> result = asio::co_spawn(context, thrice(1), asio::use_future);
  context.run();  // the coroutine runs here, its steps on the session's threads
  // [awaited]
  return result.get() == 15 ? 0 : 1;
}
#else
int main() { return 0; }
#endif
