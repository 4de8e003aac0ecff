#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/kernels/cuda/cuda_step.hpp>
#include <dflow/kernels/cuda/graph_recorder.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace dflow::cuda {

namespace detail {

/// A graph, and the objects that its work needs besides blocks. It is destroyed when all its launched work is done.
struct LaunchedGraph {
  explicit LaunchedGraph(std::shared_ptr<DeviceCore> of) noexcept : core(std::move(of)) {}
  LaunchedGraph(const LaunchedGraph&) = delete;
  LaunchedGraph& operator=(const LaunchedGraph&) = delete;
  ~LaunchedGraph() {
    if (handle != GraphHandle::none) core->driver().destroy_graph(core->device(), handle);
  }

  const std::shared_ptr<DeviceCore> core;
  GraphHandle handle = GraphHandle::none;
  std::vector<std::shared_ptr<const void>> held;
};

/// The alignment of a block.
inline constexpr std::uintptr_t graph_alignment = 256;

inline std::uintptr_t misalignment_of(const AnyTensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.raw_data()) % graph_alignment;
}

/// Room for the same elements as `like`, with the same alignment: libraries choose how to compute by the alignment.
inline AnyTensor allocate_like(const AnyTensor& like, Allocator& allocator) {
  const std::uintptr_t offset = misalignment_of(like);
  return AnyTensor::over(BufferRef::allocate(like.bytes() + offset, allocator), offset, like.dtype(), like.shape());
}

inline std::size_t offset_in_buffer(const AnyTensor& tensor) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(tensor.raw_data()) -
                                  static_cast<const std::byte*>(std::as_const(*tensor.buffer().get()).data()));
}

}  // namespace detail

/// The work that a stretch has issued once, and the places of its inputs and outputs.
struct GraphRecorder::Graph {
  struct Input {
    const void* address = nullptr;
    AnyTensor own;  ///< where it is copied to first; uninitialised if it is read where it is
  };
  struct Output {
    enum class Kind : std::uint8_t { as_is, in_buffer, of_input };
    Kind kind = Kind::as_is;
    AnyTensor as_is;         ///< in host memory, or of no elements
    std::size_t place = 0;   ///< among the buffers, or the inputs
    std::size_t offset = 0;  ///< in the buffer, or from the input's first element
    DType dtype = DType::invalid;
    Shape shape;
  };

  struct SharedBlocks {
    explicit SharedBlocks(CudaAllocator& of) noexcept : allocator(of) {}
    SharedBlocks(const SharedBlocks&) = delete;
    SharedBlocks& operator=(const SharedBlocks&) = delete;
    ~SharedBlocks() { allocator.end_shared(all); }

    CudaAllocator& allocator;
    std::set<void*> all;
  };

  explicit Graph(GraphRecorder& of)
      : recorder(of),
        blocks(of.memory_.allocator()),
        work(std::make_shared<detail::LaunchedGraph>(of.memory_.shared_core())) {
    ++recorder.alive_;
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    --recorder.alive_;
    if (work->handle != GraphHandle::none) recorder.bury(std::move(work));
  }

  GraphRecorder& recorder;
  SharedBlocks blocks;  // first, so that they go last
  std::shared_ptr<detail::LaunchedGraph> work;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<BufferRef> buffers;
  std::shared_ptr<CudaStep> step;  ///< the errors that its kernels find
};

class GraphRecorder::GraphRecord final : public Record {
 public:
  GraphRecord(GraphRecorder& recorder, Stretch stretch) : recorder_(recorder), stretch_(std::move(stretch)) {
    const std::lock_guard lock(recorder_.mutex_);
    recorder_.records_.push_back(this);
  }
  ~GraphRecord() override {
    const std::lock_guard lock(recorder_.mutex_);
    std::erase(recorder_.records_, this);
  }

  void run(StretchRun& run) override {
    if (recorder_.options_.runs_before < 0 || gives_up_ || !is_captured(run)) run.issue();
  }

