// Compiles chains with NVRTC for GPUs that are not there: machine code of each op and element type, and PTX for GPUs
// that NVRTC does not know.
#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/chains/chain_text.hpp>
#include <dflow/kernels/cuda/driver/nvrtc_programs.hpp>
#include <dflow/kernels/cuda/standard_kernels.hpp>

#include "catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::cuda;

namespace {

constexpr std::array<int, 6> capabilities{75, 80, 86, 89, 90, 100};

/// All ops of a table that allow the element type, as one chain. Each op is an output.
ChainForm chain_of_all(const KernelTable& table, DType dtype) {
  ChainForm form;
  form.inputs = {dtype, dtype, dtype, DType::boolean};
  form.broadcasts = true;
  table.for_each([&](const KernelEntry& entry) {
    const int num_inputs =
        entry.op->inputs.size() == 1 && entry.op->inputs[0].is_list() ? 3 : static_cast<int>(entry.op->inputs.size());
    const Formula* const formula = entry.formula == nullptr ? nullptr : entry.formula(num_inputs);
    if (formula == nullptr || !formula->holds_for(dtype) || !entry.op->type_params[0].allows(dtype)) return;
    for (const DType second : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::boolean,
                               DType::int8, DType::int32, DType::int64, DType::uint8, DType::uint64}) {
      const bool is_cast = entry.op->type_params.size() == 2;
      ChainMember member{formula, dtype, is_cast ? second : formula->gives_truth ? DType::boolean : dtype, {}};
      for (int i = 0; i < num_inputs; ++i)
        member.reads.push_back(entry.op->name == "Select" ? (i == 0 ? 3 : i - 1) : i);
      form.gives.push_back(static_cast<std::int32_t>(form.members.size()));
      form.members.push_back(std::move(member));
      if (!is_cast) break;
    }
  });
  return form;
}

}  // namespace

TEST_CASE("NVRTC makes machine code of every op and element type that goes into chains", "[gpu]") {
  Programs* const nvrtc = nvrtc_programs();
  REQUIRE(nvrtc != nullptr);
  const KernelTable table = standard_cuda_kernels();
  std::size_t compiled = 0, bytes = 0;
  for (const DType dtype :
       {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::boolean, DType::int8, DType::int16,
        DType::int32, DType::int64, DType::uint8, DType::uint16, DType::uint32, DType::uint64}) {
    const ChainForm form = chain_of_all(table, dtype);
    const std::string text = chain_text(form);
    for (const int capability : capabilities) {
      INFO(dtype_name(dtype) << " for " << capability);
      std::string image, log;
      REQUIRE(nvrtc->compile(text, capability, image, log) == ErrorCode::ok);
      CHECK(image.substr(1, 3) == "ELF");
      CHECK(image.find(dense_chain) != std::string::npos);
      CHECK(image.find(broadcast_chain) != std::string::npos);
      compiled += form.members.size();
      bytes += image.size();
    }
  }
  std::cout << "count: " << compiled << " ops in chains, element types and kinds of GPUs compiled by NVRTC, to "
            << bytes << " bytes\n";
  CHECK(compiled > 2000);
}

TEST_CASE("for a GPU that NVRTC does not know it makes PTX, and of what is no text of a chain it says why", "[gpu]") {
  Programs* const nvrtc = nvrtc_programs();
  const KernelTable table = standard_cuda_kernels();
  const std::string text = chain_text(chain_of_all(table, DType::boolean));
  std::string image, log;
  REQUIRE(nvrtc->compile(text, 999, image, log) == ErrorCode::ok);
  CHECK(image.find(".entry chain_dense") != std::string::npos);
  CHECK(nvrtc->compile(text, 20, image, log) == ErrorCode::not_supported);
  CHECK_THAT(log, Catch::Matchers::Contains("compute capability 2.0"));
  CHECK(nvrtc->compile("no text", 90, image, log) == ErrorCode::not_supported);
  CHECK_THAT(log, Catch::Matchers::Contains("chain.cu(1)"));
}

TEST_CASE("a chain adds and multiplies without contraction, as the ops' own kernels do", "[gpu]") {
  const KernelTable table = standard_cuda_kernels();
  const Formula* const mul = table.find("Mul")->formula(2);
  const Formula* const add = table.find("Add")->formula(2);
  ChainForm form;
  form.inputs = {DType::float32, DType::float32};
  form.members = {{mul, DType::float32, DType::float32, {0, 1}}, {add, DType::float32, DType::float32, {2, 0}}};
  form.gives = {1};
  std::string image, log;
  REQUIRE(nvrtc_programs()->compile(chain_text(form), 999, image, log) == ErrorCode::ok);
  CHECK(image.find("mul.rn.f32") != std::string::npos);
  CHECK(image.find("add.rn.f32") != std::string::npos);
  CHECK(image.find("fma.rn.f32") == std::string::npos);
}
