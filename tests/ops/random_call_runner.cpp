#include "random_call.hpp"

#include <dflow/dflow.hpp>

#include <dflow/base/clock.hpp>
#include <dflow/op/import.hpp>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>

namespace dflow::testing {

namespace {

/// One request to a session: the tensors it gave, or its error.
struct Stage {
  const char* what;
  Code code = Code::ok;
  std::string message;
  std::vector<AnyTensor> values;

  bool ok() const { return code == Code::ok; }
  /// An error that one session may give and the other may not: sessions need different amounts of memory and time.
  bool ran_out() const { return code == Code::resource_exhausted || code == Code::deadline_exceeded; }
};

SessionOptions options_of(const RandomCall& call, bool is_second) {
  static const auto clock = std::make_shared<RealClock>();
  static const auto inline_pool = std::make_shared<InlinePool>();
  static const auto two_threads = [] {
    ThreadPoolOptions split_all;
    split_all.min_split_ns = 0;
    return std::make_shared<WorkStealingPool>(2, split_all);
  }();
  SessionOptions options;
  options.clock = clock;
  options.pool = inline_pool;
  options.memory_limit_bytes = std::size_t{4} << 20;
  options.reproducible = true;
  if (!is_second) return options;
  if (call.mode != 1) options.passes = PassOptions::none();
  if (call.mode != 0) options.pool = two_threads;
  if (call.mode == 2) options.inter_op = InterOp::parallel;
  if (call.mode == 3) options.num_cpu_devices = 2;
  return options;
}

/// The call in a graph and a session of its own, stage by stage.
class Side {
 public:
  Side(const RandomCall& call, bool is_second) : call_(call), options_(options_of(call, is_second)) {}

  std::vector<Stage> run() {
    attempt("import", [&](Stage&) { import(); });
    if (!stages_.back().ok()) return std::move(stages_);
    attempt("initialise", [&](Stage&) { initialise(); });
    attempt("call", [&](Stage& stage) { stage.values = call(); });
    attempt("read variables", [&](Stage& stage) { stage.values = read(); });
    xs_ = float_edges();
    if (xs_.empty() || ys_.empty()) return std::move(stages_);
    ys_ = differentiate("build gradients", "gradients");
    if (!ys_.empty()) differentiate("build second gradients", "second gradients");
    return std::move(stages_);
  }

 private:
  template <class F>
  void attempt(const char* what, F&& f) {
    Stage stage{what, Code::ok, "", {}};
    try {
      f(stage);
    } catch (const Error& error) {
      stage.code = error.code();
      stage.message = error.what();
    }
    stages_.push_back(std::move(stage));
  }

  void import() {
    GraphDef def = call_.def;
    if (options_.num_cpu_devices > 1) {
      for (NodeDef& node : def.nodes) {
        for (const std::string& name : call_.on_second) {
          if (node.name == name) node.device = "/cpu:1";
        }
      }
    }
    ImportOptions limits;
    limits.max_list_outputs = 1000;
    graph_ = import_graph(def, standard_op_table(), limits);
    session_ = std::make_unique<Session>(graph_, options_);
    for (const auto& [name, tensor] : call_.feeds) feeds_.emplace_back(graph_.output(name), tensor);
  }

  std::vector<AnyTensor> run(std::span<const Feed> feeds, std::span<const AnyOutput> edges,
                             std::span<const Operation> targets) {
    std::vector<AnyTensor> results(edges.size());
    RunOptions options;
    options.deadline = std::chrono::seconds(20);
    session_->run_erased(options, nullptr, feeds, edges, targets, results);
    return results;
  }

  void initialise() {
    std::vector<Operation> targets;
    for (const std::string& name : call_.variables) targets.push_back(graph_.find(name + "_assign"));
    if (!targets.empty()) run({}, {}, targets);
  }

  std::vector<AnyTensor> call() {
    const Operation operation = graph_.find("call");
    std::vector<AnyOutput> edges;
    for (std::size_t o = 0; o < operation.node().outputs.size(); ++o) {
      const AnyOutput edge(graph_.store(), Endpoint{operation.node_id(), static_cast<std::int32_t>(o)});
      if (edge.dtype() == DType::resource) continue;
      edges.push_back(edge);
      if (is_floating(edge.dtype())) ys_.push_back(edge);
    }
    const std::array<Operation, 1> targets{operation};
    return run(feeds_, edges, targets);
  }

  std::vector<AnyTensor> read() {
    std::vector<AnyOutput> edges;
    for (const std::string& name : call_.variables) edges.push_back(graph_.output(name + "_read"));
    return edges.empty() ? std::vector<AnyTensor>() : run({}, edges, {});
  }

