// Every op that goes into chains, for every element type: the text that is made of it, compiled for the host, beside
// its own kernel on the emulated grid.
#include "cuda/chains/chain_beside.hpp"

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/kernels/cuda/chains/chain_text.hpp>
#include <dflow/kernels/cuda/standard_kernels.hpp>

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <source_location>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::testing;
using cuda::ChainForm;
using cuda::ChainMember;

namespace {

constexpr std::array<DType, 13> chained_types{
    DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::boolean, DType::int8,  DType::int16,
    DType::int32,   DType::int64,   DType::uint8,   DType::uint16,   DType::uint32,  DType::uint64};

template <class T>
std::vector<T> special_elements() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::same_as<T, bool>) {
    return {false, true};
  } else if constexpr (std::integral<T>) {
    std::vector<T> all{0,
                       1,
                       2,
                       3,
                       7,
                       100,
                       Limits::max(),
                       Limits::min(),
                       static_cast<T>(Limits::max() - 1),
                       static_cast<T>(Limits::max() / 2),
                       static_cast<T>(Limits::min() / 3)};
    if constexpr (std::is_signed_v<T>) all.insert(all.end(), {T(-1), T(-2), T(-77)});
    return all;
  } else {
    std::vector<T> all{T(0),     T(-0.0f), T(1),     T(-1),   T(0.5f),  T(-0.5f),  T(2),
                       T(3.25f), T(-7.5f), T(1.5f),  T(2.5f), T(-2.5f), T(0.001f), T(1e-6f),
                       T(20.0f), T(-20),   T(60000), T(-300), T(0.1f)};
    for (const T each : {Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(), Limits::denorm_min()}) {
      all.push_back(each);
      all.push_back(static_cast<T>(-each));
    }
    return all;
  }
}

/// Three tensors: all pairs of special elements in the first two, with random ones behind them.
template <class T>
std::array<AnyTensor, 3> special_inputs() {
  const std::vector<T> special = special_elements<T>();
  std::mt19937_64 random(5);
  std::array<std::vector<T>, 3> columns;
  const auto pick = [&] { return static_cast<T>(special[random() % special.size()]); };
  for (const T a : special) {
    for (const T b : special) {
      columns[0].push_back(a);
      columns[1].push_back(b);
      columns[2].push_back(pick());
    }
  }
  std::normal_distribution<float> normal(0, 3);
  for (int i = 0; i < 200; ++i) {
    for (auto& column : columns) {
      if constexpr (std::same_as<T, bool>) {
        column.push_back(pick());
      } else if constexpr (std::integral<T>) {
        column.push_back(static_cast<T>(random()));
      } else {
        column.push_back(static_cast<T>(normal(random)));
      }
    }
  }
  std::array<AnyTensor, 3> inputs;
  for (std::size_t k = 0; k < 3; ++k) {
    Tensor<T> tensor(Shape{static_cast<std::int64_t>(columns[k].size())});
    std::copy(columns[k].begin(), columns[k].end(), tensor.data());
    inputs[k] = std::move(tensor);
  }
  return inputs;
}

std::array<AnyTensor, 3> special_inputs_of(DType dtype) {
  std::array<AnyTensor, 3> inputs;
  const auto make = [&]<class... Ts>(TypeList<Ts...>) {
    static_cast<void>(((dtype == dtype_of<Ts> && (inputs = special_inputs<Ts>(), true)) || ...));
  };
  make(concat_t<RealTypes, TypeList<bool>>{});
  return inputs;
}

/// One op for one choice of its element types, as a member of a chain and as a node of a graph.
struct MemberCase {
  const KernelEntry* entry = nullptr;
  const Formula* formula = nullptr;
  TypeArgs types;
  int num_inputs = 1;
};

/// The cases with `dtype` as first element type.
std::vector<MemberCase> member_cases(const KernelTable& table, DType dtype) {
  std::vector<MemberCase> cases;
  table.for_each([&](const KernelEntry& entry) {
    if (entry.formula == nullptr) return;
    const std::span<const ArgDef> inputs = entry.op->inputs;
    const int num_inputs = inputs.size() == 1 && inputs[0].is_list() ? 3 : static_cast<int>(inputs.size());
    const Formula* const formula = entry.formula(num_inputs);
    if (formula == nullptr || !formula->holds_for(dtype)) return;
    for (const DType second : chained_types) {
      MemberCase each{&entry, formula, {}, num_inputs};
      each.types.push_back(dtype);
      if (entry.op->type_params.size() == 2) each.types.push_back(second);
      if (entry.op->type_params[0].allows(dtype) && entry.supports_types(each.types)) cases.push_back(each);
      if (each.types.size == 1) break;
    }
  });
  return cases;
}

/// The op's node on the inputs that its formula reads; inputs of its element type come first.
AnyOutput append_member(Graph& graph, const MemberCase& each, std::span<const AnyOutput> inputs) {
  NodeRequest request;
  request.op = each.entry->op;
  request.inputs = inputs;
  request.types = each.types;
  request.where = std::source_location::current();
  return AnyOutput(graph.store(), {append_node(*graph.store(), request), 0});
}

}  // namespace

