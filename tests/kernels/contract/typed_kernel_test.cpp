#include <dflow/kernels/contract/typed_kernel.hpp>

#include "catch.hpp"

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/memory/address_sanitizer.hpp>
#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>

#include <cstdlib>
#include <new>

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
