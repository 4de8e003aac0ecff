#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/text/nearest_name.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/models/model.hpp>
#include <dflow/models/model_def.hpp>
#include <dflow/op/import.hpp>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace dflow {

namespace detail {

/// "; did you mean 'b'? There are 'a', 'b'".
template <class Names>
std::string suggestion(std::string_view wanted, const Names& names) {
  constexpr std::size_t most = 8;
  NearestName near(wanted);
  for (const std::string& name : names) near.consider(name);
  std::string text;
  if (!near.nearest().empty()) text = str_cat("; did you mean '", near.nearest(), "'?");
  if (names.empty()) return text + "; there is none";
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += str_cat(i > 0 ? ", '" : text.empty() ? "; there is '" : " There is '", names[i], "'");
  }
  if (names.size() > most) text += str_cat(" and ", names.size() - most, " others");
  return text;
}

template <class Items, class Name>
std::vector<std::string> names_of(const Items& items, Name&& name) {
  std::vector<std::string> names;
  names.reserve(items.size());
  for (const auto& item : items) names.push_back(std::invoke(name, item));
  return names;
}

void require_same_graph(const Session& session, const Graph& graph) {
  if (session.graph() == graph.store()) return;
  throw_error(Status::invalid_argument("the session is of another graph than the model's"));
}

}  // namespace detail

// ---- tensors by name ----

const AnyTensor& NamedTensors::operator[](std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &NamedTensor::name);
  if (found != tensors_.end()) return found->tensor;
  throw_error(Status::not_found(str_cat("there is no tensor '", name, "'",
                                        detail::suggestion(name, detail::names_of(tensors_, &NamedTensor::name)))));
}

// ---- a prepared signature ----

struct PreparedModel::State {
  std::string signature;
  std::vector<Edge> inputs, outputs;
  AnyPreparedStep step;

  /// The tensors in the order of the inputs.
  std::vector<AnyTensor> in_order(std::span<const NamedTensor> given) const {
    std::vector<AnyTensor> tensors(inputs.size());
    for (const auto& [name, tensor] : given) {
      const auto found = std::ranges::find(inputs, name, &Edge::name);
      if (found == inputs.end()) {
        throw_error(Status::not_found(str_cat("signature '", signature, "' has no input '", name, "'",
                                              detail::suggestion(name, detail::names_of(inputs, &Edge::name)))));
      }
      AnyTensor& place = tensors[static_cast<std::size_t>(found - inputs.begin())];
      if (place.is_initialized()) fail(*found, "is given twice");
      if (!tensor.is_initialized()) fail(*found, "is given an empty tensor");
      if (tensor.dtype() != found->dtype || !found->shape.is_compatible_with(tensor.shape())) {
        fail(*found, str_cat("is ", dtype_name(found->dtype), " ", found->shape.to_string(), ", not ",
                             dtype_name(tensor.dtype()), " ", tensor.shape().to_string()));
      }
      place = tensor;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].is_initialized()) fail(inputs[i], "is missing");
    }
    return tensors;
  }

 private:
  [[noreturn]] void fail(const Edge& input, std::string_view what) const {
    throw_error(Status::invalid_argument(str_cat("signature '", signature, "': input '", input.name, "' ", what)));
  }
};

const PreparedModel::State& PreparedModel::state() const {
  if (state_ == nullptr) throw_error(Status::failed_precondition("the prepared model was moved from"));
  return *state_;
}
const std::vector<PreparedModel::Edge>& PreparedModel::inputs() const { return state().inputs; }
const std::vector<PreparedModel::Edge>& PreparedModel::outputs() const { return state().outputs; }

NamedTensors PreparedModel::run(const RunOptions& options, RunMetadata* metadata,
                                std::span<const NamedTensor> inputs) const {
  const State& call = state();
  std::vector<AnyTensor> fed = call.in_order(inputs), results(call.outputs.size());
  call.step.run(options, metadata, fed, results);
  std::vector<NamedTensor> named;
  named.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) named.push_back({call.outputs[i].name, std::move(results[i])});
  return NamedTensors(std::move(named));
}