  /// Its graphs, unless they are in use.
  void take_graphs(std::vector<std::unique_ptr<Graph>>& graphs) {
    const Turn turn(is_busy_);
    if (!turn.is_mine()) return;
    for (Variant& variant : variants_) {
      if (variant.graph == nullptr) continue;
      graphs.push_back(std::move(variant.graph));
      variant.runs = 0;
    }
  }
  /// When one of them was launched; 0: never.
  std::uint64_t last_use() const noexcept { return last_use_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t max_variants = 4;
  static constexpr std::size_t max_host_bytes = 4096;
  static constexpr int max_failures = 3;
  static constexpr int max_captures = 16;  ///< of one set of shapes
  static constexpr int runs_until_retry = 100;
  static constexpr int max_changes = 64;  ///< of shapes, with no launch in between

  /// The work that a run with these inputs issues.
  struct Variant {
    std::vector<std::pair<DType, Shape>> inputs;
    std::vector<AnyTensor> host_inputs;
    int runs = 0;
    int captures = 0;
    std::uint64_t last_use = 0;
    std::vector<bool> copies_input, copies_output;  ///< which were elsewhere, or kept
    std::unique_ptr<Graph> graph;
  };

  /// Held by one thread at a time; another thread does not wait.
  class Turn {
   public:
    explicit Turn(std::atomic<bool>& is_busy) : is_busy_(is_busy), is_mine_(!is_busy.exchange(true)) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      if (is_mine_) is_busy_.store(false);
    }
    bool is_mine() const { return is_mine_; }

   private:
    std::atomic<bool>& is_busy_;
    const bool is_mine_;
  };

  /// The run is done, by a graph.
  bool is_captured(StretchRun& run) {
    const Turn turn(is_busy_);
    if (!turn.is_mine()) return false;
    try {
      Variant* const variant = variant_of(run);
      if (variant == nullptr || (variant->graph == nullptr && ++variant->runs <= recorder_.options_.runs_before)) {
        return false;
      }
      if (variant->graph != nullptr && !fits(*variant, run)) drop(*variant);
      if (variant->graph == nullptr && !capture(*variant, run)) return false;
      launch(*variant, run);
      return true;
    } catch (...) {
      // The cause shows when the kernels are run, and they may be run again.
      note_failure(status_of_current_exception().code());
      return false;
    }
  }

  void give_up() {
    gives_up_ = true;
    variants_.clear();
  }

  /// A failure that is temporary, or that the kernels have too, says nothing about graphs.
  void note_failure(Code code) {
    if (code == Code::resource_exhausted || code == Code::invalid_argument || code == Code::cancelled) return;
    if (++num_failures_ >= max_failures) give_up();
  }

  void drop(Variant& variant) { const std::unique_ptr<Graph> dropped = std::move(variant.graph); }

  bool is_for(const Variant& variant, const StretchRun& run) const {
    for (std::size_t i = 0; i < stretch_.inputs.size(); ++i) {
      const AnyTensor& input = run.input(stretch_.inputs[i]);
      if (input.dtype() != variant.inputs[i].first || input.shape() != variant.inputs[i].second) return false;
    }
    for (std::size_t i = 0; i < stretch_.host_inputs.size(); ++i) {
      if (!bitwise_equal(run.input(stretch_.host_inputs[i]), variant.host_inputs[i])) return false;
    }
    return true;
  }

  /// Null if there is none to be.
  Variant* variant_of(const StretchRun& run) {
    for (Variant& variant : variants_) {
      if (is_for(variant, run)) return &variant;
    }
    if (++num_changes_ > max_changes) {
      give_up();
      return nullptr;
    }
    Variant made;
    for (const SlotId slot : stretch_.inputs)
      made.inputs.emplace_back(run.input(slot).dtype(), run.input(slot).shape());
    for (const SlotId slot : stretch_.host_inputs) {
      const AnyTensor& input = run.input(slot);
      if (input.bytes() > max_host_bytes) {
        give_up();
        return nullptr;
      }
      made.host_inputs.push_back(input.deep_copy());
    }
    made.copies_input.resize(stretch_.inputs.size());
    made.copies_output.resize(stretch_.outputs.size());
    made.last_use = ++recorder_.clock_;
    if (variants_.size() < max_variants) return &variants_.emplace_back(std::move(made));
    Variant& oldest = *std::min_element(variants_.begin(), variants_.end(),
                                        [](const Variant& a, const Variant& b) { return a.last_use < b.last_use; });
    oldest = std::move(made);
    return &oldest;
  }

