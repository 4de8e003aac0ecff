// Random steps: graphs of cheap, expensive, asynchronous, failing and waiting kernels over one to four devices. Several
// threads run them while the graph grows, with random feeds, fetches, targets and cancellations. The results are
// compared bit for bit with a session of one thread, one device, no passes and one order.
//
// DFLOW_RANDOM_STEPS: the number of steps. DFLOW_RANDOM_STEPS_SEED: the seed of a failed round, which is run alone.
#include <dflow/session/session.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/end_when_cancelled.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

// ---- the parts of the test that the kernels need ----

/// Threads outside of the sessions: kernels end on them, and they cancel steps.
class Outsiders {
 public:
  explicit Outsiders(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        for (;;) {
          UniqueFunction<void()> task;
          {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return !tasks_.empty() || ends_; });
            if (tasks_.empty()) return;
            task = std::move(tasks_.front());
            tasks_.pop_front();
          }
          task();
        }
      });
    }
  }
  ~Outsiders() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void post(UniqueFunction<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UniqueFunction<void()>> tasks_;
  std::vector<std::thread> threads_;
  bool ends_ = false;
};

std::atomic<Outsiders*> outsiders{nullptr};

void pass_time(int turns) {
  for (int i = 0; i < turns; ++i) std::this_thread::yield();
}

// ---- the ops ----

/// a / 2 + b / 4 + c, in the buffer of `a` where that is free.
struct Cheap : Op<"RandomCheap", TypeList<float>> {
  struct Attrs {
    float c = 0;
  };
  using Inputs = In<T, T>;
  static PartialShape infer(const Attrs&, PartialShape a, PartialShape) { return a; }
};
/// The same; the executor takes it for long work.
struct Costly : Op<"RandomCostly", TypeList<float>> {
  struct Attrs {
    float c = 0;
    float microseconds = 100;
  };
  using Inputs = In<T, T>;
  static PartialShape infer(const Attrs&, PartialShape a, PartialShape) { return a; }
};
/// Two outputs: a / 2 and 1 - a / 4.
struct Two : Op<"RandomTwo", TypeList<float>> {
  using Outputs = Out<T, T>;
  static void infer(InferContext& context) {
    context.set_output(0, context.input(0));
    context.set_output(1, context.input(0));
  }
};
/// a / 2 + c. `end` says how it ends: 0 before run_async returns, 1 by a thread outside of the sessions, 2 by a task of
/// the pool.
struct RandomLater : Op<"RandomLater", TypeList<float>> {
  struct Attrs {
    float c = 0;
    std::int64_t end = 0;
    std::int64_t turns = 0;
  };
  static PartialShape infer(const Attrs&, PartialShape a) { return a; }
};
/// a, unless the second input exceeds the level: then it throws, or ends with an error if it is asynchronous.
struct Fails : Op<"RandomFails", TypeList<float>> {
  struct Attrs {
    float level = 0;
  };
  using Inputs = In<T, float>;
  static PartialShape infer(const Attrs&, PartialShape a, PartialShape) { return a; }
};
struct FailsLater : Op<"RandomFailsLater", TypeList<float>> {
  struct Attrs {
    float level = 0;
    bool throws = false;
  };
  using Inputs = In<T, float>;
  static PartialShape infer(const Attrs&, PartialShape a, PartialShape) { return a; }
};
/// a, unless the second input is positive: then it ends when the step is cancelled.
struct RandomWaits : Op<"RandomWaits", TypeList<float>> {
  using Inputs = In<T, float>;
  static PartialShape infer(const Attrs&, PartialShape a, PartialShape) { return a; }
};

constexpr auto random_ops = standard_ops + ops<Cheap, Costly, Two, RandomLater, Fails, FailsLater, RandomWaits>;

void mix(KernelContext& context, float c) {
  const std::span<const float> a = context.input<float>(0).span();
  const std::span<const float> b = context.input<float>(1).span();
  const Shape shape = context.input(0).shape();
  const std::span<float> y = context.forward_or_allocate<float>(0, 0, shape).span();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] * 0.5f + b[i] * 0.25f + c;
}

}  // namespace