void PreparedModel::run_async(const RunOptions& options, std::span<const NamedTensor> inputs,
                              Session::AnyDone done) const {
  std::vector<AnyTensor> fed;
  try {
    fed = state().in_order(inputs);
  } catch (...) {
    const AnyPreparedStep step = state_ == nullptr ? AnyPreparedStep() : state_->step;
    return step.refuse_async(status_of_current_exception(), std::move(done));
  }
  state().step.run_async(options, nullptr, std::move(fed), std::move(done));
}

// ---- a model ----

/// The session of a model's calls.
struct Model::Runner {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Session> session;
  std::thread::id maker;  ///< of the session; of no thread if none makes one
};

Model::Model(Session& session, const std::vector<Signature>& signatures, ModelMetadata metadata)
    : options_(std::make_shared<const SessionOptions>(SessionOptions{.ops = session.op_set()})) {
  detail::ModelDef def = detail::ModelDef::of(session, signatures, std::move(metadata));
  take(std::move(def), session.ops());
}

Model::Model(detail::ModelDef def, const OpTable& ops, std::shared_ptr<const SessionOptions> options)
    : options_(std::move(options)) {
  take(std::move(def), ops);
}

Model::Model(const Model& other)
    : graph_(other.graph_),
      calls_(other.calls_),
      values_(other.values_),
      initializers_(other.initializers_),
      metadata_(other.metadata_),
      options_(other.options_),
      runner_(std::make_shared<Runner>()) {}
Model& Model::operator=(const Model& other) { return *this = Model(other); }
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

void Model::take(detail::ModelDef def, const OpTable& ops) {
  detail::check_signatures(def.signatures);
  const std::vector<std::string> assigns = detail::add_initial_values(def);
  graph_ = import_graph(def.graph, ops);
  for (const std::string& name : assigns) initializers_.push_back(graph_.find(name).node_id());
  for (const Operation& fill : graph_.collection(detail::ModelDef::table_initializers)) {
    initializers_.push_back(fill.node_id());
  }
  const auto output_of = [&](const std::string& signature, const std::string& edge) {
    try {
      return graph_.output(edge);
    } catch (const Error& error) {
      throw_error(error.status().with_prefix(str_cat("signature '", signature, "': ")));
    }
  };
  const auto endpoints = [&](const std::string& signature, const auto& edges) {
    std::vector<std::pair<std::string, Endpoint>> found;
    for (const auto& [name, edge] : edges) {
      const AnyOutput output = output_of(signature, edge);
      if (!is_element(output.dtype()) || output.node().function.is_valid()) {
        throw_error(Status::invalid_argument(
            str_cat("signature '", signature, "': '", edge, "' is no edge that can be fed or fetched")));
      }
      found.emplace_back(name, output.endpoint());
    }
    return found;
  };
  for (const detail::ModelDef::Signature& each : def.signatures) {
    calls_.push_back({each.name, endpoints(each.name, each.inputs), endpoints(each.name, each.outputs)});
  }
  values_ = std::move(def.values);
  metadata_ = std::move(def.metadata);
  runner_ = std::make_shared<Runner>();
}

void Model::check_is_here() const {
  if (runner_ == nullptr) throw_error(Status::failed_precondition("the model was moved from"));
}

const Model::Call& Model::call(std::string_view name) const {
  check_is_here();
  const auto found = std::ranges::find(calls_, name, &Call::name);
  if (found != calls_.end()) return *found;
  throw_error(Status::not_found(str_cat("the model has no signature '", name, "'",
                                        detail::suggestion(name, detail::names_of(calls_, &Call::name)))));
}

Signature Model::signature(std::string_view name) const { return signature_of(call(name)); }