  /// Every input is where it was, and nobody has kept an output. Notes each difference.
  bool fits(Variant& variant, const StretchRun& run) const {
    bool fits = true;
    const Graph& graph = *variant.graph;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const AnyTensor& now = run.input(stretch_.inputs[i]);
      const Graph::Input& then = graph.inputs[i];
      if (now.bytes() == 0 || now.raw_data() == then.address) continue;
      if (then.own.is_initialized() && detail::misalignment_of(now) == detail::misalignment_of(then.own)) continue;
      variant.copies_input[i] = true;
      fits = false;
    }
    for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
      const Graph::Output& output = graph.outputs[o];
      if (output.kind != Graph::Output::Kind::in_buffer || variant.copies_output[o]) continue;
      if (graph.buffers[output.place].is_unique()) continue;
      variant.copies_output[o] = true;
      fits = false;
    }
    return fits;
  }

  bool capture(Variant& variant, StretchRun& run) {
    if (variant.captures == max_captures) return false;
    recorder_.make_room();
    // The kernels allocate blocks one after the other. After the run it is known which blocks are still there at the
    // end.
    std::vector<bool> keeps;
    Status status = rehearse(variant, run, keeps, nullptr);
    if (status.ok()) {
      auto graph = std::make_unique<Graph>(recorder_);
      status = rehearse(variant, run, keeps, graph.get());
      if (status.ok()) variant.graph = std::move(graph);
    }
    recorder_.bury_waiting();
    ++(status.ok() ? recorder_.captured_ : recorder_.refused_);
    if (status.ok()) {
      ++variant.captures;
    } else {
      variant.runs = -runs_until_retry;
      note_failure(status.code());  // which may have the variant go
    }
    return status.ok();
  }

  /// Runs the kernels on a stream that captures, in slots of their own. Other handles on the inputs are held, so none
  /// is written. `keeps` says which blocks that are allocated are there at the end; without a graph that is found out.
  Status rehearse(const Variant& variant, StretchRun& run, std::vector<bool>& keeps, Graph* made) {
    DeviceCore& core = recorder_.memory_.core();
    std::unique_ptr<Graph> forgotten;
    if (made == nullptr) forgotten = std::make_unique<Graph>(recorder_);
    Graph& graph = made != nullptr ? *made : *forgotten;
    std::vector<AnyTensor> slots(run.num_slots());
    for (const SlotId slot : stretch_.host_inputs) slots[slot.position()] = run.input(slot);
    for (const SlotId slot : stretch_.inputs) {
      const AnyTensor& input = run.input(slot);
      Graph::Input& of = graph.inputs.emplace_back();
      of.address = input.raw_data();
      if (variant.copies_input[graph.inputs.size() - 1] && input.bytes() != 0) {
        of.own = detail::allocate_like(input, recorder_.memory_.allocator());
      }
      slots[slot.position()] = of.own.is_initialized() ? of.own : input;
    }
    const std::vector<AnyTensor> inputs = slots;
    StreamHandle stream = StreamHandle::none;
    ErrorCode code = core.driver().create_stream(core.device(), stream);
    if (code != ErrorCode::ok) return core.status_of(code, "creating a stream that captures");
    Status status;
    code = core.driver().begin_capture(core.device(), stream);
    if (code == ErrorCode::ok) {
      DeviceCore::Capturing capturing(core, stream, keeps);
      std::vector<bool> kept;
      try {
        graph.step = std::make_shared<CudaStep>(recorder_.memory_, recorder_.device_name_);
        StepContext services = run.services();
        services.device_step = graph.step.get();
        if (run.rehearse(services, slots)) {
          take_outputs_of(slots, inputs, graph);
          kept = kept_blocks(capturing.allocated(), graph);
        } else {
          status = Status::cancelled("the step must stop");
        }
      } catch (...) {
        status = status_of_current_exception();
      }
      code = core.driver().end_capture(core.device(), stream, made != nullptr ? &graph.work->handle : nullptr);
      graph.work->held = capturing.take_held();
      graph.blocks.all = std::move(capturing.shared());
      // If the kernels do not repeat, another graph may write to blocks that this graph keeps, or this graph to
      // blocks that it does not keep.
      if (made != nullptr && status.ok() && kept != keeps) status = Status::unimplemented("kernels that do not repeat");
      keeps = std::move(kept);
    }
    core.driver().destroy_stream(core.device(), stream);
    return status.ok() ? core.status_of(code, "capturing") : status;
  }

  static std::vector<bool> kept_blocks(const std::vector<void*>& allocated, const Graph& graph) {
    std::vector<bool> kept(allocated.size());
    const auto keep = [&](const void* block) {
      const auto last = std::find(allocated.rbegin(), allocated.rend(), block);
      if (last != allocated.rend()) kept[static_cast<std::size_t>(allocated.rend() - last) - 1] = true;
    };
    for (const BufferRef& buffer : graph.buffers) keep(std::as_const(*buffer.get()).data());
    if (const ErrorSlot* slot = graph.step->noted()) keep(slot);
    return kept;
  }

  /// Throws Internal if one is missing.
  void take_outputs_of(std::vector<AnyTensor>& slots, const std::vector<AnyTensor>& inputs, Graph& graph) const {
    const auto take = [&](SlotId slot) {
      AnyTensor& output = slots[slot.position()];
      if (!output.is_initialized()) throw_error(Status::internal("a kernel has left an output unset"));
      return std::exchange(output, AnyTensor());
    };
    for (const SlotId slot : stretch_.outputs) graph.outputs.push_back(describe(take(slot), inputs, graph));
    // Nobody else may write to it.
    for (const SlotId slot : stretch_.host_outputs) graph.outputs.emplace_back().as_is = take(slot).deep_copy();
  }

  Graph::Output describe(AnyTensor output, const std::vector<AnyTensor>& inputs, Graph& graph) const {
    using Kind = Graph::Output::Kind;
    Graph::Output described;
    if (!output.buffer()) {
      described.as_is = std::move(output);
      return described;
    }
    described.dtype = output.dtype();
    described.shape = output.shape();
    for (std::size_t i = 0; i < stretch_.inputs.size(); ++i) {
      const AnyTensor& input = inputs[stretch_.inputs[i].position()];
      if (!output.shares_buffer_with(input)) continue;
      described.kind = Kind::of_input;
      described.place = i;
      described.offset = detail::offset_in_buffer(output) - detail::offset_in_buffer(input);
      return described;
    }
    described.kind = Kind::in_buffer;
    described.offset = detail::offset_in_buffer(output);
    const auto found = std::find(graph.buffers.begin(), graph.buffers.end(), output.buffer());
    described.place = static_cast<std::size_t>(found - graph.buffers.begin());
    if (found == graph.buffers.end()) graph.buffers.push_back(output.buffer());
    return described;
  }

  /// Throws the driver's error, before the run has let go of anything.
  void launch(Variant& variant, StretchRun& run) {
    Graph& graph = *variant.graph;
    CudaMemory& memory = recorder_.memory_;
    DeviceCore& core = memory.core();
    std::vector<AnyTensor> outputs = take_outputs(variant, run);
    const auto copy = [&](AnyTensor& to, const AnyTensor& from) {
      core.require_ok(core.driver().copy(core.device(), to.raw_data(), from.raw_data(), to.bytes(), CopyKind::on_device,
                                         core.compute()),
                      "copying for a graph");
    };
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      AnyTensor& own = graph.inputs[i].own;
      if (own.is_initialized()) copy(own, run.input(stretch_.inputs[i]));
    }
    const ErrorCode code = core.driver().launch_graph(core.device(), graph.work->handle, core.compute());
    if (code != ErrorCode::ok) {
      drop(variant);
      core.require_ok(code, "launching a graph");
    }
    static_cast<CudaStep*>(run.services().device_step)->take_errors_of(graph.step);
    for (std::size_t o = 0; o < stretch_.outputs.size(); ++o) {
      if (copies(variant, o)) copy(outputs[o], made_in_buffer(graph, graph.outputs[o]));
    }
    run.release();
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const std::size_t h = o - stretch_.outputs.size();
      run.set_output(o < stretch_.outputs.size() ? stretch_.outputs[o] : stretch_.host_outputs[h],
                     std::move(outputs[o]));
    }
    ++recorder_.launched_;
    num_changes_ = num_failures_ = 0;
    variant.last_use = ++recorder_.clock_;
    last_use_.store(variant.last_use, std::memory_order_relaxed);
  }

  static bool copies(const Variant& variant, std::size_t output) {
    return output < variant.copies_output.size() && variant.copies_output[output] &&
           variant.graph->outputs[output].kind == Graph::Output::Kind::in_buffer;
  }

  static AnyTensor made_in_buffer(const Graph& graph, const Graph::Output& output) {
    return AnyTensor::over(graph.buffers[output.place], output.offset, output.dtype, output.shape);
  }

  std::vector<AnyTensor> take_outputs(const Variant& variant, const StretchRun& run) const {
    using Kind = Graph::Output::Kind;
    const Graph& graph = *variant.graph;
    std::vector<AnyTensor> taken;
    taken.reserve(graph.outputs.size());
    for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
      const Graph::Output& output = graph.outputs[o];
      if (output.kind == Kind::as_is) {
        taken.push_back(output.as_is.bytes() == 0 ? output.as_is : output.as_is.deep_copy());
      } else if (output.kind == Kind::of_input) {
        const AnyTensor& input = run.input(stretch_.inputs[output.place]);
        taken.push_back(AnyTensor::over(input.buffer(), detail::offset_in_buffer(input) + output.offset, output.dtype,
                                        output.shape));
      } else if (copies(variant, o)) {
        taken.push_back(detail::allocate_like(made_in_buffer(graph, output), recorder_.memory_.allocator()));
      } else {
        taken.push_back(made_in_buffer(graph, output));
      }
    }
    return taken;
  }

  GraphRecorder& recorder_;
  const Stretch stretch_;
  std::atomic<bool> is_busy_{false};
  std::atomic<bool> gives_up_{false};
  std::atomic<std::uint64_t> last_use_{0};
  // Used only by the thread whose turn it is.
  std::vector<Variant> variants_;
  int num_failures_ = 0;
  int num_changes_ = 0;
};