template <>
struct dflow::Kernel<Cheap, Cpu, float> {
  Cheap::Attrs attrs;
  void operator()(KernelContext& context) const { mix(context, attrs.c); }
};
template <>
struct dflow::Kernel<Costly, Cpu, float> {
  Costly::Attrs attrs;
  explicit Kernel(const KernelInit& init) : attrs(init.node.attrs_as<Costly>()) {}
  double cost_ns(const KernelInit&) const { return static_cast<double>(attrs.microseconds) * 1e3; }
  void operator()(KernelContext& context) const { mix(context, attrs.c); }
};
template <>
struct dflow::Kernel<Two, Cpu, float> {
  void operator()(KernelContext&, const Tensor<float>& a, Tensor<float>& half, Tensor<float>& rest) const {
    for (std::size_t i = 0; i < a.span().size(); ++i) {
      half.span()[i] = a.span()[i] * 0.5f;
      rest.span()[i] = 1.0f - a.span()[i] * 0.25f;
    }
  }
};
template <>
struct dflow::Kernel<RandomLater, Cpu, float> {
  RandomLater::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    auto end = [&context, c = attrs.c, turns = static_cast<int>(attrs.turns), done = std::move(done)]() mutable {
      pass_time(turns);
      const std::span<const float> a = context.input<float>(0).span();
      const std::span<float> y = context.allocate_output<float>(0, context.input(0).shape()).span();
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] * 0.5f + c;
      done(Status());
    };
    if (attrs.end == 0) return end();
    if (attrs.end == 1) return outsiders.load()->post(std::move(end));
    context.pool().schedule(std::move(end));
  }
};
template <>
struct dflow::Kernel<Fails, Cpu, float> {
  Fails::Attrs attrs;
  void operator()(KernelContext& context) const {
    if (context.input<float>(1).scalar() > attrs.level) throw Error(Status::data_loss("planned"));
    context.set_output(0, context.input(0));
  }
};
template <>
struct dflow::Kernel<FailsLater, Cpu, float> {
  FailsLater::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    const bool fails = context.input<float>(1).scalar() > attrs.level;
    if (fails && attrs.throws) throw Error(Status::data_loss("planned"));
    context.set_output(0, context.input(0));
    outsiders.load()->post(
        [done = std::move(done), fails]() mutable { done(fails ? Status::data_loss("planned") : Status()); });
  }
};
template <>
struct dflow::Kernel<RandomWaits, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    context.set_output(0, context.input(0));
    if (context.input<float>(1).scalar() <= 0) return done(Status());
    end_when_cancelled(context, std::move(done));
  }
};

namespace {

using Rng = std::mt19937_64;

/// Constants are fed too.
constexpr bool feeds_constants = true;

int below(Rng& rng, int n) { return static_cast<int>(rng() % static_cast<std::uint64_t>(n)); }
bool one_in(Rng& rng, int n) { return below(rng, n) == 0; }
float small_number(Rng& rng) { return static_cast<float>(below(rng, 4000) - 2000) / 1000.0f; }

// ---- the graph, and the test's knowledge of it ----

enum class Kind { other, constant, waits };
struct Made {
  Operation operation;
  std::vector<int> inputs;    ///< numbers of edges
  std::vector<int> controls;  ///< numbers of nodes
  Kind kind = Kind::other;
};
struct Edge {
  AnyOutput output;
  int node = 0;
};

/// A graph that one thread builds and others pick from.
class RandomGraph {
 public:
  RandomGraph(std::uint64_t seed, int devices, std::int64_t size) : rng_(seed), devices_(devices), size_(size) {
    const auto add_placeholder = [&](const Shape& shape) {
      const auto scope = random_scope();
      const Output<float> x = placeholder<float>(graph, PartialShape(shape));
      append(x.operation(), {x}, {}, {});
    };
    for (int i = 0; i < num_placeholders; ++i) add_placeholder({size});
    add_placeholder({});  // whether nodes fail
    add_placeholder({});  // whether nodes wait
    const auto add_constant = [&] {
      const auto scope = random_scope();
      const Output<float> c = constant(graph, random_tensor(rng_, size_));
      append(c.operation(), {c}, {}, {}, Kind::constant);
    };
    for (int i = 0; i < 3; ++i) add_constant();
    for (int i = 0; i < 2; ++i) {
      const auto scope = random_scope();
      const Variable<float> v(graph, random_tensor(rng_, size_));
      const Output<float>& value = v;
      append(value.operation(), {value}, {}, {});
    }
  }

