#pragma once

/// Public: the tensors and services of a kernel's run, and the services of its device.

#include <dflow/base/status.hpp>
#include <dflow/base/strong_index.hpp>
#include <dflow/base/system_seed.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/core/device_memory.hpp>
#include <dflow/core/memory/allocator.hpp>
#include <dflow/core/rendezvous.hpp>
#include <dflow/core/resource.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/node.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dflow {

class KeptMemory;
class StatsCollector;
class UnitQueue;
class WorkRecorder;

/// State that the kernels of one device type share. Each device type derives a class of its own.
class DeviceState {
 public:
  DeviceState() = default;
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;
  virtual ~DeviceState() = default;
};

/// A device's state for one step: made when the step's part on the device begins, gone when the part has ended. A
/// device with kernels that fail after they have returned notes the first late error here.
///
/// Thread safety: `status_async` may be called from any thread.
class DeviceStep {
 public:
  using StatusDone = UniqueFunction<void(Status)>;

  DeviceStep() = default;
  DeviceStep(const DeviceStep&) = delete;
  DeviceStep& operator=(const DeviceStep&) = delete;
  virtual ~DeviceStep() = default;

  /// Calls `done` once, from any thread, when all work that the step has issued by now is done, with the first error of
  /// the work. The default has nothing to wait for.
  virtual void status_async(StatusDone done) { done(Status()); }
};

/// The services of a device for its kernels. Lives as long as the device.
struct DeviceContext {
  std::string name;  ///< "/job:localhost/task:0/device:CPU:0"
  std::string type;  ///< "CPU", "GPU"
  std::uint64_t incarnation = 0;
  Allocator* allocator = nullptr;       ///< of the memory that its kernels compute in
  Allocator* host_allocator = nullptr;  ///< of outputs in host memory; the same on a device that computes there
  ThreadPool* pool = nullptr;
  ResourceContainers* resources = nullptr;  ///< variables and other state, by container and name
  /// Draws the seeds of random streams that were given none; may be called from any thread.
  std::function<std::uint64_t()> draw_seed = system_seed;
  DeviceMemory* memory = nullptr;  ///< null: the host's
  DeviceState* state = nullptr;    ///< of the device type
  /// Kernels return when their work is issued. The work is done at the end of the step, or after a copy.
  bool is_asynchronous = false;
  WorkRecorder* recorder = nullptr;  ///< null: every kernel is run in every step
  /// Releases a tensor after the step's last read of it, while kernels that were run may still use it. Null: tensors
  /// are released at once.
  void (*release)(const DeviceContext& device, AnyTensor&& tensor) noexcept = nullptr;

  /// Precondition: the device's type keeps an S.
  template <std::derived_from<DeviceState> S>
  S& state_as() const noexcept {
    return static_cast<S&>(*state);
  }
};

/// The resources of one step on one device: made on first use, gone when the step has ended.
///
/// Thread safety: safe.
class StepResources {
 public:
  StepResources() = default;
  StepResources(const StepResources&) = delete;
  StepResources& operator=(const StepResources&) = delete;
  ~StepResources() { clear(); }

  ResourceContainer& container();
  /// Precondition: no kernel of the step runs.
  void clear() noexcept {
    if (container_.load(std::memory_order_relaxed) != nullptr)
      delete container_.exchange(nullptr, std::memory_order_acq_rel);
  }

 private:
  std::atomic<ResourceContainer*> container_{nullptr};
};

/// The number of a slot, which holds one tensor of a step at a time.
using SlotId = StrongIndex<struct SlotTag>;

/// The slots of a step that hold dead tensors.
struct DeadTensors {
  std::atomic<bool> any{false};
  IndexedVector<SlotId, std::uint8_t> slots;
};

/// The services that all kernels of one step share.
struct StepContext {
  std::uint64_t step_id = 0;
  Rendezvous* rendezvous = nullptr;
  CancellationToken cancellation;
  /// Cancels receives, where the rendezvous outlives the step and is not aborted with it. Elsewhere the token has no
  /// source.
  CancellationToken receive_cancellation = {};
  /// The loop frame of the kernels and its iteration; part of the keys of sent tensors.
  std::string_view frame = {};
  std::int64_t iteration = 0;
  StepResources* resources = nullptr;
  DeviceStep* device_step = nullptr;
  /// Null where the plan carries no dead tensors.
  DeadTensors* dead = nullptr;
  /// For kernels that run plans themselves: the queue of the step's units and the collector of its statistics. Null
  /// where there are none.
  UnitQueue* queue = nullptr;
  StatsCollector* stats = nullptr;
  std::int32_t call_depth = 0;  ///< calls of functions around the kernels
  /// The loops around the kernels keep values for a gradient in this memory. Null: they keep the values in lists.
  KeptMemory* kept_memory = nullptr;
};

/// A tensor that carries a handle to `resource` along a resource edge.
AnyTensor make_resource_handle(std::shared_ptr<Resource> resource);
/// The resource that the handle carries; null for any other tensor.
Resource* resource_of(const AnyTensor& handle) noexcept;

