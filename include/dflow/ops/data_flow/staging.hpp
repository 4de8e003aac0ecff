#pragma once

#include <dflow/ops/data_flow/queue.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

// Elements that one part of a step, or one step, makes ahead for the next: a short queue, limited by elements and by
// memory, that cannot be closed.

/// Keeps staged elements, the oldest first; gives a handle.
struct StagingAreaOp : StatefulOp<"StagingArea"> {
  struct Attrs {
    std::vector<DType> dtypes = {};
    std::vector<PartialShape> shapes = {};  ///< of the components of an element; empty: any
    std::int64_t capacity = 0;              ///< in elements; 0: no limit
    std::int64_t memory_limit = 0;          ///< in bytes, with the content of strings; 0: no limit
    std::string container = {};
    std::string shared_name = {};  ///< the resource's name; if empty, the node's name
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// Waits until there is room, and puts one element in: handle, components. Errors: ResourceExhausted for an element
/// that is larger than the memory limit.
struct Stage : StatefulOp<"Stage"> {
  struct Attrs {
    std::vector<DType> dtypes = {};
  };
  using Inputs = In<ResourceHandle, TypedList<"dtypes">>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Waits for an element, and takes it out.
struct Unstage : StatefulOp<"Unstage"> {
  struct Attrs {
    std::vector<DType> dtypes = {};
    std::vector<PartialShape> shapes = {};  ///< as of the area; empty: any
  };
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<TypedList<"dtypes">>;
  static void infer(InferContext& context);
};

/// The number of elements in the area.
struct StageSize : StatefulOp<"StageSize"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

/// Drops all elements: a call that waits for room goes on.
struct StageClear : StatefulOp<"StageClear"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

struct StagingAreaOptions {
  /// In elements; 0 for no limit.
  std::int64_t capacity = 0;
  /// In bytes, with the content of strings; 0 for no limit.
  std::int64_t memory_limit = 0;
  /// The shape of each component of an element; empty: any.
  std::vector<PartialShape> shapes = {};
  std::string_view name = {};
  /// The container of the device.
  std::string_view container = {};
  /// Areas with the same shared name on one device are one area, across sessions.
  std::string_view shared_name = {};
};

namespace detail {

/// A staging area with component types that are known at run time only.
class AnyStagingArea {
 public:
  AnyStagingArea() = default;
  AnyStagingArea(GraphStore& graph, std::vector<DType> dtypes, const StagingAreaOptions& options, const At& at);

  const AnyOutput& handle() const noexcept { return handle_; }
  Operation stage(std::span<const AnyOutput> components, const At& at) const;
  BuiltNode unstage(const At& at) const;
  AnyOutput size(const At& at) const;
  Operation clear(const At& at) const;

 private:
  AnyOutput handle_;
  std::vector<DType> dtypes_;
  std::vector<PartialShape> shapes_;
};

}  // namespace detail

/// Holds elements made ahead, each a tensor of type T for each of Ts, on the device it is placed on.
///
/// ```cpp
/// df::StagingArea<float> next(graph, {.capacity = 2});
/// auto ahead = next.stage(batch);   // waits for room
/// auto x = next.unstage();          // waits for an element
/// ```
/// A waiting call ends with its step, and has changed nothing then.
///
/// Thread safety: a value type; builds, see Graph. In steps any number of calls may use an area at once; they are
/// served in their order of arrival.
/// Errors: InvalidArgument for other shapes, ResourceExhausted in steps for an element above the memory limit.
template <Element... Ts>
  requires(sizeof...(Ts) > 0)
class StagingArea {
 public:
  StagingArea() = default;
  explicit StagingArea(Graph& graph, const StagingAreaOptions& options = {}, const At& at = {})
      : area_(*graph.store(), {dtype_of<Ts>...}, options, at) {}

  const AnyOutput& handle() const noexcept { return area_.handle(); }

  Operation stage(const Operand<Ts>&... components, const At& at = {}) const {
    return area_.stage(std::initializer_list<AnyOutput>{components.beside(handle())...}, at);
  }
  /// A tuple of `Output<Ts>`; the `Output` alone if there is only one component.
  auto unstage(const At& at = {}) const { return detail::typed_outputs<Ts...>(area_.unstage(at)); }
  Output<std::int32_t> size(const At& at = {}) const { return Output<std::int32_t>::unchecked(area_.size(at)); }
  Operation clear(const At& at = {}) const { return area_.clear(at); }

 private:
  detail::AnyStagingArea area_;
};

}  // namespace dflow
