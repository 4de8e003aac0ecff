#include "op_runner.hpp"

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <iostream>
#include <map>

using namespace dflow;
using namespace dflow::testing;

namespace {

struct Mode {
  std::string name;
  SessionOptions options;
  std::vector<std::string> devices = {};
  bool same_bits = true;
};

std::vector<Mode> modes() {
  std::vector<Mode> result;
  const auto add = [&](std::string name, auto&& set, bool same_bits = true, std::vector<std::string> devices = {}) {
    Mode mode{std::move(name), {}, std::move(devices), same_bits};
    mode.options.pool = std::make_shared<InlinePool>();
    set(mode.options);
    result.push_back(std::move(mode));
  };
  const auto two_threads = [](SessionOptions& o) { o.pool = std::make_shared<WorkStealingPool>(2); };
  add("two threads", two_threads, false);
  add("two threads, reproducible", [&](SessionOptions& o) {
    two_threads(o);
    o.reproducible = true;
  });
  add("units in parallel, four threads", [](SessionOptions& o) {
    o.pool = std::make_shared<WorkStealingPool>(4);
    o.inter_op = InterOp::parallel;
    o.reproducible = true;
  });
  add("two devices", [](SessionOptions& o) { o.num_cpu_devices = 2; }, true, {"/cpu:0", "/cpu:1"});
  add("all passes off", [](SessionOptions& o) { o.passes = PassOptions::none(); });
  add("builtin products", [](SessionOptions& o) { o.cpu.backend = cpu::CpuBackend::builtin; }, false);
  add("oneDNN products", [](SessionOptions& o) { o.cpu.backend = cpu::CpuBackend::onednn; }, false);
  add("baseline instructions", [](SessionOptions& o) { o.cpu.max_level = CpuLevel::baseline; }, false);
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
      if (std::find(oracle_case.types.begin(), oracle_case.types.end(), t) == oracle_case.types.end()) continue;
      if (!allows(oracle_case, t)) continue;
      const auto run = [&](const Mode& mode) {
        const auto built = build_case(oracle_case, t, InputsAs::known_feeds, mode.devices);
        Session session(built->graph, mode.options);
        return run_case(*built, session);
      };
      try {
        const std::vector<AnyTensor> expected = run(plain);
        for (const Mode& mode : others) {
          const bool has_state = standard_op_table().find(oracle_case.op) != nullptr &&
                                 standard_op_table().find(oracle_case.op)->is_stateful;
          if (!mode.devices.empty() && has_state) continue;
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
                why = difference(got[o], want, want.dtype_for(t), oracle_case.tolerance_scale, oracle_case.relative);
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