Signature Model::signature_of(const Call& of) const {
  Signature signature{of.name, {}, {}};
  for (const auto& [input, endpoint] : of.inputs) signature.inputs.push_back({input, edge(endpoint)});
  for (const auto& [output, endpoint] : of.outputs) signature.outputs.push_back({output, edge(endpoint)});
  return signature;
}

std::vector<Signature> Model::signatures() const {
  check_is_here();
  std::vector<Signature> all;
  all.reserve(calls_.size());
  for (const Call& each : calls_) all.push_back(signature_of(each));
  return all;
}

AnyOutput Model::find(std::string_view name, bool is_input) const {
  check_is_here();
  std::optional<Endpoint> found;
  std::vector<std::string> names;
  std::set<std::string_view> is_listed;
  for (const Call& each : calls_) {
    for (const auto& [edge_name, endpoint] : is_input ? each.inputs : each.outputs) {
      if (is_listed.insert(edge_name).second) names.push_back(edge_name);
      if (edge_name != name) continue;
      if (found && *found != endpoint) {
        throw_error(Status::invalid_argument(
            str_cat("signatures have different edges named '", name, "': ask one of them, by `signature`")));
      }
      found = endpoint;
    }
  }
  if (found) return edge(*found);
  throw_error(Status::not_found(str_cat("no signature of the model has an ", is_input ? "input" : "output", " '", name,
                                        "'", detail::suggestion(name, names))));
}

AnyOutput Model::input(std::string_view name) const { return find(name, true); }
AnyOutput Model::output(std::string_view name) const { return find(name, false); }

void Model::initialize(Session& session) const {
  detail::require_same_graph(session, graph_);
  std::vector<Operation> operations;
  operations.reserve(initializers_.size());
  for (const NodeId id : initializers_) operations.emplace_back(graph_.store(), id);
  if (!operations.empty()) session.run_erased({}, nullptr, {}, {}, operations, {});
}

Session& Model::session() const {
  check_is_here();
  Runner& runner = *runner_;
  const std::thread::id here = std::this_thread::get_id();
  std::optional<Session> made;  // the second one, if there are two, goes without the lock
  std::unique_lock lock(runner.mutex);
  // A thread that makes it waits in a pool, and may run a task meanwhile that wants it too: that task makes one.
  runner.changed.wait(lock,
                      [&] { return runner.session || runner.maker == std::thread::id() || runner.maker == here; });
  if (runner.session) return *runner.session;
  const std::thread::id before = std::exchange(runner.maker, here);
  lock.unlock();
  std::exception_ptr failed;
  try {
    made.emplace(graph_, *options_);
    initialize(*made);
  } catch (...) {
    failed = std::current_exception();
  }
  lock.lock();
  runner.maker = before;
  runner.changed.notify_all();
  if (failed) std::rethrow_exception(failed);
  if (!runner.session) runner.session.swap(made);
  return *runner.session;
}

PreparedModel Model::prepare(std::string_view signature) const { return prepare(session(), signature); }

PreparedModel Model::prepare(Session& session, std::string_view signature) const {
  const Call& of = call(signature);
  detail::require_same_graph(session, graph_);
  const auto prepared = std::make_shared<PreparedModel::State>();
  prepared->signature = of.name;
  const auto describe = [&](const auto& named, std::vector<PreparedModel::Edge>& into) {
    std::vector<AnyOutput> edges;
    for (const auto& [name, endpoint] : named) {
      edges.push_back(edge(endpoint));
      into.push_back({name, edges.back().dtype(), edges.back().shape()});
    }
    return edges;
  };
  const std::vector<AnyOutput> inputs = describe(of.inputs, prepared->inputs);
  const std::vector<AnyOutput> outputs = describe(of.outputs, prepared->outputs);
  prepared->step = session.prepare_erased(inputs, outputs, {});
  return PreparedModel(prepared);
}

}  // namespace dflow
