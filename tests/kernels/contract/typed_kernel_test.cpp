#include <dflow/kernels/contract/typed_kernel.hpp>

#include "catch.hpp"

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/memory/address_sanitizer.hpp>
#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>

using namespace dflow;

namespace {

thread_local long allocations = 0;

/// rows of a and b side by side, and their number.
struct Beside : Op<"Beside", TypeList<float>> {
  using Inputs = In<T, T>;
  using Outputs = Out<T, std::int64_t>;
  static void infer(InferContext& context) {
    const PartialShape a = context.with_rank(0, 2), b = context.with_rank(1, 2);
    context.set_output(
        0, PartialShape{context.merge_dim(a[0], b[0]), a[1] == dynamic || b[1] == dynamic ? dynamic : a[1] + b[1]});
    context.set_output(1, Shape{});
  }
};

/// A matrix of any elements, its rows in the opposite order, and how many they are.
struct Reversed : Op<"Reversed", AllTypes, IndexTypes> {
  using Inputs = In<T>;
  using Outputs = Out<T, U>;
  static void infer(InferContext& context) {
    context.set_output(0, context.input(0));
    context.set_output(1, Shape{});
  }
};

/// Does not know its output's shape.
struct Unknown : Op<"Unknown", TypeList<float>> {
  static void infer(InferContext& context) { context.set_output(0, PartialShape::unknown()); }
};

/// The values of a running node, without a step.
struct Bench {
  Graph graph;
  PoolAllocator allocator{default_cpu_allocator()};
  InlinePool pool;
  ResourceContainers resources;
  DeviceContext device{.name = "d", .type = "CPU", .allocator = &allocator, .pool = &pool, .resources = &resources};
  StepContext step;
};

}  // namespace

template <>
struct dflow::Kernel<Beside, Cpu, float> {
  void operator()(KernelContext&, const Tensor<float>& a, const Tensor<float>& b, Tensor<float>& y,
                  Tensor<std::int64_t>& rows) const {
    const std::int64_t left = a.dim(1), right = b.dim(1);
    for (std::int64_t r = 0; r < a.dim(0); ++r) {
      for (std::int64_t i = 0; i < left; ++i) y(r, i) = a(r, i);
      for (std::int64_t i = 0; i < right; ++i) y(r, left + i) = b(r, i);
    }
    *rows.data() = a.dim(0);
  }
};
/// For all elements but strings, and for both types of the count.
template <>
struct dflow::Kernel<Reversed, Cpu> {
  static bool supports(const TypeArgs& types) { return types[0] != DType::string; }
  static bool splits(const KernelInit& init) { return init.node.types[0] == DType::float32; }

  void operator()(KernelContext&, const AnyTensor& x, AnyTensor& y, AnyTensor& count) const {
    const std::int64_t rows = x.dim(0);
    const std::size_t row = x.bytes() / static_cast<std::size_t>(rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(static_cast<std::byte*>(y.raw_data()) + static_cast<std::size_t>(r) * row,
                  static_cast<const std::byte*>(x.raw_data()) + static_cast<std::size_t>(rows - 1 - r) * row, row);
    }
    visit_dtype<IndexTypes>(count.dtype(), [&]<class U>() { *Tensor<U>::of(count).data() = static_cast<U>(rows); });
  }
};
template <>
struct dflow::Kernel<Unknown, Cpu, float> {
  void operator()(KernelContext&, const Tensor<float>&, Tensor<float>&) const {}
};

// The program's own allocation functions, to count. AddressSanitizer wants to see its own, and nothing is counted
// there.
#if !DFLOW_HAS_ADDRESS_SANITIZER
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
#endif

