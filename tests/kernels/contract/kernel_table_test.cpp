#include <dflow/kernels/contract/kernel_table.hpp>

#include <dflow/base/status.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <string>
#include <string_view>
#include <vector>

using namespace dflow;

namespace {

/// A type of device that has kernels for few ops and element types.
struct Small {
  static constexpr std::string_view type = "SMALL";
};

/// A device type with kernels that need a pool.
struct Pooled {
  static constexpr std::string_view type = "POOLED";
  static Status check(const DeviceContext& device) {
    return device.pool != nullptr ? Status() : Status::failed_precondition("no pool");
  }
};

TypeArgs type(DType dtype) {
  TypeArgs types;
  types.push_back(dtype);
  return types;
}

}  // namespace

template <>
struct dflow::Kernel<Add, Small, float> {
  void operator()(KernelContext&, const Tensor<float>&, const Tensor<float>&, Tensor<float>&) const {}
};

TEST_CASE("a device of others has kernels for the library's ops, for the element types that it likes",
          "[kernels][table]") {
  const KernelTable table = kernels_of<Small>(ops<Add>);
  CHECK(table.device_type() == "SMALL");
  const KernelEntry* row = table.find("Add");
  REQUIRE(row != nullptr);
  CHECK(row->supports_types(type(DType::float32)));
  CHECK_FALSE(row->supports_types(type(DType::float64)));
  CHECK(row->make == &make_kernel<Add, Small>);
  CHECK_FALSE(row->is_trusted);
  CHECK(table.find("Mul") == nullptr);
}

template <>
struct dflow::Kernel<Add, Pooled, float> {
  void operator()(KernelContext&, const Tensor<float>&, const Tensor<float>&, Tensor<float>&) const {}
};

/// A shape in host memory, for all element types; the cost is known for doubles.
template <class U>
struct dflow::Kernel<Reshape, Small, float, U> {
  static constexpr std::uint64_t host_inputs = 2;
  void operator()(KernelContext&) const {}
};
template <class U>
struct dflow::Kernel<Reshape, Small, double, U> {
  static constexpr std::uint64_t host_inputs = 2;
  static KernelCost cost(const KernelInit& init) {
    return {.flops = static_cast<double>(init.inputs.size()), .bytes = 1e6};
  }
  void operator()(KernelContext&) const {}
};

template <>
struct dflow::Kernel<ShapeOf, Small, float> {
  static constexpr std::uint64_t host_outputs = 1;
  double cost_ns(const KernelInit&) const { return 7; }
  void operator()(KernelContext&) const {}
};

TEST_CASE("a kernel says of its arguments which are in host memory, and what a run costs", "[kernels][table]") {
  const KernelTable table = kernels_of<Small>(ops<Reshape, ShapeOf, Add>);
  const KernelEntry &reshaping = *table.find("Reshape"), &shape = *table.find(op_def<ShapeOf>.name),
                    &add = *table.find("Add");
  CHECK(reshaping.host_inputs == 2);
  CHECK(reshaping.host_outputs == 0);
  CHECK(shape.host_inputs == 0);
  CHECK(shape.host_outputs == 1);
  CHECK(add.host_inputs == 0);
  REQUIRE(reshaping.cost != nullptr);
  CHECK(shape.cost == nullptr);

  Graph graph;
  const auto to = constant(graph, Tensor<std::int32_t>({1}, {6}));
  const auto f = reshape(placeholder<float>(graph, {2, 3}), to);
  const auto d = reshape(placeholder<double>(graph, {2, 3}), to);
  const DeviceContext device{.name = "/device:SMALL:0", .type = "SMALL"};
  const auto cost = [&](const AnyOutput& edge) {
    const std::vector<OutputInfo> inputs{{edge.dtype(), {2, 3}}, {DType::int32, {1}}};
    return cost_of(reshaping, KernelInit{edge.node(), inputs, device, &reshaping});
  };
  CHECK(cost(d).flops == 2);
  CHECK(cost(d).bytes == 1e6);
  CHECK(cost(f).flops == 6);                // one for each element
  CHECK(cost(f).bytes == 4 * (6 + 1 + 6));  // every input and output once
}

