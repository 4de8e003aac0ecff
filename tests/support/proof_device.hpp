#pragma once

// A device as a third party would write it, in this file and its allocator's file, on the public headers alone;
// docs/adding-a-device.md quotes it. It proves the seam. Its memory has access rights only while its kernels run: code
// that touches it from elsewhere dies at once. Its kernels run in order on a thread of its own, after the call that
// issued them has returned.

#include "support/proof_allocator.hpp"

#include <dflow/core/device_memory.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/shared/send_recv_kernel.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/runtime/op_set.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

/// The device type's tag.
struct Proof {
  static constexpr std::string_view type = "PROOF";
};

namespace dflow::testing {

/// A thread that runs its tasks in order: the device's stream. A device may be destroyed on any thread, its own
/// included: the last step that lets go of it destroys it.
class ProofStream {
 public:
  ProofStream() : queue_(std::make_shared<Queue>()), thread_([queue = queue_] { queue->work(); }) {}
  ~ProofStream() {
    queue_->stop();
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }
  void issue(UniqueFunction<void()> task) { queue_->push(std::move(task)); }

 private:
  class Queue {
   public:
    void push(UniqueFunction<void()> task) {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      changed_.notify_all();
    }
    void stop() {
      const std::lock_guard lock(mutex_);
      stops_ = true;
      changed_.notify_all();
    }
    void work() {
      std::unique_lock lock(mutex_);
      for (;;) {
        changed_.wait(lock, [this] { return stops_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        UniqueFunction<void()> task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        std::this_thread::yield();  // late
        task();
        task = nullptr;
        lock.lock();
      }
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<UniqueFunction<void()>> tasks_;
    bool stops_ = false;
  };

  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

/// Its memory, with copies in stream order.
class ProofMemory final : public DeviceMemory {
 public:
  ProofMemory() : allocator_(std::make_shared<ProofAllocator>()) {}

  ProofAllocator& allocator() override { return *allocator_; }
  ProofStream& stream() noexcept { return stream_; }

  void copy_in_async(const AnyTensor& host, CopyDone done) override {
    AnyTensor here;
    try {
      here = AnyTensor(host.dtype(), host.shape(), *allocator_);
    } catch (...) {
      return done(status_of_current_exception(), AnyTensor());
    }
    copy(host, here, std::move(done));
  }
  void copy_out_async(const AnyTensor& here, Allocator& allocator, CopyDone done) override {
    AnyTensor host;
    try {
      host = AnyTensor(here.dtype(), here.shape(), allocator);
    } catch (...) {
      return done(status_of_current_exception(), AnyTensor());
    }
    copy(here, host, std::move(done));
  }

 private:
  void copy(const AnyTensor& from, AnyTensor to, CopyDone done) {
    stream_.issue([this, from = AnyTensor(from), to = std::move(to), done = std::move(done)]() mutable {
      {
        const ProofAllocator::Access access(*allocator_);
        if (to.bytes() != 0) std::memcpy(to.raw_data(), from.raw_data(), to.bytes());
      }
      from.reset();
      done(Status(), std::move(to));
    });
  }

  std::shared_ptr<ProofAllocator> allocator_;
  ProofStream stream_;
};

/// The first error of a step's kernels, found after they were issued.
class ProofStep final : public DeviceStep {
 public:
  explicit ProofStep(ProofStream& stream) : stream_(stream) {}

  void status_async(StatusDone done) override {
    stream_.issue([this, done = std::move(done)]() mutable { done(status()); });
  }
  void fail(Status status) {
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  Status status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  ProofStream& stream_;
  mutable std::mutex mutex_;
  Status status_;
};

/// The state that the device's kernels share: its memory and stream, and the CPU behind them.
class ProofState final : public DeviceState {
 public:
  ProofMemory memory;
  InlinePool pool;
  CpuDevice processor{{}};
  DeviceContext cpu = processor.context();  ///< the context of the CPU's kernels while they run on the device's thread
};

}  // namespace dflow::testing

// Tensors enter and leave by the library's own Send and Recv.
template <class T>
struct dflow::Kernel<dflow::Send, Proof, T> : dflow::SendKernel {};
template <class T>
struct dflow::Kernel<dflow::Recv, Proof, T> : dflow::RecvKernel {
  using RecvKernel::RecvKernel;
};

namespace dflow::testing {

namespace proof {

inline Status located(const Status& status, const KernelContext& context) {
  const Node& node = context.node();
  return status.with_node(node.op->name, node.name).with_device(context.device().name).with_location(node.where);
}

/// One run of the CPU's kernel on slots of its own.
struct Run {
  const AnyKernel* kernel = nullptr;
  const Node* node = nullptr;
  std::vector<AnyTensor> slots;  ///< inputs, then outputs
  std::vector<SlotId> positions;

  Run(const AnyKernel& of, const KernelContext& context) : kernel(&of), node(&context.node()) {
    slots.resize(static_cast<std::size_t>(context.num_inputs() + context.num_outputs()));
    for (int i = 0; i < context.num_inputs(); ++i) positions.emplace_back(i);
  }
  AnyTensor& output(int o) { return slots[positions.size() + static_cast<std::size_t>(o)]; }
  void operator()(const DeviceContext& cpu, const StepContext& step) {
    KernelContext::Wiring wiring;
    wiring.node = node;
    wiring.inputs = positions.data();
    wiring.num_inputs = static_cast<std::int32_t>(positions.size());
    wiring.first_output = SlotId(wiring.num_inputs);
    wiring.num_outputs = static_cast<std::int32_t>(slots.size() - positions.size());
    KernelContext context(slots.data(), wiring, cpu, step);
    kernel->run(context);
  }
};

/// The CPU's kernel, issued to the stream. Outputs are allocated when it is issued, in the inferred shapes. Inputs are
/// only looked at, not held: the step lets go of them in stream order.
class LateKernel final : public AnyKernel {
 public:
  explicit LateKernel(std::unique_ptr<AnyKernel> cpu) : cpu_(std::move(cpu)) {}

  void run(KernelContext& context) const override {
    auto& device = context.device().state_as<ProofState>();
    allocate_inferred_outputs(context);
    auto run = std::make_shared<Run>(*cpu_, context);
    std::vector<AnyTensor> results;
    for (int i = 0; i < context.num_inputs(); ++i) run->slots[static_cast<std::size_t>(i)] = view(context.input(i));
    for (int o = 0; o < context.num_outputs(); ++o) results.push_back(view(context.output(o)));
    auto* step = static_cast<ProofStep*>(context.step().device_step);
    device.memory.stream().issue([&device, run, step, where = context, results = std::move(results)]() mutable {
      if (!step->status().ok()) return;
      try {
        const ProofAllocator::Access access(device.memory.allocator());
        const StepContext alone;
        (*run)(device.cpu, alone);
        for (std::size_t o = 0; o < results.size(); ++o) {
          const AnyTensor& made = run->output(static_cast<int>(o));
          if (made.shape() != results[o].shape())
            throw Error(Status::internal("a kernel's output is not as was inferred"));
          if (made.bytes() != 0) std::memcpy(results[o].raw_data(), made.raw_data(), made.bytes());
        }
        run->slots.clear();
      } catch (...) {
        step->fail(located(status_of_current_exception(), where));
      }
    });
  }
  double cost_ns() const noexcept override { return 1000; }

 private:
  static AnyTensor view(const AnyTensor& tensor) {
    if (tensor.bytes() == 0) return AnyTensor(tensor.dtype(), tensor.shape());
    return AnyTensor::adopt(tensor.dtype(), tensor.shape(), const_cast<void*>(tensor.raw_data()), tensor.bytes(), {},
                            Lending::view);
  }

  std::unique_ptr<AnyKernel> cpu_;
};

/// The CPU's kernel of an op on handles. Its outputs depend on the state behind the handles, so it ends when it has
/// run.
class StateKernel final : public AsyncKernel {
 public:
  explicit StateKernel(std::unique_ptr<AnyKernel> cpu) : cpu_(std::move(cpu)) {}

  void run_async(KernelContext& context, Done done) const override {
    auto& device = context.device().state_as<ProofState>();
    auto run = std::make_shared<Run>(*cpu_, context);
    for (int i = 0; i < context.num_inputs(); ++i) run->slots[static_cast<std::size_t>(i)] = context.input(i);
    auto* step = static_cast<ProofStep*>(context.step().device_step);
    device.memory.stream().issue([&device, run, step, &context, done = std::move(done)]() mutable {
      Status status = step->status();
      if (status.ok()) {
        try {
          const ProofAllocator::Access access(device.memory.allocator());
          (*run)(device.cpu, context.step());
        } catch (...) {
          status = status_of_current_exception();
        }
      }
      for (int o = 0; status.ok() && o < context.num_outputs(); ++o) context.set_output(o, std::move(run->output(o)));
      run = nullptr;
      done(std::move(status));
    });
  }

 private:
  std::unique_ptr<AnyKernel> cpu_;
};

/// Gives a handle at once: a handle is an object of the host.
class HandleKernel final : public AnyKernel {
 public:
  explicit HandleKernel(std::unique_ptr<AnyKernel> cpu) : cpu_(std::move(cpu)) {}
  void run(KernelContext& context) const override {
    Run run(*cpu_, context);
    run(context.device().state_as<ProofState>().cpu, context.step());
    for (int o = 0; o < context.num_outputs(); ++o) context.set_output(o, std::move(run.output(o)));
  }

 private:
  std::unique_ptr<AnyKernel> cpu_;
};

inline std::unique_ptr<AnyKernel> make_kernel(const KernelInit& init) {
  const auto& on_cpu = *static_cast<const KernelEntry*>(init.entry->data);
  std::unique_ptr<AnyKernel> cpu =
      on_cpu.make(KernelInit{init.node, init.inputs, init.device.state_as<ProofState>().cpu, &on_cpu});
  for (const OutputInfo& input : init.inputs) {
    if (input.dtype == DType::resource) return std::make_unique<StateKernel>(std::move(cpu));
  }
  if (init.node.op->role == OpRole::variable) return std::make_unique<HandleKernel>(std::move(cpu));
  return std::make_unique<LateKernel>(std::move(cpu));
}

inline bool holds_no_strings(const TypeArgs& types) {
  for (std::size_t i = 0; i < types.size; ++i) {
    if (types[i] == DType::string) return false;
  }
  return true;
}

/// Asks an op's shape function which input values it reads: the inputs must then be in host memory. A device that names
/// its kernels one by one writes this down instead.
class HostArguments final : public InputValues {
 public:
  static std::uint64_t of(const OpDef& op) {
    std::uint64_t read = 0;
    for (int rank = -1; rank <= 4; ++rank) {
      const PartialShape first = rank < 0 ? PartialShape::unknown()
                                          : PartialShape(std::vector<std::int64_t>(static_cast<std::size_t>(rank), 1));
      const std::vector<PartialShape> others{PartialShape::unknown(), PartialShape(std::vector<std::int64_t>{}),
                                             PartialShape({std::max(rank, 0)}), PartialShape({std::max(rank, 0), 2}),
                                             first};
      for (const PartialShape& other : others) read |= probe(op, first, other);
    }
    return read;
  }
  const AnyTensor* value(int i) const override { return note(i), nullptr; }
  std::optional<PartialShape> value_as_shape(int i) const override { return note(i), std::nullopt; }

 private:
  static constexpr int inputs_of_list = 4;

  static std::uint64_t probe(const OpDef& op, const PartialShape& first, const PartialShape& other) {
    Node node;
    node.op = &op;
    node.name = "probe";
    for (const TypeParamDef& param : op.type_params) {
      DType type = DType::float32;
      for (int t = 0; t < 32 && !param.allows(type); ++t) type = static_cast<DType>(t);
      node.types.push_back(type);
    }
    std::vector<PartialShape> shapes;
    std::vector<DType> types;
    std::vector<std::size_t> arg_of;  // by edge
    for (std::size_t a = 0; a < op.inputs.size(); ++a) {
      const ArgDef& arg = op.inputs[a];
      for (int k = 0; k < (arg.is_list() ? inputs_of_list : 1); ++k) {
        arg_of.push_back(a);
        shapes.push_back(shapes.empty() ? first : other);
        types.push_back(arg.is_of_fixed_type() ? arg.dtype : node.types[arg.param]);
      }
    }
    std::vector<PartialShape> outputs(op.outputs.size() + inputs_of_list, PartialShape::unknown());
    node.outputs.resize(outputs.size());
    HostArguments asked;
    try {
      InferContext context(node, shapes, types, asked, outputs);
      if (op.infer != nullptr) op.infer(context);
    } catch (...) {  // the shapes did not suit it; the inputs read by then count
    }
    std::uint64_t args = 0;
    for (const std::size_t edge : asked.read_) args |= std::uint64_t{1} << arg_of[edge];
    return args;
  }
  void note(int i) const { read_.insert(static_cast<std::size_t>(i)); }
  mutable std::set<std::size_t> read_;
};

/// Texts are in the host's memory alone: an op that takes or gives texts, for any element types, is the CPU's.
inline bool is_on_texts(const OpDef& op) {
  const auto is_text = [](const ArgDef& arg) { return arg.is_of_fixed_type() && arg.dtype == DType::string; };
  return !op.is_stateful && (std::any_of(op.inputs.begin(), op.inputs.end(), is_text) ||
                             std::any_of(op.outputs.begin(), op.outputs.end(), is_text));
}

/// Outputs that have the shapes of values which the op itself computes cannot be allocated when its kernel is issued:
/// such an op is the CPU's.
inline bool finds_its_shapes(const OpDef& op) {
  constexpr std::string_view names[] = {
      "CTCBeamSearchDecoder", "CTCGreedyDecoder", "ListDiff", "Unique", "UniqueWithCounts", "Where"};
  return std::find(std::begin(names), std::end(names), op.name) != std::end(names);
}

/// A row for each row of the CPU's table, except for ops on texts and ops that find the shapes of their outputs.
inline KernelTable table_over(const KernelTable& cpu) {
  std::vector<KernelEntry> entries;
  cpu.for_each([&](const KernelEntry& on_cpu) {
    if (is_on_texts(*on_cpu.op) || finds_its_shapes(*on_cpu.op)) return;
    KernelEntry entry;
    entry.op = on_cpu.op;
    if (on_cpu.op->role == OpRole::send) {
      entry.make = &dflow::make_kernel<Send, Proof>;
    } else if (on_cpu.op->role == OpRole::recv) {
      entry.make = &dflow::make_kernel<Recv, Proof>;
    } else {
      entry.make = &make_kernel;
      entry.data = &on_cpu;
      entry.host_inputs = HostArguments::of(*on_cpu.op);
    }
    entry.supports = &holds_no_strings;
    entries.push_back(entry);
  });
  return KernelTable(std::string(Proof::type), std::move(entries));
}

/// The table over the kernels of the library's ops.
inline const KernelTable& standard_kernels() {
  static const KernelTable table = table_over(default_kernels(standard_ops));
  return table;
}

}  // namespace proof

/// The device. Its kernels are in `table`, made by `proof::table_over`.
class ProofDevice final : public Device {
 public:
  explicit ProofDevice(int id = 0, KernelTable table = proof::standard_kernels()) : table_(std::move(table)) {
    context_.name = str_cat("/job:localhost/replica:0/task:0/device:PROOF:", id);
    context_.type = Proof::type;
    context_.incarnation = 1;
    context_.allocator = &state_.memory.allocator();
    context_.host_allocator = &default_cpu_allocator();
    context_.pool = &state_.pool;
    context_.resources = &resources_;
    context_.memory = &state_.memory;
    context_.state = &state_;
    context_.is_asynchronous = true;
    context_.release = [](const DeviceContext& device, AnyTensor&& tensor) noexcept {
      device.state_as<ProofState>().memory.stream().issue([held = std::move(tensor)] {});
    };
    state_.cpu.name = context_.name;
    state_.cpu.allocator = context_.allocator;
    state_.cpu.host_allocator = context_.host_allocator;
    state_.cpu.pool = &state_.pool;
    state_.cpu.resources = &resources_;
  }

  const KernelTable* kernels() const noexcept override { return &table_; }
  std::unique_ptr<DeviceStep> begin_step() override { return std::make_unique<ProofStep>(state_.memory.stream()); }

 private:
  KernelTable table_;
  ResourceContainers resources_;
  ProofState state_;
};

}  // namespace dflow::testing