  static constexpr int num_placeholders = 3;
  static constexpr int fails_edge = num_placeholders, waits_edge = num_placeholders + 1;
  static constexpr int first_value = num_placeholders + 2;

  static Tensor<float> random_tensor(Rng& rng, std::int64_t size) {
    Tensor<float> tensor(Shape{size});
    for (float& x : tensor.span()) x = small_number(rng);
    return tensor;
  }

  std::int64_t size() const { return size_; }

  void add_node() {
    const auto scope = random_scope();
    std::vector<int> controls;
    std::vector<Operation> waits_for;
    std::optional<ScopeGuard> after;
    if (one_in(rng_, 6)) {
      for (int i = 0; i < 2; ++i) {
        controls.push_back(below(rng_, static_cast<int>(nodes_.size())));
        waits_for.push_back(nodes_[static_cast<std::size_t>(controls.back())].operation);
      }
      after.emplace(graph.control_dependencies(waits_for));
    }
    const int a = pick(), b = pick();
    const Output<float> x = edge(a), y = edge(b);
    const float c = static_cast<float>(below(rng_, 3));
    switch (below(rng_, 14)) {
      case 0:
      case 1:
      case 2:
        return add(apply<Cheap>(x, y, {.c = c}), {a, b}, controls);
      case 3:
      case 4:
        return add(apply<Costly>(x, y, {.c = c, .microseconds = static_cast<float>(10 << below(rng_, 5))}), {a, b},
                   controls);
      case 5:
      case 6:
        return add(apply<RandomLater>(x, {.c = c, .end = below(rng_, 3), .turns = below(rng_, 4)}), {a}, controls);
      case 7:
        return add(maximum(x, y), {a, b}, controls);
      case 8:
        return add(identity(x), {a}, controls);
      case 9:
        return add(x * 0.5f, {a}, controls);
      case 10: {
        const auto [half, rest] = apply<Two>(x);
        append(half.operation(), {half, rest}, {a}, controls);
        return;
      }
      case 11:
        return add(apply<Fails>(x, edge(fails_edge), {.level = small_number(rng_) + 2}), {a, fails_edge}, controls);
      case 12:
        return add(apply<FailsLater>(x, edge(fails_edge), {.level = small_number(rng_) + 2, .throws = one_in(rng_, 2)}),
                   {a, fails_edge}, controls);
      default: {
        const Output<float> z = apply<RandomWaits>(x, edge(waits_edge));
        append(z.operation(), {z}, {a, waits_edge}, controls, Kind::waits);
      }
    }
  }

  /// Nodes and edges that there are, at one moment.
  struct View {
    std::vector<Made> nodes;
    std::vector<Edge> edges;

    const Made& node_of(int edge) const {
      return nodes[static_cast<std::size_t>(edges[static_cast<std::size_t>(edge)].node)];
    }
  };
  View view() const {
    const std::lock_guard lock(mutex_);
    return {nodes_, edges_};
  }

  Graph graph;

 private:
  ScopeGuard random_scope() {
    const int d = below(rng_, devices_ + 2);
    return graph.device(d >= devices_ ? std::string() : str_cat("/cpu:", d));
  }
  Output<float> edge(int i) const { return Output<float>::unchecked(edges_[static_cast<std::size_t>(i)].output); }
  /// Often one of the last.
  int pick() {
    const int count = static_cast<int>(edges_.size());
    const int window = one_in(rng_, 2) ? std::min(8, count - first_value) : count - first_value;
    const int i = count - 1 - below(rng_, window);
    return one_in(rng_, 8) ? below(rng_, num_placeholders) : i;
  }
  void add(const Output<float>& made, std::vector<int> inputs, std::vector<int> controls) {
    append(made.operation(), {made}, std::move(inputs), std::move(controls));
  }
  void append(Operation operation, std::vector<AnyOutput> outputs, std::vector<int> inputs, std::vector<int> controls,
              Kind kind = Kind::other) {
    const std::lock_guard lock(mutex_);
    for (const AnyOutput& output : outputs) edges_.push_back({output, static_cast<int>(nodes_.size())});
    nodes_.push_back({operation, std::move(inputs), std::move(controls), kind});
  }

