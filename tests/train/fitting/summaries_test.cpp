#include <dflow/train/fitting/summaries.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/data/from.hpp>
#include <dflow/ops/control/cond.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/summary/summary.hpp>
#include <dflow/runtime/step_stats.hpp>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace df = dflow;
using namespace std::chrono_literals;

namespace {

/// A loss that equals its feed, epochs of 4 batches, and the events that a hook has written of them.
struct Watched {
  explicit Watched(bool has_summary = true) {
    train = count.assign_add(std::int64_t{1});
    if (has_summary) df::scalar_summary("double", x * 2.0f);
    session.run(df::initialize_variables(graph));
  }
  df::train::History fit(const df::train::FitOptions& options) {
    const auto step = df::train::TrainStep(df::feeds(x), x, train, {.metrics = {{"half", x * 0.5f}}});
    const auto data =
        df::data::from_range(std::vector<float>{1, 2, 3, 4}).map([](float value) { return df::Tensor<float>(value); });
    df::train::FitOptions validated = options;
    validated.validation = data;
    return df::train::fit(session, step, data, validated);
  }
  /// "step: value" of each scalar, by tag, and the kind of each other event.
  std::map<std::string, std::string> written() {
    events.close();
    std::map<std::string, std::string> all;
    df::EventReader reader(files, events.path());
    while (const std::optional<df::Event> event = reader.next()) {
      const auto note = [&](const std::string& tag, const std::string& value) {
        all[tag] += df::str_cat(all[tag].empty() ? "" : " ", event->step, ":", value);
      };
      if (std::holds_alternative<df::EventGraph>(event->content)) note("graph", "yes");
      if (const auto* log = std::get_if<df::SessionLog>(&event->content)) {
        note("log", std::to_string(static_cast<int>(log->status)));
      }
      if (const auto* trace = std::get_if<df::TaggedRunMetadata>(&event->content)) note("trace", trace->tag);
      if (const auto* summary = std::get_if<df::Summary>(&event->content)) {
        for (const df::SummaryValue& value : summary->values) {
          char text[32];
          std::snprintf(text, sizeof text, "%g", static_cast<double>(std::get<float>(value.value)));
          note(value.tag, text);
        }
      }
    }
    return all;
  }

  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {});
  df::Variable<std::int64_t> count{graph, std::int64_t{0}, {.name = "count"}};
  df::Operation train;
  df::Session session{graph};
  df::MemoryFileSystem files;
  df::VirtualClock clock{5s};
  df::EventWriter events{files, "/logs", clock, {.host = "host", .suffix = {}}};
};

}  // namespace

TEST_CASE("a fit writes its summaries for the batch of the step, its losses, metrics and graph", "[train]") {
  Watched watched;
  watched.fit({.epochs = 2, .hooks = {df::train::summaries(watched.events, {.every_steps = 3})}});
  CHECK(watched.written() == std::map<std::string, std::string>{
                                 {"graph", "0:yes"},
                                 {"double", "3:6 6:4"},
                                 {"step/loss", "3:3 6:2"},
                                 {"step/half", "3:1.5 6:1"},
                                 {"epoch/loss", "4:2.5 8:2.5"},
                                 {"epoch/half", "4:1.25 8:1.25"},
                                 {"epoch/validation_loss", "4:2.5 8:2.5"},
                                 {"epoch/validation_half", "4:1.25 8:1.25"},
                             });
}

TEST_CASE("a fit writes what it was asked to", "[train]") {
  Watched watched;
  const auto mine = df::scalar_summary("mine", watched.x);
  watched.fit({.epochs = 1,
               .hooks = {df::train::summaries(
                   watched.events,
                   {.every_steps = 4, .summary = mine, .step_values = false, .epoch_values = false, .graph = false})}});
  CHECK(watched.written() == std::map<std::string, std::string>{{"mine", "4:4"}});
}

