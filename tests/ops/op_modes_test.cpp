#include "op_runner.hpp"
#include "support/proof_device.hpp"

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <map>
#include <string_view>
#include <utility>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// Ops that fail in a pool that splits all loops, each with the reason; this list should become empty.
constexpr std::array<std::pair<std::string_view, std::string_view>, 0> not_split{};

/// ThreadSanitizer finds nothing in modes with one thread, and they take it long.
#if defined(__SANITIZE_THREAD__)
constexpr bool for_races_alone = true;
#else
constexpr bool for_races_alone = false;
#endif
/// For AddressSanitizer more devices or fewer threads change nothing either, and it has kernels of one kind only.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DFLOW_TEST_ADDRESSES
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(DFLOW_TEST_ADDRESSES)
constexpr bool for_addresses_alone = true;
#else
constexpr bool for_addresses_alone = false;
#endif

struct Mode {
  std::string name;
  SessionOptions options;
  std::vector<std::string> devices = {};
  bool same_bits = true;
  bool splits_all = false;
  /// Devices are made for each session, since the cases' variables have the same names.
  std::function<std::vector<std::shared_ptr<Device>>()> make_devices = nullptr;
};

std::vector<Mode> modes() {
  std::vector<Mode> result;
  const auto add = [&](std::string name, auto&& set, bool same_bits = true, std::vector<std::string> devices = {}) {
    Mode mode{std::move(name), {}, std::move(devices), same_bits, false};
    mode.options.pool = std::make_shared<InlinePool>();
    set(mode.options);
    mode.splits_all = mode.options.pool->num_threads() > 1;
    result.push_back(std::move(mode));
  };
  // A case's tensors are small: a pool that counted the cost of a wake-up would split none of its loops.
  ThreadPoolOptions split_all;
  split_all.min_split_ns = 0;
  const auto two_threads = [=](SessionOptions& o) { o.pool = std::make_shared<WorkStealingPool>(2, split_all); };
  add("two threads", two_threads, false);
  add("two threads, reproducible", [&](SessionOptions& o) {
    two_threads(o);
    o.reproducible = true;
  });
  add("units in parallel, four threads", [=](SessionOptions& o) {
    o.pool = std::make_shared<WorkStealingPool>(4, split_all);
    o.inter_op = InterOp::parallel;
    o.reproducible = true;
  });
  if (!for_races_alone)
    add("two devices", [](SessionOptions& o) { o.num_cpu_devices = 2; }, true, {"/cpu:0", "/cpu:1"});
  const auto several_devices = [&](int count, int threads) {
    add(str_cat(count, " devices, ", threads, threads == 1 ? " thread" : " threads"),
        [=](SessionOptions& o) {
          o.num_cpu_devices = count;
          o.reproducible = true;
          if (threads > 1) o.pool = std::make_shared<WorkStealingPool>(threads, split_all);
        },
        true, {"/cpu:0", "/cpu:1", "/cpu:2", "/cpu:3"});
    result.back().devices.resize(static_cast<std::size_t>(count));
  };
  for (const int threads : {1, 4}) {
    if (threads == 1 && (for_races_alone || for_addresses_alone)) continue;
    if (!for_addresses_alone) several_devices(3, threads);
    several_devices(4, threads);
    const auto pool = threads == 1 ? std::shared_ptr<ThreadPool>(std::make_shared<InlinePool>())
                                   : std::make_shared<WorkStealingPool>(threads, split_all);
    // Strings, for which the device has no kernels, go to the CPU.
    const auto make = [pool] {
      return std::vector<std::shared_ptr<Device>>{
          std::make_shared<ProofDevice>(),
          std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = pool, .kernels = {.reproducible = true}})};
    };
    const std::string suffix = threads == 1 ? ", 1 thread" : ", 4 threads";
    add("a device with memory of its own" + suffix, [](SessionOptions&) {});
    result.back().make_devices = make;
    add("split between that device and the CPU" + suffix, [](SessionOptions&) {}, true, {"/device:PROOF:0", "/cpu:0"});
    result.back().make_devices = make;
    result.back().options.soft_placement = true;
  }
  if (for_races_alone) return result;
  add("all passes off", [](SessionOptions& o) { o.passes = PassOptions::none(); });
  if (for_addresses_alone) return result;
  const auto kernels = [&](std::string name, cpu::CpuOptions options) {
    add(
        std::move(name), [](SessionOptions&) {}, false);
    result.back().make_devices = [=] { return cpu_devices(1, {.kernels = options}); };
  };
  kernels("builtin products", {.backend = cpu::CpuBackend::builtin});
  kernels("oneDNN products", {.backend = cpu::CpuBackend::onednn});
  kernels("baseline instructions", {.max_level = CpuLevel::baseline});
  if (detect_cpu_level() > CpuLevel::x86_64_v3) kernels("x86-64-v3 instructions", {.max_level = CpuLevel::x86_64_v3});
  return result;
}

}  // namespace

