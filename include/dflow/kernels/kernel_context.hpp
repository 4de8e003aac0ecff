#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/thread_pool.hpp>
#include <dflow/core/allocator.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/core/rendezvous.hpp>
#include <dflow/core/resource.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/node.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace dflow {

/// What a device lends its kernels. Lives as long as the device.
struct DeviceContext {
  std::string name;  ///< "/job:localhost/task:0/device:CPU:0"
  std::string type;  ///< "CPU", "GPU"
  Allocator* allocator = nullptr;
  ThreadPool* pool = nullptr;
  ResourceContainer* resources = nullptr;  ///< variables and other state, by name
  /// Opaque state of the device type: CPU settings, CUDA streams.
  void* backend = nullptr;
};

/// What all kernels of one step share.
struct StepContext {
  std::uint64_t step_id = 0;
  Rendezvous* rendezvous = nullptr;
  CancellationToken cancellation;
};

/// The tensors and services handed to one run of a kernel.
///
/// Inputs and outputs are slots of the step: an input is shared with its producer and other consumers and must not be
/// written, unless `forward_or_allocate` hands its buffer on as an output.
///
/// Thread safety: used by one run of one kernel.
class KernelContext {
 public:
  /// Where a node finds its inputs and puts its outputs among the step's slots; part of the plan.
  struct Wiring {
    const Node* node = nullptr;
    const std::int32_t* inputs = nullptr;  ///< slot of each input
    std::int32_t num_inputs = 0;
    std::int32_t first_output = 0;
    std::int32_t num_outputs = 0;
    std::uint64_t forwardable = 0;  ///< bit i: this node is the last reader of input i
  };

  KernelContext(AnyTensor* slots, const Wiring& wiring, const DeviceContext& device, const StepContext& step) noexcept
      : slots_(slots), wiring_(&wiring), device_(&device), step_(&step) {}

  int num_inputs() const noexcept { return wiring_->num_inputs; }
  int num_outputs() const noexcept { return wiring_->num_outputs; }
  const AnyTensor& input(int i) const noexcept { return slots_[wiring_->inputs[i]]; }
  template <Element T>
  const Tensor<T>& input(int i) const noexcept {
    return Tensor<T>::of(input(i));
  }

  /// An uninitialised tensor as output `i`. Throws ResourceExhausted.
  AnyTensor& allocate_output(int i, const Shape& shape) {
    AnyTensor& slot = output(i);
    slot = AnyTensor(output_dtype(i), shape, *device_->allocator);
    return slot;
  }
  template <Element T>
  Tensor<T>& allocate_output(int i, const Shape& shape) {
    return static_cast<Tensor<T>&>(allocate_output(i, shape));
  }

  /// Output `o` in the buffer of input `i` if nobody else reads that any more and the sizes agree, else newly allocated.
  AnyTensor& forward_or_allocate(int i, int o, const Shape& shape);
  template <Element T>
  Tensor<T>& forward_or_allocate(int i, int o, const Shape& shape) {
    return static_cast<Tensor<T>&>(forward_or_allocate(i, o, shape));
  }
  /// True if this run may write into the buffer of input `i`.
  bool owns_input(int i) const noexcept {
    return i < 64 && (wiring_->forwardable >> i & 1u) != 0 && input(i).buffer_is_unique();
  }

  void set_output(int i, AnyTensor tensor) noexcept { output(i) = std::move(tensor); }
  AnyTensor& output(int i) noexcept { return slots_[wiring_->first_output + i]; }
  DType output_dtype(int i) const noexcept { return node().outputs[static_cast<std::size_t>(i)].dtype; }

  /// Memory for the run's own use. Throws ResourceExhausted.
  AnyTensor allocate_temporary(DType dtype, const Shape& shape) const { return AnyTensor(dtype, shape, *device_->allocator); }

  const Node& node() const noexcept { return *wiring_->node; }
  const DeviceContext& device() const noexcept { return *device_; }
  const StepContext& step() const noexcept { return *step_; }
  ThreadPool& pool() const noexcept { return *device_->pool; }

  /// The state that the handle on input `i` refers to. Throws InvalidArgument if it is of another kind.
  template <class R>
  R& resource(int i) const {
    R* found = dynamic_cast<R*>(resource_of(i));
    if (found == nullptr) reject_resource(i);
    return *found;
  }

  /// Throws InvalidArgument; the executor adds op, node and line.
  [[noreturn]] void fail(std::string message) const;

 private:
  Resource* resource_of(int i) const noexcept;
  [[noreturn]] void reject_resource(int i) const;

  AnyTensor* slots_;
  const Wiring* wiring_;
  const DeviceContext* device_;
  const StepContext* step_;
};

/// A tensor that carries a handle to `resource` along a resource edge.
AnyTensor make_resource_handle(std::shared_ptr<Resource> resource);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/kernel_context.ipp>
#endif