TEST_CASE("a graph without summaries has losses, and steps that none is to be written of have none", "[train]") {
  Watched watched(false);
  watched.fit({.epochs = 1, .hooks = {df::train::summaries(watched.events, {.every_steps = 2, .graph = false})}});
  watched.fit({.epochs = 1, .hooks = {df::train::summaries(watched.events, {.every_steps = 0, .graph = false})}});
  const auto written = watched.written();
  CHECK(written.at("step/loss") == "2:2 4:4");
  CHECK(written.at("epoch/loss") == "4:2.5 4:2.5");
  CHECK_FALSE(written.contains("double"));
}

TEST_CASE("one hook sees fits of one graph after another, of which the earlier ones are gone", "[train]") {
  Watched log(false);
  const df::train::Hook hook =
      df::train::summaries(log.events, {.every_steps = 4, .step_values = false, .epoch_values = false, .graph = false});
  for (int graph = 0; graph < 4; ++graph) {
    Watched watched(graph != 2);
    for (int fit = 0; fit < 2; ++fit) watched.fit({.epochs = 1, .hooks = {hook}});
  }
  // Each of the three with a summary, twice.
  CHECK(log.written() == std::map<std::string, std::string>{{"double", "4:8 4:8 4:8 4:8 4:8 4:8"}});
}

TEST_CASE("events are numbered by the global step, and later ones of an earlier run are void", "[train]") {
  Watched watched;
  watched.session.run(watched.count.assign(std::int64_t{10}));
  watched.fit(
      {.epochs = 1, .hooks = {df::train::summaries(watched.events, {.every_steps = 2, .global_step = watched.count})}});
  const auto written = watched.written();
  CHECK(written.at("log") == "11:1");
  CHECK(written.at("graph") == "10:yes");
  CHECK(written.at("double") == "12:4 14:8");
  CHECK(written.at("epoch/loss") == "14:2.5");
}

TEST_CASE("steps are measured, each under a tag of its own", "[train]") {
  Watched watched;
  const df::train::Hook hook = df::train::summaries(
      watched.events, {.every_steps = 0, .epoch_values = false, .graph = false, .trace_every_steps = 3});
  watched.fit({.epochs = 2, .hooks = {hook}});
  watched.fit({.epochs = 1, .hooks = {hook}});
  CHECK(watched.written() == std::map<std::string, std::string>{
                                 {"trace", "2:step 2 3:step 3 6:step 6 2:step 2 of fit 2 3:step 3 of fit 2"}});
}