TEST_CASE("threads, devices, passes and backends do not change results", "[ops]") {
  Mode plain{"one thread", {}};
  plain.options.pool = std::make_shared<InlinePool>();
  plain.options.reproducible = true;
  std::vector<Mode> others = modes();
  std::map<std::string, int> checks, failures;
  for (const OracleCase& oracle_case : oracle_cases()) {
    // The other element types go through the same code paths; the values test covers them on one thread.
    for (const DType t : {DType::float32, DType::int32, DType::bfloat16}) {
      if ((for_races_alone || for_addresses_alone) && t == DType::bfloat16) continue;
      if (std::find(oracle_case.types.begin(), oracle_case.types.end(), t) == oracle_case.types.end()) continue;
      const auto run = [&](const Mode& mode) {
        const auto built = build_case(oracle_case, t, InputsAs::known_feeds, mode.devices);
        SessionOptions options = mode.options;
        if (mode.make_devices) {
          options.devices = mode.make_devices();
          options.pool = nullptr;
        }
        Session session(built->graph, options);
        return run_case(*built, session);
      };
      try {
        const std::vector<AnyTensor> expected = run(plain);
        for (const Mode& mode : others) {
          const bool has_state = standard_op_table().find(oracle_case.op) != nullptr &&
                                 standard_op_table().find(oracle_case.op)->is_stateful;
          if (!mode.devices.empty() && has_state) continue;
          const bool is_left_out = std::any_of(not_split.begin(), not_split.end(),
                                               [&](const auto& entry) { return entry.first == oracle_case.op; });
          if (mode.splits_all && is_left_out) continue;
          ++checks[mode.name];
          std::string why;
          try {
            const std::vector<AnyTensor> got = run(mode);
            for (std::size_t o = 0; o < expected.size() && why.empty(); ++o) {
              if (bitwise_equal(got[o], expected[o])) continue;
              if (o >= oracle_case.outputs.size()) continue;
              const OracleTensor& want = oracle_case.outputs[o];
              if (mode.same_bits) {
                why = str_cat("output ", o, " differs in bits");
              } else {
                why = difference(got[o], want, want.dtype_for(t), oracle_case);
              }
            }
          } catch (const std::exception& error) {
            why = error.what();
          }
          if (!why.empty() && ++failures[mode.name] <= 5) {
            std::cout << "  " << mode.name << ": " << oracle_case.title(t) << ": " << why << '\n';
          }
        }
      } catch (const std::exception&) {
        continue;  // the values test reports it
      }
    }
  }
  for (const auto& [mode, count] : checks) {
    std::cout << "count: " << count << " checks: " << mode << ", " << failures[mode] << " failed\n";
  }
  int failed = 0;
  for (const auto& [mode, count] : failures) failed += count;
  CHECK(failed == 0);
}
