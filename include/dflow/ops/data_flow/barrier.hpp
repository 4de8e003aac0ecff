#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/constant.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

// The ops of barriers. The components of an element come one by one, from the places that compute them, and a barrier
// puts them together by the element's key.

/// Keeps elements until all of their components are there; gives a handle.
struct BarrierOp : StatefulOp<"Barrier"> {
  struct Attrs {
    std::vector<DType> component_types = {};
    std::vector<PartialShape> shapes = {};  ///< of the components of an element; empty: any
    std::string container = {};
    std::string shared_name = {};  ///< the resource's name; if empty, the node's name
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// Gives elements one of their components: handle, keys [n], values [n, shape...]. A call that fails changes nothing.
/// Errors: InvalidArgument for a component that an element has already; Cancelled for a new key in a closed barrier.
struct BarrierInsertMany : StatefulOp<"BarrierInsertMany", AllTypes> {
  struct Attrs {
    std::int64_t component_index = 0;
  };
  using Inputs = In<ResourceHandle, std::string, T>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Waits until n elements have all components, and takes them out; elements with an earlier first component go first.
/// handle, n [] -> indices [n], keys [n], and [n, shape...] for each component. An element's index is the number of
/// the call that brought its first component; calls are counted from the least int64 on. Errors: OutOfRange if the
/// barrier is closed and n elements will not be complete.
struct BarrierTakeMany : StatefulOp<"BarrierTakeMany"> {
  struct Attrs {
    std::vector<DType> component_types = {};
    std::vector<PartialShape> shapes = {};  ///< as of the barrier; empty: any
    bool allow_small_batch = false;         ///< take the complete elements of a closed barrier, at least one
    bool wait_for_incomplete = false;       ///< before that, wait until all its elements are complete
  };
  using Inputs = In<ResourceHandle, std::int32_t>;
  using Outputs = Out<std::int64_t, std::string, TypedList<"component_types">>;
  static void infer(InferContext& context);
};

/// Lets no new key in. Elements that are there can still be completed, unless `cancel_pending_enqueues`: then
/// incomplete elements are dropped, and nothing can be inserted.
struct BarrierClose : StatefulOp<"BarrierClose"> {
  struct Attrs {
    bool cancel_pending_enqueues = false;
  };
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The number of elements that have all components.
struct BarrierReadySize : StatefulOp<"BarrierReadySize"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

/// The number of elements that have only some of their components.
struct BarrierIncompleteSize : StatefulOp<"BarrierIncompleteSize"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

struct BarrierOptions {
  /// The shape of each component of an element; empty: any.
  std::vector<PartialShape> shapes = {};
  std::string_view name = {};
  /// The container of the device.
  std::string_view container = {};
  /// Barriers with the same shared name on one device are one barrier, across sessions.
  std::string_view shared_name = {};
};

struct BarrierTakeOptions {
  /// A take from a closed barrier gives the elements that are complete, at least one.
  bool allow_small_batch = false;
  /// Before that, the take waits until all elements of the barrier are complete.
  bool wait_for_incomplete = false;
};

namespace detail {

/// A barrier with component types that are known at run time only.
class AnyBarrier {
 public:
  AnyBarrier() = default;
  AnyBarrier(GraphStore& graph, std::vector<DType> dtypes, const BarrierOptions& options, const At& at);

  const AnyOutput& handle() const noexcept { return handle_; }
  Operation insert_many(std::size_t component, const AnyOutput& keys, const AnyOutput& values, const At& at) const;
  BuiltNode take_many(const AnyOutput& count, const BarrierTakeOptions& options, const At& at) const;
  Operation close(bool cancel_pending_enqueues, const At& at) const;
  AnyOutput ready_size(const At& at) const;
  AnyOutput incomplete_size(const At& at) const;

 private:
  AnyOutput handle_;
  std::vector<DType> dtypes_;
  std::vector<PartialShape> shapes_;
};

}  // namespace detail

/// Puts elements together: their components, a tensor of type T for each of Ts, come one by one under a key. A barrier
/// lives across steps on the device it is placed on.
///
/// ```cpp
/// df::Barrier<float, std::int32_t> examples(graph, {.shapes = {{784}, {}}});
/// auto a = examples.insert_many<0>(keys, images);
/// auto b = examples.insert_many<1>(keys, labels);
/// auto [indices, names, x, y] = examples.take_many(32);
/// ```
/// A waiting call ends with its step, and has taken nothing then.
///
/// Thread safety: a value type; builds, see Graph. In steps any number of calls may use a barrier at once; they are
/// served in their order of arrival.
/// Errors: InvalidArgument for other shapes, and in steps for a component that the element has already; Cancelled for
/// a new key in a closed barrier; OutOfRange for taking more elements than will be complete.
template <Element... Ts>
  requires(sizeof...(Ts) > 0)
class Barrier {
 public:
  Barrier() = default;
  explicit Barrier(Graph& graph, const BarrierOptions& options = {}, const At& at = {})
      : barrier_(*graph.store(), {dtype_of<Ts>...}, options, at) {}

  const AnyOutput& handle() const noexcept { return barrier_.handle(); }

  /// keys [n], values [n, shape...]
  template <std::size_t component>
    requires(component < sizeof...(Ts))
  Operation insert_many(const Operand<std::string>& keys, const Operand<element_t<component, TypeList<Ts...>>>& values,
                        const At& at = {}) const {
    return barrier_.insert_many(component, keys.beside(handle()), values.beside(handle()), at);
  }
  /// indices [n], keys [n], and [n, shape...] for each component, as a tuple: the outputs of BarrierTakeMany.
  auto take_many(const Operand<std::int32_t>& n, const BarrierTakeOptions& options = {}, const At& at = {}) const {
    return outputs(barrier_.take_many(n.beside(handle()), options, at), std::index_sequence_for<Ts...>{});
  }
  Operation close(bool cancel_pending_enqueues = false, const At& at = {}) const {
    return barrier_.close(cancel_pending_enqueues, at);
  }
  Output<std::int32_t> ready_size(const At& at = {}) const {
    return Output<std::int32_t>::unchecked(barrier_.ready_size(at));
  }
  Output<std::int32_t> incomplete_size(const At& at = {}) const {
    return Output<std::int32_t>::unchecked(barrier_.incomplete_size(at));
  }

 private:
  template <std::size_t... I>
  static auto outputs(const BuiltNode& node, std::index_sequence<I...>) {
    return std::tuple{Output<std::int64_t>::unchecked(node.output(0)), Output<std::string>::unchecked(node.output(1)),
                      Output<Ts>::unchecked(node.output(static_cast<int>(I) + 2))...};
  }

  detail::AnyBarrier barrier_;
};

}  // namespace dflow
