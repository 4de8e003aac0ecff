#pragma once

#include <dflow/op/build.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// How `all_reduce` combines the elements that its values have in one place.
enum class ReduceBy : std::uint8_t { sum, mean, product, minimum, maximum };

constexpr std::array<std::string_view, 5> attr_enum_names(ReduceBy) {
  return {"sum", "mean", "product", "minimum", "maximum"};
}

// Collectives have members, mostly on different devices. A value of each member, or of the first, goes in; a result
// for each comes out, on the device of its value. Collectives have no kernel. When a step is compiled,
// `expand_collectives` replaces them by nodes on the members' devices. Tensors go between the nodes as between any
// others, or the devices compute together.

/// The values, all of one shape, reduced to one value; each member gets it.
struct AllReduce : StandardOp<"AllReduce", NumberTypes> {
  struct Attrs {
    ReduceBy reduction = ReduceBy::sum;
    std::int64_t count = 1;
  };
  using Inputs = In<List<T>>;
  using Outputs = Out<List<T>>;
  static constexpr OpRole role = OpRole::collective;
  static constexpr bool has_kernel = false;
  static std::int64_t output_list_size(const Attrs& attrs) { return attrs.count; }
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The values one after the other along dimension 0; each member gets the result.
struct AllGather : StandardOp<"AllGather", AllTypes> {
  struct Attrs {
    std::int64_t count = 1;
  };
  using Inputs = In<List<T>>;
  using Outputs = Out<List<T>>;
  static constexpr OpRole role = OpRole::collective;
  static constexpr bool has_kernel = false;
  static std::int64_t output_list_size(const Attrs& attrs) { return attrs.count; }
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The value, `count` times: each output is on the device of its reader.
struct CollectiveBroadcast : StandardOp<"CollectiveBroadcast", AllTypes> {
  struct Attrs {
    std::int64_t count = 1;
  };
  using Outputs = Out<List<T>>;
  static constexpr OpRole role = OpRole::collective;
  static constexpr bool has_kernel = false;
  static std::int64_t output_list_size(const Attrs& attrs) { return attrs.count; }
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
std::vector<AnyOutput> any_all_reduce(std::span<const AnyOutput> values, ReduceBy reduction, const At& at = {});
std::vector<AnyOutput> any_all_gather(std::span<const AnyOutput> values, const At& at = {});
std::vector<AnyOutput> any_broadcast_to_devices(const AnyOutput& value, std::span<const std::string> devices,
                                                const At& at = {});

template <class T>
std::vector<Output<T>> typed_members(const std::vector<AnyOutput>& edges) {
  std::vector<Output<T>> members;
  members.reserve(edges.size());
  for (const AnyOutput& edge : edges) members.push_back(Output<T>::unchecked(edge));
  return members;
}
}  // namespace detail

/// The sum of the values, or another `reduction` of them, for each value. Result i is on the device of value i. Nodes
/// built on result i are on this device too, unless they name another. A result without a reader is not computed.
///
/// ```cpp
/// const auto sums = df::all_reduce({on_first, on_second});   // one on each device
/// const auto means = df::all_reduce(gradients, df::ReduceBy::mean);
/// ```
/// Members on devices of one type get the same bits, in every step: values are reduced in their order, the values in
/// one memory first. Devices that reduce together, as GPUs of one process by NCCL, use an order of their own. Sums,
/// means and products of 16-bit floats are computed in float and rounded once; means of integers are as of
/// `reduce_mean`. If an element is not a number, the minimum and the maximum are not a number either.
///
/// If the shape is known and larger than `max_whole_bytes`, each member reduces one part for all. The bytes that a
/// member sends and receives then do not grow with the number of members.
///
/// Differentiable; elements that equal the minimum or maximum share its gradient evenly.
/// Errors: InvalidArgument if there are no values, if their shapes differ, or for a minimum or maximum of complex
/// numbers. In the step: InvalidArgument, naming both shapes, if shapes that the graph did not know differ.
template <AllowedFor<AllReduce> T>
std::vector<Output<T>> all_reduce(const std::vector<Output<T>>& values, ReduceBy reduction = ReduceBy::sum,
                                  const At& at = {}) {
  const std::vector<AnyOutput> edges(values.begin(), values.end());
  return detail::typed_members<T>(detail::any_all_reduce(edges, reduction, at));
}
template <AllowedFor<AllReduce> T>
std::vector<Output<T>> all_reduce(std::initializer_list<Output<T>> values, ReduceBy reduction = ReduceBy::sum,
                                  const At& at = {}) {
  return all_reduce(std::vector<Output<T>>(values), reduction, at);
}

/// [2, 3] and [4, 3] give [6, 3] for each of them: the values one after the other, in their order. Results are on the
/// same devices as results of `all_reduce`.
///
/// Errors: InvalidArgument if there are no values, if they are scalars, or if they differ in rank or in another
/// dimension than the first.
template <AllowedFor<AllGather> T>
std::vector<Output<T>> all_gather(const std::vector<Output<T>>& values, const At& at = {}) {
  const std::vector<AnyOutput> edges(values.begin(), values.end());
  return detail::typed_members<T>(detail::any_all_gather(edges, at));
}
template <AllowedFor<AllGather> T>
std::vector<Output<T>> all_gather(std::initializer_list<Output<T>> values, const At& at = {}) {
  return all_gather(std::vector<Output<T>>(values), at);
}

/// The value on each of the devices; their names may be partial. If a large value goes into several memories, each
/// memory is sent one part, and the memories exchange their parts.
///
/// ```cpp
/// const auto copies = df::broadcast_to_devices(weights, {"/gpu:0", "/gpu:1"});
/// ```
/// Errors: InvalidArgument if there are no devices, or for a name that is not a device's.
template <AllowedFor<CollectiveBroadcast> T>
std::vector<Output<T>> broadcast_to_devices(const Output<T>& value, const std::vector<std::string>& devices,
                                            const At& at = {}) {
  return detail::typed_members<T>(detail::any_broadcast_to_devices(value, devices, at));
}

}  // namespace dflow
