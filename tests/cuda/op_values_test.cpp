#include "cuda/gpu_that_is_none.hpp"

#include "ops/op_runner.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/kernels/cuda/standard_kernels.hpp>

#include <iostream>
#include <set>
#include <utility>

using namespace dflow;
using namespace dflow::testing;

namespace {

bool has_gpu_kernel(const OracleCase& oracle_case, DType t) {
  const KernelEntry* entry = standard_cuda_kernels().find(oracle_case.op);
  TypeArgs types;
  types.push_back(t);
  return entry != nullptr && entry->op->role == OpRole::ordinary && entry->supports_types(types);
}

}  // namespace

TEST_CASE("kernels of a GPU, run by an emulated grid, give the values of TensorFlow and NumPy", "[cuda]") {
  std::set<std::pair<std::string, DType>> kernels;
  int checks = 0, failed = 0, refused = 0;
  for (const OracleCase& oracle_case : oracle_cases()) {
    for (const DType t : oracle_case.types) {
      if (!has_gpu_kernel(oracle_case, t)) continue;
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = static_cast<std::uint64_t>(checks)});
      std::string why;
      {
        const auto built = build_case(oracle_case, t, InputsAs::feeds);
        Session session(built->graph, {.devices = gpus_and_cpu(driver), .passes = PassOptions::none()});
        try {
          const std::vector<AnyTensor> got = run_case(*built, session);
          for (std::size_t o = 0; o < oracle_case.outputs.size() && why.empty(); ++o) {
            const OracleTensor& want = oracle_case.outputs[o];
            why = difference(got[o], want, want.dtype_for(t), oracle_case);
          }
        } catch (const Error& error) {
          // The only convolutions that a GPU says it does not compute.
          const bool is_of_groups = contains(std::string(error.status().message()), "groups");
          const bool is_refused = error.status().code() == Code::unimplemented && is_of_groups;
          is_refused ? void(++refused) : void(why = error.what());
        }
      }
      ++checks;
      if (!driver->launches().empty()) kernels.insert({oracle_case.op, t});
      check_end(*driver);
      if (!why.empty() && ++failed <= 10) std::cout << "  " << oracle_case.title(t) << ": " << why << '\n';
    }
  }
  std::cout << "count: " << checks << " checks of " << kernels.size() << " kernels of a GPU by an emulated grid, "
            << refused << " refused\n";
  CHECK(failed == 0);
  CHECK(kernels.size() > 300);
}