GraphRecorder::GraphRecorder(CudaMemory& memory, std::string device_name, Options options)
    : memory_(memory), device_name_(std::move(device_name)), options_(options) {
  memory_.allocator().set_reclaim([this] { release(); });
}

GraphRecorder::~GraphRecorder() {
  memory_.allocator().set_reclaim(nullptr);
  bury_waiting();
}

std::unique_ptr<WorkRecorder::Record> GraphRecorder::record(Stretch stretch) {
  return std::make_unique<GraphRecord>(*this, std::move(stretch));
}

GraphRecorder::Counts GraphRecorder::counts() const noexcept {
  return {captured_.load(), launched_.load(), refused_.load(), alive_.load()};
}

void GraphRecorder::release() noexcept {
  std::vector<std::unique_ptr<Graph>> graphs;  // go without the mutex
  try {
    const std::lock_guard lock(mutex_);
    for (GraphRecord* record : records_) record->take_graphs(graphs);
  } catch (...) {  // no memory to note them in
  }
}

void GraphRecorder::make_room() noexcept {
  if (alive_.load() < options_.max_graphs) return;
  std::vector<std::unique_ptr<Graph>> graphs;  // go without the mutex
  try {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<std::uint64_t, GraphRecord*>> by_use;  // others launch meanwhile
    by_use.reserve(records_.size());
    for (GraphRecord* record : records_) by_use.emplace_back(record->last_use(), record);
    std::sort(by_use.begin(), by_use.end());
    for (const auto& [last_use, record] : by_use) {
      if (alive_.load() < options_.max_graphs + graphs.size()) break;
      record->take_graphs(graphs);
    }
  } catch (...) {  // no memory to note them in
  }
}

/// It may be running yet.
void GraphRecorder::bury(std::shared_ptr<detail::LaunchedGraph> graph) noexcept {
  DeviceCore& core = memory_.core();
  try {
    if (core.capturing() != nullptr) {
      const std::lock_guard lock(mutex_);
      dying_.push_back(std::move(graph));
    } else {
      memory_.completions().after(memory_.completions().ticket(), core.compute(), graph, [](ErrorCode) {});
    }
  } catch (...) {
    try {
      core.keep(graph);
    } catch (...) {  // no memory to keep it in
      core.wait_until_idle();
    }
  }
}

void GraphRecorder::bury_waiting() noexcept {
  std::vector<std::shared_ptr<detail::LaunchedGraph>> dying;
  {
    const std::lock_guard lock(mutex_);
    dying.swap(dying_);
  }
  for (std::shared_ptr<detail::LaunchedGraph>& graph : dying) bury(std::move(graph));
}

}  // namespace dflow::cuda
