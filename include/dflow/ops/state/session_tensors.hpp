#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/op/build.hpp>
#include <dflow/op/operand.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace dflow {

/// Keeps tensors across steps, by number; gives a handle.
struct SessionTensorsOp : StatefulOp<"SessionTensors", AllTypes> {
  struct Attrs {
    std::int64_t memory_limit = 0;  ///< in bytes, with the content of strings; 0: no limit
    std::string container = {};
    std::string shared_name = {};  ///< the resource's name; if empty, the node's name
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// Keeps a tensor, and gives its number: handle, value -> [].
struct GetSessionHandle : StatefulOp<"GetSessionHandle", AllTypes> {
  using Inputs = In<ResourceHandle, T>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// The tensor of a number: handle, number [] -> a tensor that fits `shape`.
struct GetSessionTensor : StatefulOp<"GetSessionTensor", AllTypes> {
  struct Attrs {
    PartialShape shape = PartialShape::unknown();
  };
  using Inputs = In<ResourceHandle, std::int64_t>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// Drops the tensor of a number: handle, number [].
struct DeleteSessionTensor : StatefulOp<"DeleteSessionTensor"> {
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

struct SessionTensorsOptions {
  /// In bytes, with the content of strings; 0 for no limit.
  std::int64_t memory_limit = 0;
  std::string_view name = {};
  /// The container of the device.
  std::string_view container = {};
  /// On one device, those with the same shared name are one, across graphs and sessions.
  std::string_view shared_name = {};
};

namespace detail {

/// The same with an element type that is known at run time only.
class AnySessionTensors {
 public:
  AnySessionTensors() = default;
  AnySessionTensors(GraphStore& graph, DType dtype, const SessionTensorsOptions& options, const At& at);

  const AnyOutput& handle() const noexcept { return handle_; }
  AnyOutput keep(const AnyOutput& value, const At& at) const;
  AnyOutput get(const AnyOutput& number, const PartialShape& shape, const At& at) const;
  Operation remove(const AnyOutput& number, const At& at) const;

 private:
  AnyOutput handle_;
  DType dtype_ = DType::invalid;
};

}  // namespace detail

/// Tensors that stay on a device between runs, where a fetch and a feed would copy them to the program and back:
/// TensorFlow's session handles. A run that keeps a tensor gives a number, and later runs are fed with the number.
///
/// ```cpp
/// df::SessionTensors<float> kept(graph);
/// auto keep = kept.keep(df::matmul(x, w));
/// auto number = df::placeholder<std::int64_t>(graph, {});
/// auto y = df::relu(kept.get(number));
/// auto drop = kept.remove(number);
///
/// const df::Tensor<std::int64_t> of_x = session.run({{x, rows}}, keep);
/// session.run({{number, of_x}}, y);     // as often as it is needed
/// session.run({{number, of_x}}, drop);  // frees its memory
/// ```
/// A tensor stays until it is removed, until its container is reset, or until its task ends. The kept tensor is a copy
/// if anybody else may write to the value.
///
/// Thread safety: a value type; builds, see Graph. In steps any number of calls may use it at once.
/// Errors: in steps NotFound for a number of no tensor, or of a removed one; InvalidArgument for a tensor that does not
/// fit the shape that `get` was built with; ResourceExhausted beyond the memory limit.
template <Element T>
class SessionTensors {
 public:
  SessionTensors() = default;
  explicit SessionTensors(Graph& graph, const SessionTensorsOptions& options = {}, const At& at = {})
      : tensors_(*graph.store(), dtype_of<T>, options, at) {}

  const AnyOutput& handle() const noexcept { return tensors_.handle(); }

  /// Keeps `value`, and gives its number: [], never one that was given before.
  Output<std::int64_t> keep(const Operand<T>& value, const At& at = {}) const {
    return Output<std::int64_t>::unchecked(tensors_.keep(value.beside(handle()), at));
  }
  /// The tensor of a number. `shape` is what the graph knows of its shape.
  Output<T> get(const Operand<std::int64_t>& number, const PartialShape& shape = PartialShape::unknown(),
                const At& at = {}) const {
    return Output<T>::unchecked(tensors_.get(number.beside(handle()), shape, at));
  }
  /// Drops the tensor of a number. Steps that have read it go on with it.
  Operation remove(const Operand<std::int64_t>& number, const At& at = {}) const {
    return tensors_.remove(number.beside(handle()), at);
  }

 private:
  detail::AnySessionTensors tensors_;
};

}  // namespace dflow