/// The tensors and services handed to one run of a kernel.
///
/// Inputs and outputs are slots of the step. An input is shared with its producer and other consumers. It must not be
/// written, unless `forward_or_allocate` hands its buffer on as an output.
///
/// Thread safety: used by one run of one kernel.
class KernelContext {
 public:
  /// The slots of the step in which a node finds its inputs and puts its outputs; part of the plan.
  struct Wiring {
    const Node* node = nullptr;
    const SlotId* inputs = nullptr;  ///< slot of each input
    std::int32_t num_inputs = 0;
    SlotId first_output;
    std::int32_t num_outputs = 0;
    std::uint64_t forwardable = 0;  ///< bit i: this node is the last reader of input i
    /// For each output: not 0 if the output is in host memory, wherever the device computes. Null: no output is.
    const std::uint8_t* host_outputs = nullptr;
  };

  KernelContext(AnyTensor* slots, const Wiring& wiring, const DeviceContext& device, const StepContext& step) noexcept
      : slots_(slots), wiring_(&wiring), device_(&device), step_(&step) {}

  int num_inputs() const noexcept { return wiring_->num_inputs; }
  int num_outputs() const noexcept { return wiring_->num_outputs; }
  const AnyTensor& input(int i) const noexcept { return slots_[wiring_->inputs[i].position()]; }
  /// Throws an InvalidArgument that names both element types, as the typed functions that allocate outputs do.
  template <Element T>
  const Tensor<T>& input(int i) const {
    require<T>(input(i).dtype());
    return Tensor<T>::of(input(i));
  }

  /// The number on input `i`. Throws InvalidArgument if it is no scalar.
  template <Element T>
  T scalar_input(int i) const {
    const Tensor<T>& number = input<T>(i);
    if (number.rank() != 0) reject_scalar(i);
    return *number.data();
  }

  /// An uninitialised tensor as output `i`. Throws ResourceExhausted.
  AnyTensor& allocate_output(int i, const Shape& shape) {
    AnyTensor& slot = output(i);
    slot = AnyTensor(output_dtype(i), shape, output_allocator(i));
    return slot;
  }
  template <Element T>
  Tensor<T>& allocate_output(int i, const Shape& shape) {
    require<T>(output_dtype(i));
    return static_cast<Tensor<T>&>(allocate_output(i, shape));
  }

  /// Output `o` in the buffer of input `i` if no other reader of the input remains and the sizes agree; else newly
  /// allocated.
  AnyTensor& forward_or_allocate(int i, int o, const Shape& shape);
  template <Element T>
  Tensor<T>& forward_or_allocate(int i, int o, const Shape& shape) {
    require<T>(output_dtype(o));
    return static_cast<Tensor<T>&>(forward_or_allocate(i, o, shape));
  }
  /// True if this run may write into the buffer of input `i`.
  bool owns_input(int i) const noexcept {
    return i < 64 && (wiring_->forwardable >> i & 1u) != 0 && input(i).buffer_is_unique();
  }

  /// Moves input `i` out if this run is its last reader; the run may then not look at the input again. Else shares it.
  AnyTensor take_input(int i) noexcept {
    AnyTensor& slot = slots_[wiring_->inputs[i].position()];
    if (i < 64 && (wiring_->forwardable >> i & 1u) != 0) return std::move(slot);
    return slot;
  }

  void set_output(int i, AnyTensor tensor) noexcept { output(i) = std::move(tensor); }

  /// A dead input comes from the side of a branch that was not taken. Only kernels that ask for dead inputs
  /// (`sees_dead_inputs`) are run with one.
  bool is_input_dead(int i) const noexcept {
    return step_->dead != nullptr && step_->dead->slots[wiring_->inputs[i]] != 0;
  }
  /// Marks output `i` as dead: no node computes with it in this step. Throws Internal in a step whose plan carries no
  /// dead tensors.
  void set_output_dead(int i);
  AnyTensor& output(int i) noexcept { return slots_[(wiring_->first_output + i).position()]; }
  DType output_dtype(int i) const noexcept { return node().outputs[static_cast<std::size_t>(i)].dtype; }

  /// Memory for the run's own use. Throws ResourceExhausted.
  AnyTensor allocate_temporary(DType dtype, const Shape& shape) const {
    return AnyTensor(dtype, shape, *device_->allocator);
  }

  const Node& node() const noexcept { return *wiring_->node; }
  const DeviceContext& device() const noexcept { return *device_; }
  const StepContext& step() const noexcept { return *step_; }
  ThreadPool& pool() const noexcept { return *device_->pool; }
  Allocator& output_allocator(int i) const noexcept {
    const bool on_host = wiring_->host_outputs != nullptr && wiring_->host_outputs[i] != 0;
    return on_host ? *device_->host_allocator : *device_->allocator;
  }

  /// The state that the handle on input `i` refers to. Throws InvalidArgument if the state is of another kind.
  template <class R>
  R& resource(int i) const {
    R* found = dynamic_cast<R*>(resource_of(i));
    if (found == nullptr) reject_resource(i);
    return *found;
  }

  /// Throws InvalidArgument; the executor adds op, node and line.
  [[noreturn]] void fail(std::string message) const;

 private:
  friend class Step;
  template <Element T>
  static void require(DType held) {
    if (held != dtype_of<T>) [[unlikely]]
      detail::throw_element_type_mismatch(held, dtype_of<T>);
  }
  Resource* resource_of(int i) const noexcept { return dflow::resource_of(input(i)); }
  [[noreturn]] void reject_resource(int i) const;
  [[noreturn]] void reject_scalar(int i) const;

  AnyTensor* slots_;
  const Wiring* wiring_;
  const DeviceContext* device_;
  const StepContext* step_;
};

}  // namespace dflow