TEST_CASE(
    "a typed kernel finds its outputs allocated in the shapes of this run, and running it allocates nothing else") {
  Bench bench;
  const auto a = placeholder<float>(bench.graph, {dynamic, 2}), b = placeholder<float>(bench.graph, {dynamic, dynamic});
  const BuiltNode built = build<Beside>({a, b});
  const Node& node = built.output(0).node();
  const OutputInfo inputs[] = {{DType::float32, a.shape()}, {DType::float32, b.shape()}};
  const auto kernel = make_kernel<Beside, Cpu>(KernelInit{node, inputs, bench.device});
  AnyTensor slots[4];
  const SlotId wires[] = {SlotId(0), SlotId(1)};
  const KernelContext::Wiring wiring{
      .node = &node, .inputs = wires, .num_inputs = 2, .first_output = SlotId(2), .num_outputs = 2};
  KernelContext context(slots, wiring, bench.device, bench.step);
  long counted = -1;
  for (const std::int64_t rows : {3, 3, 3}) {
    slots[0] = Tensor<float>::full({rows, 2}, 1);
    slots[1] = Tensor<float>::full({rows, 5}, 2);
    slots[2].reset();
    slots[3].reset();
    const long before = allocations;
    kernel->run(context);
    counted = allocations - before;
    CHECK(slots[2].shape() == Shape{rows, 7});
    CHECK(slots[2].as<float>()(rows - 1, 6) == 2);
    CHECK(slots[3].as<std::int64_t>().scalar() == rows);
  }
  CHECK(counted == 0);
  const long before = allocations;
  const Shape shape = detail::inferred_shape(context);
  CHECK(allocations == before);
  CHECK(shape == Shape{3, 7});
}

TEST_CASE("a typed kernel whose op leaves a shape open is told to allocate it itself") {
  Bench bench;
  const auto x = placeholder<float>(bench.graph, {2});
  const BuiltNode built = build<Unknown>({x});
  const Node& node = built.output(0).node();
  const OutputInfo inputs[] = {{DType::float32, x.shape()}};
  const auto kernel = make_kernel<Unknown, Cpu>(KernelInit{node, inputs, bench.device});
  AnyTensor slots[2] = {Tensor<float>::full({2}, 1), {}};
  const SlotId wires[] = {SlotId(0)};
  const KernelContext::Wiring wiring{
      .node = &node, .inputs = wires, .num_inputs = 1, .first_output = SlotId(1), .num_outputs = 1};
  KernelContext context(slots, wiring, bench.device, bench.step);
  CHECK_THROWS_WITH(kernel->run(context), Catch::Matchers::Contains("its kernel must allocate it"));
}

TEST_CASE("one kernel serves all element types that its specialisation leaves open, but for those that it leaves out") {
  const KernelTable table = kernels_of<Cpu>(ops<Reversed>);
  const KernelEntry& row = *table.find("Reversed");
  Bench bench;
  const auto run = [&]<class T, class U>(const Tensor<T>& x) {
    TypeArgs types;
    types.push_back(dtype_of<T>);
    types.push_back(dtype_of<U>);
    const BuiltNode built = build<Reversed>({placeholder<T>(bench.graph, {dynamic, 2})}, {}, {}, types);
    const Node& node = built.output(0).node();
    const OutputInfo inputs[] = {{dtype_of<T>, {dynamic, 2}}};
    const auto kernel = row.make(KernelInit{node, inputs, bench.device});
    CHECK(row.supports_types(node.types) == (kernel != nullptr));
    if (kernel == nullptr) return Tensor<T>();
    CHECK(kernel->traits().splits == std::is_same_v<T, float>);
    AnyTensor slots[3] = {x, {}, {}};
    const SlotId wires[] = {SlotId(0)};
    const KernelContext::Wiring wiring{
        .node = &node, .inputs = wires, .num_inputs = 1, .first_output = SlotId(1), .num_outputs = 2};
    KernelContext context(slots, wiring, bench.device, bench.step);
    kernel->run(context);
    CHECK(slots[2].as<U>().scalar() == 2);
    return slots[1].as<T>();
  };
  const auto floats = run.operator()<float, std::int32_t>(Tensor<float>({2, 2}, {1, 2, 3, 4}));
  CHECK(floats(0, 0) == 3);
  CHECK(floats(1, 1) == 2);
  const auto bytes = run.operator()<std::int8_t, std::int64_t>(Tensor<std::int8_t>({2, 2}, {1, 2, 3, 4}));
  CHECK(bytes(0, 1) == 4);
  static_cast<void>(run.operator()<std::string, std::int32_t>(Tensor<std::string>({1, 2})));

  TypeArgs types;
  types.push_back(DType::float32);
  types.push_back(DType::float32);  // no type of a count
  CHECK_FALSE(row.supports_types(types));
}
