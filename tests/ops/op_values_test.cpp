#include "op_runner.hpp"

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <iostream>
#include <map>
#include <set>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// One session for many graphs would mix them up, so each case gets its own, on one shared pool and allocator.
SessionOptions quiet_options(int threads = 1) {
  static const auto inline_pool = std::make_shared<InlinePool>();
  SessionOptions options;
  if (threads == 1) options.pool = inline_pool;
  options.num_threads = threads;
  return options;
}

struct Tally {
  std::set<std::string> ops;
  std::map<std::string, int> failures;
  int checks = 0;

  void fail(const OracleCase& oracle_case, DType t, const std::string& why) {
    if (++failures[oracle_case.op] <= 3) std::cout << "  " << oracle_case.title(t) << ": " << why << '\n';
  }
  int num_failures() const {
    int sum = 0;
    for (const auto& [op, count] : failures) sum += count;
    return sum;
  }
};

void check_values(InputsAs inputs_as, Tally& tally) {
  for (const OracleCase& oracle_case : oracle_cases()) {
    for (const DType t : oracle_case.types) {
      tally.ops.insert(oracle_case.op);
      ++tally.checks;
      try {
        const auto built = build_case(oracle_case, t, inputs_as);
        Session session(built->graph, quiet_options());
        const std::vector<AnyTensor> results = run_case(*built, session);
        if (results.size() < oracle_case.outputs.size() && !results.empty()) {
          tally.fail(oracle_case, t, str_cat("has ", results.size(), " outputs"));
          continue;
        }
        for (std::size_t o = 0; o < results.size() && o < oracle_case.outputs.size(); ++o) {
          const OracleTensor& want = oracle_case.outputs[o];
          const std::string why = difference(results[o], want, want.dtype_for(t), oracle_case);
          if (!why.empty()) {
            tally.fail(oracle_case, t, str_cat("output ", o, ": ", why));
            break;
          }
        }
      } catch (const std::exception& error) {
        tally.fail(oracle_case, t, error.what());
      }
    }
  }
}

}  // namespace

TEST_CASE("every op agrees with its oracle for every element type, fed", "[ops]") {
  Tally tally;
  check_values(InputsAs::feeds, tally);
  std::cout << "count: " << tally.ops.size() << " ops, " << tally.checks << " value checks fed, "
            << tally.num_failures() << " failed\n";
  for (const auto& [op, count] : tally.failures) std::cout << "  " << op << ": " << count << " failed\n";
  CHECK(tally.num_failures() == 0);
}

#if !defined(__SANITIZE_THREAD__)  // what is folded is computed on one thread, and has been above
TEST_CASE("every op agrees with its oracle for every element type, on constants", "[ops]") {
  Tally tally;
  check_values(InputsAs::constants, tally);
  std::cout << "count: " << tally.ops.size() << " ops, " << tally.checks << " value checks on constants, "
            << tally.num_failures() << " failed\n";
  for (const auto& [op, count] : tally.failures) std::cout << "  " << op << ": " << count << " failed\n";
  CHECK(tally.num_failures() == 0);
}
#endif

TEST_CASE("bad input to an op is an error with the right code", "[ops]") {
  Tally tally;
  for (const OracleCase& oracle_case : oracle_errors()) {
    const auto modes = oracle_case.when == "build" ? std::vector{InputsAs::constants, InputsAs::known_feeds}
                                                   : std::vector{InputsAs::constants, InputsAs::feeds};
    for (const InputsAs inputs_as : modes) {
      tally.ops.insert(oracle_case.op);
      ++tally.checks;
      bool is_built = false;
      try {
        const auto built = build_case(oracle_case, oracle_case.types[0], inputs_as);
        is_built = true;
        if (oracle_case.when == "build") {
          tally.fail(oracle_case, oracle_case.types[0], "was built");
          continue;
        }
        Session session(built->graph, quiet_options());
        run_case(*built, session);
        tally.fail(oracle_case, oracle_case.types[0], "ran");
      } catch (const Error& error) {
        const std::string text = error.what();
        if (code_name(error.code()) != oracle_case.code || text.find(oracle_case.match) == std::string::npos) {
          tally.fail(oracle_case, oracle_case.types[0], str_cat(is_built ? "run: " : "build: ", text));
        }
      } catch (const std::exception& error) {
        tally.fail(oracle_case, oracle_case.types[0], str_cat("not a dflow error: ", error.what()));
      }
    }
  }
  std::cout << "count: " << tally.ops.size() << " ops, " << tally.checks << " checks of bad input, "
            << tally.num_failures() << " failed\n";
  for (const auto& [op, count] : tally.failures) std::cout << "  " << op << ": " << count << " failed\n";
  CHECK(tally.num_failures() == 0);
}
