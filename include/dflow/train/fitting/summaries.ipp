#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/summary/summary.hpp>
#include <dflow/train/fitting/summaries.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace dflow::train {

namespace detail {

class Summaries {
 public:
  Summaries(EventWriter& events, SummariesOptions options)
      : events_(events.reference()), options_(std::move(options)) {}

  void begin(Fitting& fitting) {
    if (options_.every_steps < 0 || options_.trace_every_steps < 0) {
      throw_error(Status::invalid_argument(
          str_cat("summaries: every ", std::min(options_.every_steps, options_.trace_every_steps), " steps")));
    }
    static_cast<void>(events());
    ++fits_;
    GraphStore& graph = fitting.graph();
    std::vector<NodeId> listed = graph.collection(summaries_collection);
    if (options_.summary.is_valid()) {
      summary_ = options_.summary;
    } else if (graph_.lock() != graph.keep_nodes() || listed != listed_) {
      summary_ = has_summaries(graph) ? merge_all_summaries(graph) : Output<std::string>();
    }
    graph_ = graph.keep_nodes();
    listed_ = std::move(listed);
    const std::int64_t step = step_of(fitting);
    if (options_.global_step) events().add_start(step + 1);
    if (options_.graph) events().add_graph(graph, step);
  }
  Observation observe(const Fitting& fitting) const {
    const std::int64_t next = fitting.step() + 1;
    const bool is_traced =
        options_.trace_every_steps > 0 && (next == 2 || (next > 2 && next % options_.trace_every_steps == 0));
    return {.edge = is_due(next) ? AnyOutput(summary_) : AnyOutput(), .trace = is_traced};
  }
  void observed(Fitting& fitting, const Observed& seen) {
    const std::int64_t step = step_of(fitting);
    if (seen.value.dtype() != DType::invalid) {
      const Tensor<std::string> bytes = seen.value.as<std::string>();
      events().add_summary(bytes, step);
      show(fitting, *bytes.data());
    }
    if (seen.trace != nullptr) {
      std::string tag = str_cat("step ", step);
      if (fits_ > 1) tag += str_cat(" of fit ", fits_);
      events().add_more_run_metadata(tag, seen.trace->stats, step);
    }
  }
  void end_step(const Fitting& fitting) {
    if (options_.step_values && is_due(fitting.step())) write(fitting, "step/");
  }
  void end_epoch(const Fitting& fitting) {
    if (options_.epoch_values) write(fitting, "epoch/");
  }
  void end() { events().flush(); }

 private:
  EventWriter& events() const {
    EventWriter* const found = events_.get();
    if (found == nullptr) throw_error(Status::failed_precondition("summaries: the event writer is gone"));
    return *found;
  }
  bool is_due(std::int64_t step) const { return options_.every_steps > 0 && step % options_.every_steps == 0; }
  std::int64_t step_of(const Fitting& fitting) const {
    return options_.global_step ? fitting.session().run(*options_.global_step).scalar() : fitting.step();
  }
  void write(const Fitting& fitting, std::string_view group) {
    Summary summary;
    for (const auto& [name, value] : fitting.values()) {
      summary.values.push_back(scalar_summary(str_cat(group, name), value));
    }
    events().add_summary(std::move(summary), step_of(fitting));
  }
  void show(Fitting& fitting, std::string_view bytes) const {
    if (options_.shown.empty()) return;
    for (const SummaryValue& value : parse_summary(bytes).values) {
      const auto* number = std::get_if<float>(&value.value);
      const bool is_shown = std::find(options_.shown.begin(), options_.shown.end(), value.tag) != options_.shown.end();
      if (number != nullptr && is_shown) fitting.show(value.tag, static_cast<double>(*number));
    }
  }

  Reference<EventWriter> events_;
  SummariesOptions options_;
  std::int64_t fits_ = 0;
  Output<std::string> summary_;
  std::weak_ptr<const NodeList> graph_;  ///< that `summary_` is of; an address would say nothing of one that is gone
  std::vector<NodeId> listed_;           ///< the collection that it is of
};

}  // namespace detail

Hook summaries(EventWriter& events, SummariesOptions options) {
  const auto shared = std::make_shared<detail::Summaries>(events, std::move(options));
  return {.on_begin = [shared](Fitting& fitting) { shared->begin(fitting); },
          .on_step = [shared](Fitting& fitting) { shared->end_step(fitting); },
          .on_epoch_end = [shared](Fitting& fitting) { shared->end_epoch(fitting); },
          .on_end = [shared](Fitting&) { shared->end(); },
          .on_error = [shared](Fitting&, const Status&) { shared->end(); },
          .observe = [shared](const Fitting& fitting) { return shared->observe(fitting); },
          .on_observed = [shared](Fitting& fitting, const Observed& seen) { shared->observed(fitting, seen); }};
}

}  // namespace dflow::train