TEST_CASE("each op in a chain has the bits of its own kernel, for every element type", "[cuda]") {
  int checks = 0;
  const KernelTable table = standard_cuda_kernels();
  for (const DType dtype : chained_types) {
    const std::array<AnyTensor, 3> values = special_inputs_of(dtype);
    const std::int64_t n = values[0].num_elements();
    // Input 3 is a truth.
    AnyTensor conditions(DType::boolean, {n});
    for (std::int64_t i = 0; i < n; ++i) {
      static_cast<bool*>(conditions.raw_data())[i] = (i * 7 / 3) % 2 == 0;
    }
    Graph graph;
    std::vector<AnyOutput> edges;
    std::vector<Feed> feeds;
    for (const AnyTensor& value : values) {
      edges.push_back(dflow::detail::any_placeholder(*graph.store(), dtype, PartialShape{n}, {}));
      feeds.emplace_back(edges.back(), value);
    }
    edges.push_back(dflow::detail::any_placeholder(*graph.store(), DType::boolean, PartialShape{n}, {}));
    feeds.emplace_back(edges.back(), conditions);

    ChainForm form;
    form.inputs = {dtype, dtype, dtype, DType::boolean};
    form.broadcasts = true;
    std::vector<AnyOutput> fetches;
    const std::vector<MemberCase> cases = member_cases(table, dtype);
    {
      const auto on = graph.device("/gpu:0");
      const auto row = [&](const AnyOutput& x) {
        return AnyOutput(
            build<Reshape>({x, constant(graph, Tensor<std::int32_t>({2}, {1, static_cast<std::int32_t>(n)}))}));
      };
      for (const MemberCase& each : cases) {
        const bool is_select = each.entry->op == &op_def<Select>, is_bias = each.entry->op == &op_def<BiasAdd>;
        ChainMember member{each.formula, dtype, DType::invalid, {}};
        std::vector<AnyOutput> inputs;
        for (int i = 0; i < each.num_inputs; ++i) {
          member.reads.push_back(is_select ? (i == 0 ? 3 : i - 1) : i);
          inputs.push_back(edges[static_cast<std::size_t>(member.reads.back())]);
        }
        if (is_bias) inputs[0] = row(inputs[0]);
        fetches.push_back(append_member(graph, each, inputs));
        member.makes = fetches.back().dtype();
        form.gives.push_back(static_cast<std::int32_t>(form.members.size()));
        form.members.push_back(std::move(member));
      }
    }
    std::vector<AnyTensor> want(fetches.size());
    {
      const auto driver = std::make_shared<FakeDriver>();
      Session session(graph, {.devices = gpus_and_cpu(driver), .passes = PassOptions::none(), .soft_placement = true});
      session.run_erased({}, nullptr, feeds, fetches, {}, want);
    }

    const std::string library = compile_for_host(chain_text(form));
    REQUIRE(!library.empty());
    void* const code = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(code != nullptr);
    for (const bool broadcasts : {false, true}) {
      std::vector<AnyTensor> got;
      std::vector<std::int64_t> words{n};
      const auto add_block = [&](void* block) {
        words.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(block)));
      };
      for (const AnyTensor& value : values) add_block(const_cast<void*>(value.raw_data()));
      add_block(conditions.raw_data());
      for (std::size_t f = 0; f < fetches.size(); ++f) {
        got.emplace_back(want[f].dtype(), want[f].shape());
        add_block(got.back().raw_data());
      }
      if (!broadcasts) {
        words.push_back(0);
      } else {
        words.insert(words.end(), {1, n, 0, 0, 0, 0, 0, 0, 0});
        for (std::size_t k = 0; k < form.inputs.size(); ++k) words.insert(words.end(), {1, 0, 0, 0, 0, 0, 0, 0});
      }
      const auto emulate = reinterpret_cast<decltype(cuda::KernelFunction::emulate)>(
          dlsym(code, str_cat("emulate_", broadcasts ? cuda::broadcast_chain : cuda::dense_chain).c_str()));
      REQUIRE(emulate != nullptr);
      emulate({3, 64}, words.data(), broadcasts ? 4 : 2);
      for (std::size_t f = 0; f < fetches.size(); ++f) {
        INFO(fetches[f].node().op->name << " of " << dtype_name(dtype) << " to " << dtype_name(want[f].dtype()));
        CHECK(same_elements(got[f], want[f]));
        ++checks;
      }
    }
    dlclose(code);
  }
  std::cout << "count: " << checks / 2 << " ops and element types in chains, beside their own kernels\n";
  CHECK(checks > 800);
}

TEST_CASE("what goes into no chain says so", "[cuda]") {
  const KernelTable table = chaining_cuda_kernels();
  for (const char* const op : {"Digamma", "Igamma", "Conj", "MatMul", "Sum"}) {
    const KernelEntry* const entry = table.find(op);
    REQUIRE(entry != nullptr);
    CHECK(entry->formula == nullptr);
  }
  // Elements are checked, so that an error has its node.
  CHECK(!table.find("Div")->formula(2)->holds_for(DType::int32));
  CHECK(table.find("Div")->formula(2)->holds_for(DType::float16));
  CHECK(!table.find("Pow")->formula(2)->holds_for(DType::uint8));
  CHECK(!table.find("Add")->formula(2)->holds_for(DType::complex64));
  CHECK(table.find("AddN")->formula(17) == nullptr);
}