  Rng rng_;
  const int devices_;
  const std::int64_t size_;
  mutable std::mutex mutex_;  ///< guards the lists against readers; the builder reads without
  std::vector<Made> nodes_;
  std::vector<Edge> edges_;
};

/// Whether a step needs a node that waits.
bool needs_waiting(const RandomGraph::View& view, const std::vector<int>& feeds, const std::vector<int>& fetches,
                   const std::vector<int>& targets) {
  std::vector<bool> seen(view.nodes.size());
  std::vector<int> stack;
  const auto need = [&](int node) {
    if (seen[static_cast<std::size_t>(node)]) return;
    seen[static_cast<std::size_t>(node)] = true;
    stack.push_back(node);
  };
  const auto need_edge = [&](int edge) {
    if (std::find(feeds.begin(), feeds.end(), edge) == feeds.end())
      need(view.edges[static_cast<std::size_t>(edge)].node);
  };
  for (const int fetch : fetches) need_edge(fetch);
  for (const int target : targets) need(target);
  bool waits = false;
  while (!stack.empty()) {
    const Made& node = view.nodes[static_cast<std::size_t>(stack.back())];
    stack.pop_back();
    waits |= node.kind == Kind::waits;
    for (const int input : node.inputs) need_edge(input);
    for (const int control : node.controls) need(control);
  }
  return waits;
}

// ---- one step ----

struct Outcome {
  Status status;
  std::vector<AnyTensor> results;
};

struct Step {
  std::vector<int> feeds, fetches, targets;
  std::vector<Tensor<float>> fed;
  bool is_cancelled = false;
  bool must_not_end_well = false;  ///< it waits for its cancellation

  std::vector<Feed> feed_list(const RandomGraph::View& view, bool waits) const {
    std::vector<Feed> list;
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const AnyTensor value = feeds[i] == RandomGraph::waits_edge && !waits ? Tensor<float>(0.0f) : fed[i];
      list.emplace_back(view.edges[static_cast<std::size_t>(feeds[i])].output, value);
    }
    return list;
  }
  std::vector<AnyOutput> edges(const RandomGraph::View& view) const {
    std::vector<AnyOutput> list;
    for (const int fetch : fetches) list.push_back(view.edges[static_cast<std::size_t>(fetch)].output);
    return list;
  }
  std::vector<Operation> operations(const RandomGraph::View& view) const {
    std::vector<Operation> list;
    for (const int target : targets) list.push_back(view.nodes[static_cast<std::size_t>(target)].operation);
    return list;
  }
};

Step random_step(Rng& rng, const RandomGraph::View& view, std::int64_t size) {
  Step step;
  std::set<int> fed;
  for (int i = 0; i < RandomGraph::first_value; ++i) {
    if (!one_in(rng, 40)) fed.insert(i);
  }
  const int num_edges = static_cast<int>(view.edges.size());
  for (int i = below(rng, 3); i > 0; --i) {
    const int feed = below(rng, num_edges);
    if (feeds_constants || view.node_of(feed).kind != Kind::constant) {
      fed.insert(feed);
    }
  }
  step.feeds.assign(fed.begin(), fed.end());
  std::shuffle(step.feeds.begin(), step.feeds.end(), rng);
  for (int i = below(rng, 5); i > 0; --i) {
    const int fetch = below(rng, num_edges);
    step.fetches.push_back(fetch == RandomGraph::waits_edge ? 0 : fetch);  // the reference is fed another
  }
  if (!step.fetches.empty() && one_in(rng, 4)) step.fetches.push_back(step.fetches[0]);
  for (int i = below(rng, 3); i > 0; --i) step.targets.push_back(below(rng, static_cast<int>(view.nodes.size())));
  if (step.fetches.empty() && step.targets.empty()) step.fetches.push_back(0);
  for (const int feed : step.feeds) {
    if (feed == RandomGraph::fails_edge) {
      step.fed.emplace_back(one_in(rng, 4) ? small_number(rng) + 2 : -1.0f);
    } else if (feed == RandomGraph::waits_edge) {
      step.fed.emplace_back(0.0f);
    } else {
      step.fed.push_back(RandomGraph::random_tensor(rng, size));
    }
  }
  return step;
}

