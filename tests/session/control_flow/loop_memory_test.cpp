// A loop's memory does not grow with the number of its iterations.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"
#include "support/sanitized.hpp"

#include <cstdint>
#include <fstream>
#include <string>
#include <tuple>

namespace df = dflow;

namespace {

/// The most memory that the process has had since `forget_peak`, in KiB; 0 where the system does not say.
std::int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}
bool forget_peak() { return static_cast<bool>(std::ofstream("/proc/self/clear_refs") << "5" << std::flush); }

}  // namespace

TEST_CASE("a million iterations take no more memory than a thousand, in each form, by one thread and three") {
  df::Graph graph;
  const auto n = df::placeholder<std::int32_t>(graph, {});
  const auto x = df::placeholder<float>(graph, {64, 64});
  const auto counted =
      df::while_loop([&](auto i) { return i < n; }, [](auto i) { return i + 1; }, df::constant(graph, 0));
  const auto [i, state] = df::while_loop([&](auto i, auto) { return i < n; },
                                         [&](auto i, auto v) {
                                           return std::tuple{i + 1, v * 0.5f + x};
                                         },
                                         std::tuple{df::constant(graph, 0), x});
  const auto last = df::reduce_max(state);
  const int num_threads = GENERATE(1, 3);
  df::Session session(graph, {.num_threads = num_threads, .passes = df::testing::each_form()});
  const df::Tensor<float> ones = df::Tensor<float>::full({64, 64}, 1.0f);
  const auto count_to = [&](std::int32_t limit) {
    CHECK(session.run({{n, df::Tensor<std::int32_t>(limit)}}, counted).scalar() == limit);
  };
  const auto converge_in = [&](std::int32_t limit) {
    CHECK(session.run({{n, df::Tensor<std::int32_t>(limit)}, {x, ones}}, last).scalar() == Approx(2));
  };
  count_to(1'000);
  converge_in(1'000);
  // With a sanitizer memory that was freed is not there again at once.
  if (df::testing::is_sanitized || !forget_peak()) return;
  const std::int64_t before = peak_memory();
  REQUIRE(before > 0);
  count_to(1'000'000);
  converge_in(50'000);  // whose states would be 800 MB
  CHECK(peak_memory() - before < 4096);
}

TEST_CASE("what the gradient of a loop keeps takes the memory that the loop says") {
  df::Graph graph;
  const auto n = df::placeholder<std::int32_t>(graph, {});
  const auto x = df::placeholder<float>(graph, {128, 128});
  const auto [i, state] = df::while_loop([&](auto i, auto) { return i < n; },
                                         [&](auto i, auto v) {
                                           return std::tuple{i + 1, df::tanh(v + x)};
                                         },
                                         std::tuple{df::constant(graph, 0), x}, {.max_kept_bytes = 1 << 22});
  const auto dx = df::reduce_max(df::gradients(df::reduce_sum(state), x));
  df::Session session(graph, {.num_threads = GENERATE(1, 3)});
  const auto run = [&](std::int32_t iterations) {
    return session.run({{n, df::Tensor<std::int32_t>(iterations)}, {x, df::Tensor<float>::full({128, 128}, 0.01f)}}, dx)
        .scalar();
  };
  CHECK(run(100) > 0);
  if (df::testing::is_sanitized || !forget_peak()) return;
  const std::int64_t before = peak_memory();
  REQUIRE(before > 0);
  CHECK(run(2'000) > 0);  // which keep 131 MB
  CHECK(peak_memory() - before < 8192);
}