TEST_CASE("the progress of a fit shows scalars of its summaries", "[train]") {
  Watched watched;
  std::FILE* file = std::tmpfile();
  watched.fit({.epochs = 1,
               .hooks = {df::train::summaries(watched.events, {.every_steps = 2, .shown = {"double"}})},
               .progress = df::train::ProgressOptions{.out = file, .every = 1}});
  std::string text(1000, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  CHECK(text.find("loss 1.0000\n") != std::string::npos);
  CHECK(text.find("  double 4\n") != std::string::npos);
  CHECK(text.find("  double 8\n") != std::string::npos);
}

TEST_CASE("what was written before an error can be read when the fit has ended by it", "[train]") {
  Watched watched;
  const df::train::Hook fails{.on_step = [](df::train::Fitting& fitting) {
    if (fitting.step() == 3) throw_error(df::Status::data_loss("no more"));
  }};
  const auto hook = df::train::summaries(watched.events, {.every_steps = 1, .graph = false});
  CHECK(code_of([&] { return watched.fit({.epochs = 1, .hooks = {hook, fails}}); }) == df::Code::data_loss);
  std::map<std::string, int> num_values;
  df::EventReader reader(watched.files, watched.events.path());
  while (const std::optional<df::Event> event = reader.next()) {
    const auto* const summary = std::get_if<df::Summary>(&event->content);
    for (const df::SummaryValue& value : summary == nullptr ? decltype(summary->values)() : summary->values) {
      ++num_values[value.tag];
    }
  }
  CHECK(num_values == std::map<std::string, int>{{"double", 3}, {"step/loss", 3}, {"step/half", 3}});
}

TEST_CASE("several hooks see a step, each what it asked for", "[train]") {
  Watched watched;
  std::string seen;
  const auto hook = [&](std::string name, const df::AnyOutput& edge, bool trace) {
    return df::train::Hook{
        .observe =
            [edge, trace](const df::train::Fitting& fitting) {
              return fitting.step() % 2 == 0 ? df::train::Observation{edge, trace} : df::train::Observation{};
            },
        .on_observed =
            [&seen, name](df::train::Fitting& fitting, const df::train::Observed& observed) {
              seen += df::str_cat(name, fitting.step());
              if (observed.value.dtype() == df::DType::float32) {
                seen += df::str_cat("=", static_cast<int>(observed.value.as<float>().scalar()));
              }
              if (observed.trace != nullptr) {
                CHECK_FALSE(observed.trace->stats.nodes.empty());
                seen += "t";
              }
              seen += " ";
            }};
  };
  watched.fit({.epochs = 1,
               .hooks = {hook("a", watched.x * 10.0f, false), hook("b", {}, true), hook("c", watched.x, true),
                         hook("d", {}, false)}});
  CHECK(seen == "a1=10 b1t c1=1t a3=30 b3t c3=3t ");
}

TEST_CASE("summaries every few steps fewer than none are InvalidArgument", "[train]") {
  Watched watched;
  CHECK(code_of([&] {
          return watched.fit({.epochs = 1, .hooks = {df::train::summaries(watched.events, {.every_steps = -1})}});
        }) == df::Code::invalid_argument);
}

TEST_CASE("hooks that share a writer measure steps each under a tag of its own", "[train]") {
  Watched watched;
  const df::train::SummariesOptions options{
      .every_steps = 0, .epoch_values = false, .graph = false, .trace_every_steps = 4};
  watched.fit(
      {.hooks = {df::train::summaries(watched.events, options), df::train::summaries(watched.events, options)}});
  watched.fit({.hooks = {df::train::summaries(watched.events, options)}});
  CHECK(watched.written() == std::map<std::string, std::string>{
                                 {"trace", "2:step 2 2:step 2 (2) 4:step 4 4:step 4 (2) 2:step 2 (3) 4:step 4 (3)"}});
}

TEST_CASE("a hook writes the summaries that a graph has when each fit begins", "[train]") {
  Watched watched(false);
  const df::train::Hook hook = df::train::summaries(
      watched.events, {.every_steps = 4, .step_values = false, .epoch_values = false, .graph = false});
  watched.fit({.hooks = {hook}});
  df::scalar_summary("one", watched.x);
  for (int i = 0; i < 2; ++i) watched.fit({.hooks = {hook}});
  df::scalar_summary("two", watched.x * 2.0f);
  watched.fit({.hooks = {hook}});
  CHECK(watched.written() == std::map<std::string, std::string>{{"one", "4:4 4:4 4:4"}, {"two", "4:8"}});
}

TEST_CASE("summaries in bodies of functions, branches and loops are left to what these return", "[train]") {
  Watched watched;
  const auto big = [&] { return df::scalar_summary("big", watched.x); };
  const auto small = [&] { return df::scalar_summary("small", watched.x); };
  const auto which = df::cond(watched.x > 2.0f, big, small);
  const auto all = df::merge_summaries({df::merge_all_summaries(watched.graph), which});
  const df::train::SummariesOptions options{
      .every_steps = 2, .step_values = false, .epoch_values = false, .graph = false};
  df::train::SummariesOptions own = options;
  own.summary = all;
  watched.fit({.hooks = {df::train::summaries(watched.events, options)}});
  watched.fit({.hooks = {df::train::summaries(watched.events, own)}});
  CHECK(watched.written() ==
        std::map<std::string, std::string>{{"double", "2:4 4:8 2:4 4:8"}, {"small", "2:2"}, {"big", "4:4"}});
}