bool same_bits(const AnyTensor& a, const AnyTensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0);
}

Outcome run_now(Session& session, const RunOptions& options, const std::vector<Feed>& feeds,
                const std::vector<AnyOutput>& edges, const std::vector<Operation>& targets) {
  Outcome outcome;
  outcome.results.resize(edges.size());
  try {
    session.run_erased(options, nullptr, feeds, edges, targets, outcome.results);
  } catch (const Error& error) {
    outcome.status = error.status();
  }
  return outcome;
}

std::future<Outcome> run_later(Session& session, const RunOptions& options, const std::vector<Feed>& feeds,
                               const std::vector<AnyOutput>& edges, const std::vector<Operation>& targets) {
  auto promise = std::make_shared<std::promise<Outcome>>();
  std::future<Outcome> future = promise->get_future();
  session.run_async_erased(options, feeds, edges, targets, [promise](Status status, std::vector<AnyTensor> results) {
    promise->set_value({std::move(status), std::move(results)});
  });
  return future;
}

// ---- one round: a graph, two sessions, some threads that run steps ----

struct StepRound {
  std::uint64_t seed;
  std::mutex mutex;
  std::vector<std::string> faults;

  void fault(const std::string& text) {
    const std::lock_guard lock(mutex);
    faults.push_back(text);
  }
};

/// The error in the outcome of a step; empty if there is none.
std::string verdict(const Step& step, const Outcome& got, const Outcome& wanted) {
  if (!got.status.ok()) {
    const Code code = got.status.code();
    if (step.is_cancelled && (code == Code::cancelled || code == Code::deadline_exceeded)) return "";
    if (code == wanted.status.code()) return "";
    return str_cat("ended with ", got.status.to_string(), " instead of ", wanted.status.to_string());
  }
  if (step.must_not_end_well) return "ended well although a kernel waits for its cancellation";
  if (!wanted.status.ok()) return str_cat("ended well instead of with ", wanted.status.to_string());
  if (got.results.size() != wanted.results.size()) return "has another number of results";
  for (std::size_t i = 0; i < got.results.size(); ++i) {
    if (same_bits(got.results[i], wanted.results[i])) continue;
    return str_cat("differs in result ", i, ", edge ", step.fetches[i], ": ", got.results[i].to_string(),
                   " instead of ", wanted.results[i].to_string());
  }
  return "";
}

/// Results are the caller's own: a write to them changes no feed and no other result. Later steps show other changes.
std::string write_to_results(const Step& step, const std::vector<AnyTensor>& fed_copies, Outcome& got) {
  for (std::size_t i = 0; i < got.results.size(); ++i) {
    for (float& x : got.results[i].span<float>()) x = 1e6f + static_cast<float>(i);
  }
  for (std::size_t i = 0; i < got.results.size(); ++i) {
    for (const float x : got.results[i].span<float>()) {
      if (x != 1e6f + static_cast<float>(i)) return str_cat("result ", i, " shares memory with another");
    }
  }
  for (std::size_t i = 0; i < step.fed.size(); ++i) {
    if (!same_bits(step.fed[i], fed_copies[i])) return str_cat("feed ", i, " was written");
  }
  return "";
}

struct RoundSetup {
  SessionOptions options;
  std::shared_ptr<VirtualClock> clock;  ///< null: real time
};