TEST_CASE("a run's time is what the kernel says, else estimated by the row's cost", "[kernels][table]") {
  const KernelTable table = kernels_of<Small>(ops<Reshape, ShapeOf, Add>);
  const KernelEntry &reshaping = *table.find("Reshape"), &shape = *table.find(op_def<ShapeOf>.name),
                    &add = *table.find("Add");
  Graph graph;
  const auto x = placeholder<float>(graph, {1000, 1000});
  const auto d = reshape(placeholder<double>(graph, {2, 3}), constant(graph, Tensor<std::int32_t>({1}, {6})));
  const Output<std::int32_t> s = dflow::shape(x);
  const auto sum = x + x;
  DeviceContext device{.name = "/device:SMALL:0", .type = "SMALL"};
  const auto ns = [&](const KernelEntry& entry, const AnyOutput& edge, std::vector<OutputInfo> inputs) {
    const KernelInit init{edge.node(), inputs, device, &entry};
    return estimated_ns(*entry.make(init), entry, init);
  };
  const OutputInfo matrix{DType::float32, {1000, 1000}};
  CHECK(ns(shape, s, {matrix}) == 7);
  CHECK(ns(reshaping, d, {{DType::float64, {2, 3}}, {DType::int32, {1}}}) ==
        KernelRates::call_ns + 1e6 / KernelRates::bytes_per_ns);
  CHECK(ns(add, sum, {matrix, matrix}) == KernelRates::call_ns + 12e6 / KernelRates::bytes_per_ns);
  KernelEntry trusted = add;
  trusted.is_trusted = true;
  CHECK(ns(trusted, sum, {matrix, matrix}) == KernelRates::unknown_ns);
  device.is_asynchronous = true;  // the call returns when the work is issued
  CHECK(ns(add, sum, {matrix, matrix}) == KernelRates::unknown_ns);
}

TEST_CASE("a device gets the tables for its type, then its own, which no other device gets", "[kernels][table]") {
  const KernelEntry add{.op = &op_def<Add>, .make = &make_kernel<Add, Small>},
      mul{.op = &op_def<Mul>, .make = &make_kernel<Add, Small>}, other_mul = mul;
  const KernelTables given({KernelTable("SMALL", {add}), KernelTable("OTHER", {mul})});
  const KernelTable first("SMALL", {add, mul}), second("SMALL", {other_mul});
  const DeviceContext device{.name = "/device:SMALL:0", .type = "SMALL"};
  const KernelTables without = given.for_device(device, nullptr), one = given.for_device(device, &first),
                     two = given.for_device(device, &second);
  CHECK(without.find("SMALL", "Add") == given.find("SMALL", "Add"));
  CHECK(without.find("SMALL", "Mul") == nullptr);
  CHECK(one.find("SMALL", "Add") == given.find("SMALL", "Add"));
  CHECK(one.find("SMALL", "Mul") == first.find("Mul"));
  CHECK(two.find("SMALL", "Mul") == second.find("Mul"));
}

TEST_CASE("a device does not get a table for another type, or one whose kernels it cannot run", "[kernels][table]") {
  const KernelTables given({kernels_of<Pooled>(ops<Add>)});
  const KernelTable own = kernels_of<Small>(ops<Add>);
  InlinePool pool;
  const DeviceContext with{.name = "/device:POOLED:0", .type = "POOLED", .pool = &pool},
      without{.name = "/device:POOLED:1", .type = "POOLED"}, other{.name = "/device:SMALL:0", .type = "SMALL"};
  CHECK(given.for_device(with, nullptr).find("POOLED", "Add") != nullptr);
  CHECK(status_of([&] { given.for_device(without, nullptr); }).code() == Code::failed_precondition);
  CHECK(given.for_device(other, &own).find("SMALL", "Add") != nullptr);
  CHECK(status_of([&] { given.for_device(with, &own); }).code() == Code::invalid_argument);
}

TEST_CASE("a table made at run time refuses rows that nothing can be made from", "[kernels][table]") {
  const KernelEntry good{.op = &op_def<Add>, .make = &make_kernel<Add, Small>};
  CHECK(KernelTable("SMALL", {good}).find("Add") != nullptr);
  const auto code = [](std::vector<KernelEntry> rows) {
    return status_of([&] { KernelTable("SMALL", std::move(rows)); }).code();
  };
  CHECK(code({good, good}) == Code::invalid_argument);
  CHECK(code({good, KernelEntry{}}) == Code::invalid_argument);
  const Status status = status_of([] { KernelTable("SMALL", {KernelEntry{.op = &op_def<Add>}}); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(std::string(status.message()).find("Add") != std::string::npos);
}