  std::vector<AnyOutput> float_edges() {
    std::vector<AnyOutput> edges;
    for (const std::string& name : call_.edges) {
      const AnyOutput edge = graph_.output(name);
      if (is_floating(edge.dtype())) edges.push_back(edge);
    }
    return edges;
  }

  /// The gradients of `ys_` that exist, after they were run.
  std::vector<AnyOutput> differentiate(const char* build, const char* fetch) {
    std::vector<AnyOutput> edges;
    attempt(build, [&](Stage&) {
      const std::vector<Gradient> all = gradients(ys_, xs_);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].exists()) edges.push_back(densify(all[i], xs_[i]));
      }
    });
    if (!stages_.back().ok()) return {};
    if (!edges.empty()) {
      attempt(fetch, [&](Stage& stage) { stage.values = run(feeds_, edges, {}); });
    }
    return edges;
  }

  const RandomCall& call_;
  SessionOptions options_;
  Graph graph_;
  std::unique_ptr<Session> session_;
  std::vector<Feed> feeds_;
  std::vector<AnyOutput> xs_, ys_;
  std::vector<Stage> stages_;
};

std::string fault_of(const Stage& stage) {
  if (stage.code != Code::internal && stage.code != Code::unknown) return "";
  return str_cat(stage.what, ": ", stage.message);
}

template <class T>
bool same_element(const T& a, const T& b) {
  if constexpr (is_complex_element<T>) {
    return same_element(a.real(), b.real()) && same_element(a.imag(), b.imag());
  } else {
    // The sign and the payload of a NaN depend on the instruction that made it.
    if constexpr (is_floating_element<T>) {
      if (a != a && b != b) return true;
    }
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
}

/// The place of the first difference between two tensors, or nothing.
std::string first_difference(const AnyTensor& a, const AnyTensor& b) {
  if (bitwise_equal(a, b)) return "";
  if (a.dtype() != b.dtype() || a.shape() != b.shape() || !is_plain(a.dtype())) {
    return str_cat(a.to_string(), " in one session, ", b.to_string(), " in the other");
  }
  std::int64_t i = 0;
  visit_dtype<PlainTypes>(a.dtype(), [&]<class T>() {
    const auto of_a = a.span<T>();
    const auto of_b = b.span<T>();
    while (i < a.num_elements() &&
           same_element<T>(of_a[static_cast<std::size_t>(i)], of_b[static_cast<std::size_t>(i)]))
      ++i;
  });
  if (i == a.num_elements()) return "";
  const Shape flat{a.num_elements()};
  return str_cat("element ", i, " of ", a.num_elements(), " is ", a.reshaped(flat).slice(i, i + 1).to_string(),
                 " in one session, ", b.reshaped(flat).slice(i, i + 1).to_string(), " in the other");
}

std::string difference_of(const Stage& a, const Stage& b, bool compare_values) {
  if (a.ran_out() || b.ran_out()) return "";
  if (a.ok() != b.ok())
    return str_cat(a.what, ": a value in one session; in the other ", a.ok() ? b.message : a.message);
  if (!compare_values) return "";
  for (std::size_t i = 0; i < a.values.size() && i < b.values.size(); ++i) {
    const std::string difference = first_difference(a.values[i], b.values[i]);
    if (!difference.empty()) return str_cat(a.what, ": tensor ", i, ": ", difference);
  }
  return "";
}

}  // namespace

RandomCallOutcome run_random_call(const RandomCall& call) {
  RandomCallOutcome outcome;
  std::array<std::vector<Stage>, 2> sides;
  try {
    for (std::size_t s = 0; s < 2; ++s) sides[s] = Side(call, s == 1).run();
  } catch (const std::exception& error) {
    outcome.fault = str_cat("an exception that is no Error: ", error.what());
    return outcome;
  } catch (...) {
    outcome.fault = "an exception that is no std::exception";
    return outcome;
  }
  for (const auto& side : sides) {
    for (const Stage& stage : side) {
      if (outcome.fault.empty()) outcome.fault = fault_of(stage);
    }
  }
  for (std::size_t i = 0; i < std::min(sides[0].size(), sides[1].size()) && outcome.fault.empty(); ++i) {
    const Stage& a = sides[0][i];
    const Stage& b = sides[1][i];
    outcome.fault = difference_of(a, b, !call.draws_its_seed);
    if (a.ran_out() || b.ran_out()) break;  // later stages may stand on different state
    outcome.has_value |= a.ok() && a.what == std::string_view("call");
    outcome.has_gradient |= a.ok() && a.what == std::string_view("gradients");
  }
  return outcome;
}

}  // namespace dflow::testing