/// Ends a step from outside, at some time.
RunOptions random_end(Rng& rng, const RoundSetup& setup, std::shared_ptr<std::stop_source>& stop) {
  RunOptions options;
  const int turns = below(rng, 2) * below(rng, 60);
  if (one_in(rng, 2)) {
    stop = std::make_shared<std::stop_source>();
    options.stop = stop->get_token();
    if (one_in(rng, 8)) {
      stop->request_stop();
    } else {
      outsiders.load()->post([stop, turns] {
        pass_time(turns);
        stop->request_stop();
      });
    }
  } else if (setup.clock != nullptr) {
    options.deadline = std::chrono::seconds(1 + below(rng, 3));
  } else {
    options.deadline = std::chrono::microseconds(below(rng, 2000) - 20);
  }
  return options;
}

void run_steps(StepRound& round, std::uint64_t seed, int count, RandomGraph& graph, Session& session,
               Session& reference, const RoundSetup& setup, std::atomic<std::int64_t>& progress) {
  Rng rng(seed);
  for (int s = 0; s < count; ++s) {
    const RandomGraph::View view = graph.view();
    Step step = random_step(rng, view, graph.size());
    std::shared_ptr<std::stop_source> stop;
    RunOptions options;
    if (one_in(rng, 3)) {
      options = random_end(rng, setup, stop);
      step.is_cancelled = true;
      const auto waits = std::find(step.feeds.begin(), step.feeds.end(), RandomGraph::waits_edge);
      if (waits != step.feeds.end() && one_in(rng, 2)) {
        step.fed[static_cast<std::size_t>(waits - step.feeds.begin())] = Tensor<float>(1.0f);
        step.must_not_end_well = needs_waiting(view, step.feeds, step.fetches, step.targets);
      }
    } else if (one_in(rng, 4)) {
      options.stop = std::stop_source().get_token();  // nobody can stop it
    }
    std::vector<AnyTensor> fed_copies;
    for (const Tensor<float>& fed : step.fed) fed_copies.push_back(fed.deep_copy());
    const std::vector<AnyOutput> edges = step.edges(view);
    const std::vector<Operation> targets = step.operations(view);
    const Outcome wanted = run_now(reference, {}, step.feed_list(view, false), edges, targets);
    Outcome got;
    const bool blocks = one_in(rng, 2);
    if (blocks) {
      got = run_now(session, options, step.feed_list(view, true), edges, targets);
    } else {
      got = run_later(session, options, step.feed_list(view, true), edges, targets).get();
    }
    std::string wrong = verdict(step, got, wanted);
    if (wrong.empty() && got.status.ok()) wrong = write_to_results(step, fed_copies, got);
    if (!wrong.empty())
      round.fault(str_cat("step ", s, " of thread seed ", seed, blocks ? " (run) " : " (run_async) ", wrong));
    ++progress;
  }
}

RoundSetup random_setup(Rng& rng, int devices) {
  static constexpr int thread_counts[] = {1, 1, 2, 2, 3, 4, 8, 16};
  static constexpr InterOp inter_ops[] = {InterOp::automatic, InterOp::parallel, InterOp::sequential};
  RoundSetup setup;
  setup.options.ops = random_ops;
  setup.options.num_threads = thread_counts[below(rng, 8)];
  setup.options.num_cpu_devices = devices;
  setup.options.inter_op = inter_ops[below(rng, 3)];
  setup.options.passes = {!one_in(rng, 3), !one_in(rng, 3), !one_in(rng, 3)};
  if (one_in(rng, 3)) setup.options.clock = setup.clock = std::make_shared<VirtualClock>();
  if (one_in(rng, 3)) setup.options.step_cache = {.max_nodes_run_once = 50, .max_nodes = 100, .max_steps = 4};
  return setup;
}

/// Runs about `count` steps; false if something was wrong.
int run_round(StepRound& round, int count, std::atomic<std::int64_t>& progress) {
  Rng rng(round.seed);
  const int devices = 1 + below(rng, 4);
  static constexpr std::int64_t sizes[] = {0, 1, 3, 7, 16, 16, 33, 3000};
  RandomGraph graph(rng(), devices, sizes[below(rng, 8)]);
  for (int i = 4 + below(rng, 50); i > 0; --i) graph.add_node();
  const RoundSetup setup = random_setup(rng, devices);
  auto session = std::make_unique<Session>(graph.graph, setup.options);
  Session reference(graph.graph, {.ops = random_ops,
                                  .num_threads = 1,
                                  .passes = PassOptions::none(),
                                  .inter_op = InterOp::sequential,
                                  .soft_placement = true});
  const Operation initialize = initialize_variables(graph.graph);
  session->run(initialize);
  reference.run(initialize);

  const int num_runners = 1 + below(rng, 4);
  const int each = std::max(1, count / num_runners);
  std::atomic<int> running{num_runners};
  std::vector<std::thread> runners;
  for (int r = 0; r < num_runners; ++r) {
    runners.emplace_back([&, seed = rng()] {
      run_steps(round, seed, each, graph, *session, reference, setup, progress);
      --running;
    });
  }
  const int growth = one_in(rng, 2) ? below(rng, 40) : 0;
  for (int i = 0; i < growth; ++i) {
    graph.add_node();
    std::this_thread::yield();
  }
  while (running > 0) {  // time goes by only where it is virtual
    if (setup.clock != nullptr) setup.clock->advance(std::chrono::milliseconds(below(rng, 100)));
    std::this_thread::yield();
  }
  for (std::thread& runner : runners) runner.join();

  // Steps under way outlive their session.
  const RandomGraph::View view = graph.view();
  std::vector<Step> last;
  std::vector<Outcome> wanted;
  std::vector<std::future<Outcome>> got;
  for (int i = below(rng, 4); i > 0; --i) {
    last.push_back(random_step(rng, view, graph.size()));
    const std::vector<AnyOutput> edges = last.back().edges(view);
    const std::vector<Operation> targets = last.back().operations(view);
    wanted.push_back(run_now(reference, {}, last.back().feed_list(view, false), edges, targets));
    got.push_back(run_later(*session, {}, last.back().feed_list(view, true), edges, targets));
  }
  session = nullptr;
  for (std::size_t i = 0; i < last.size(); ++i) {
    const std::string wrong = verdict(last[i], got[i].get(), wanted[i]);
    if (!wrong.empty()) round.fault(str_cat("step ", i, " of those that outlive the session ", wrong));
    ++progress;
  }
  return num_runners * each + static_cast<int>(last.size());
}

/// Ends the process, with the seed, if no step ends for a minute.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  std::atomic<std::int64_t> progress{0};
  std::atomic<std::uint64_t> seed{0};

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    for (std::int64_t seen = -1; !changed_.wait_for(lock, std::chrono::seconds(60), [this] { return ends_; });) {
      const std::int64_t now = progress.load();
      if (now == seen) {
        std::fprintf(stderr, "no step has ended for a minute: DFLOW_RANDOM_STEPS_SEED=%llu\n",
                     static_cast<unsigned long long>(seed.load()));
        std::abort();
      }
      seen = now;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

std::optional<std::uint64_t> number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("random steps end, and give what one thread and one device give", "[session][random]") {
  const auto wanted = static_cast<std::int64_t>(number_of("DFLOW_RANDOM_STEPS").value_or(2000));
  const std::optional<std::uint64_t> only = number_of("DFLOW_RANDOM_STEPS_SEED");
  Outsiders threads(3);
  outsiders = &threads;
  Watchdog watchdog;
  std::int64_t count = 0;
  for (std::uint64_t r = 0; count < wanted; ++r) {
    StepRound round{.seed = only.value_or(1000 + r), .mutex = {}, .faults = {}};
    watchdog.seed = round.seed;
    count += run_round(round, 24, watchdog.progress);
    if (round.faults.empty()) continue;
    for (const std::string& fault : round.faults) UNSCOPED_INFO(fault);
    FAIL_CHECK("DFLOW_RANDOM_STEPS_SEED=" << round.seed);
    break;
  }
  std::printf("count: %lld random steps\n", static_cast<long long>(count));
  outsiders = nullptr;
}
