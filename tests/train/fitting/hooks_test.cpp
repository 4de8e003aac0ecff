#include <dflow/train/fitting/hooks.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/data/from.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/dropout.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/train/layers.hpp>
#include <dflow/train/optimizers.hpp>

#include <cmath>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;
using df::train::Fitting;
using df::train::Hook;

namespace {

/// A loss that equals its feed, and a counter of its steps.
struct Fed {
  Fed() {
    train = count.assign_add(1.0f);
    session.run(df::initialize_variables(graph));
  }
  /// An epoch for each loss. A loss of NaN does not end it.
  df::train::History fit(std::vector<float> losses, Hook hook) {
    return fit_with(std::move(losses), {std::move(hook)}, df::train::OnNan::go_on);
  }
  df::train::History fit_with(std::vector<float> losses, std::vector<Hook> hooks, df::train::OnNan on_nan) {
    const auto step = df::train::TrainStep(df::feeds(x), x, train);
    auto epoch = std::make_shared<std::size_t>(0);
    const auto data = df::data::from_range(std::vector{0}).map([losses, epoch](int) {
      return df::Tensor<float>(losses.at((*epoch)++));
    });
    return df::train::fit(
        session, step, data,
        {.epochs = static_cast<std::int64_t>(losses.size()), .hooks = std::move(hooks), .on_nan = on_nan});
  }

  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {});
  df::Variable<float> count{graph, 0.0f, {.name = "count"}};
  df::Operation train;
  df::Session session{graph};
};

std::shared_ptr<df::Device> device_with(const std::shared_ptr<df::FileSystem>& files) {
  const auto device = df::cpu_devices(1, {.pool = std::make_shared<df::InlinePool>()})[0];
  df::set_device_files(device->context(), files);
  return device;
}

/// A count that becomes the logarithm of each loss, and checkpoints.
struct Logarithm : Fed {
  Logarithm() {
    train = count.assign(df::log(x));
    session = df::Session(graph, {.devices = {device_with(files)}});
    session.run(df::initialize_variables(graph));
  }
  Hook checkpoints(const df::train::CheckpointOptions& options = {}) {
    return df::train::checkpoints(saver, "/m/log", options);
  }
  /// The steps of the checkpoints.
  std::string saved() const {
    std::string steps;
    for (const std::string& path : saver.checkpoints()) steps += path.substr(path.find('-')) + " ";
    return steps;
  }
  float restored() {
    saver.restore(session, *df::train::latest_checkpoint(*files, "/m"));
    return session.run(count).scalar();
  }

  std::shared_ptr<df::MemoryFileSystem> files = std::make_shared<df::MemoryFileSystem>();
  df::train::Saver saver{graph, df::train::SaverOptions{.files = files}};
};

/// A process that trains with dropout on shuffled batches.
struct Process {
  explicit Process(const std::shared_ptr<df::MemoryFileSystem>& files)
      : session(graph, {.devices = {device_with(files)}}) {
    const auto error = df::dense(df::dropout(df::dense(x, 8, {.activation = df::Activation::tanh}), 0.8f), 1);
    loss = df::reduce_mean(error * error);
    train = df::train::Adam(0.01).minimize(loss, {.global_step = step});
    initialize = df::initialize_variables(graph);
    saver = std::make_unique<df::train::Saver>(
        graph, df::train::SaverOptions{.states = {df::train::saved_iterator("batches", batches)}, .files = files});
  }
  /// The loss of each step.
  std::vector<double> fit(const df::train::FitOptions& options) {
    std::vector<double> losses;
    df::train::FitOptions noting = options;
    noting.hooks.insert(noting.hooks.begin(),
                        Hook{.on_step = [&](Fitting& fitting) { losses.push_back(fitting.loss()); }});
    df::train::fit(session, df::train::TrainStep(df::feeds(x), loss, train), batches, noting);
    return losses;
  }
  static df::data::Dataset<df::Tensor<float>> data() {
    df::Tensor<float> rows({40, 3});
    for (int i = 0; i < 120; ++i) rows.data()[i] = static_cast<float>(i * 11 % 17) / 17.0f;
    return df::data::from_tensors(rows).shuffle(15, {.seed = 4}).batch(4).prefetch(2);
  }

  df::Graph graph{{.seed = 2}};
  df::Session session;
  df::Output<float> x = df::placeholder<float>(graph, {df::dynamic, 3});
  df::Variable<std::int64_t> step{graph, 0, {.name = "global_step", .trainable = false}};
  df::Output<float> loss;
  df::Operation train, initialize;
  df::data::Iterator<df::Tensor<float>> batches = data().iterate();
  std::unique_ptr<df::train::Saver> saver;
};

}  // namespace

TEST_CASE("early stopping waits for so many epochs without a better value") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const auto epochs = [](const std::vector<float>& losses, df::train::EarlyStoppingOptions options) {
    options.value = "loss";
    return Fed().fit(losses, df::train::early_stopping(options)).epochs.size();
  };
  CHECK(epochs({5, 4, 3, 2, 1}, {}) == 5);
  CHECK(epochs({5, 4, 4, 2, 1}, {}) == 3);
  CHECK(epochs({5, 4, 4, 2, 3, 2, 1}, {.patience = 2}) == 6);
  CHECK(epochs({5, 4.5f, 4, 3.7f, 3}, {.min_delta = 0.4}) == 4);
  CHECK(epochs({1, 2, 3, 3, 4}, {.larger_is_better = true}) == 4);
  CHECK(epochs({1, 2, 3, 3, 4}, {.larger_is_better = true, .patience = 2}) == 5);
  CHECK(epochs({none, 4, 3, none, 1}, {}) == 1);
  CHECK(epochs({4, none, 3, none, none}, {.patience = 2}) == 5);
  const auto history = Fed().fit({1, 2, 2}, df::train::early_stopping({.value = "loss", .patience = 2}));
  CHECK(history.stopped_by == "'loss' has not become better in 2 epochs");
  CHECK(contains(error_of([&] { return epochs({1}, {.patience = 0}); }), "patience"));
  CHECK(contains(error_of(
                     [] {
                       return Fed().fit({1, 2}, df::train::early_stopping()).steps;
                     },
                     df::Code::not_found),
                 "'validation_loss'"));
}

TEST_CASE("the variables of the best epoch come back, also where all epochs were run") {
  Fed fed;
  const Hook hook = df::train::early_stopping({.value = "loss", .patience = 2, .restore_best = true});
  fed.fit({3, 1, 2, 2, 0}, hook);
  CHECK(fed.session.run(fed.count).scalar() == 2);
  fed.fit({3, 1, 2}, hook);  // the hook begins anew
  CHECK(fed.session.run(fed.count).scalar() == 4);
  fed.fit({1, 2}, df::train::early_stopping({.value = "loss", .patience = 2}));
  CHECK(fed.session.run(fed.count).scalar() == 6);
}

TEST_CASE("checkpoints come after steps, epochs and at the end") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const auto saved = [&](const std::string& prefix, const df::train::FitOptions& fit,
                         df::train::CheckpointOptions options) {
    Process process(files);
    process.session.run(process.initialize);
    df::train::FitOptions with = fit;
    with.hooks.push_back(df::train::checkpoints(*process.saver, prefix, std::move(options)));
    process.fit(with);
    std::string names;
    for (const std::string& path : process.saver->checkpoints()) names += path.substr(prefix.size()) + " ";
    return names;
  };
  CHECK(saved("/a/m", {.epochs = 2}, {}) == "-10 -20 ");
  CHECK(saved("/b/m", {.epochs = 2}, {.every_steps = 7, .every_epochs = 0}) == "-7 -14 -20 ");
  CHECK(saved("/c/m", {.max_steps = 13}, {.every_epochs = 2}) == "-10 ");
  CHECK(saved("/d/m", {.epochs = 2, .max_steps = 13}, {.every_epochs = 0}) == "-13 ");
  CHECK(saved("/e/m", {.epochs = 3}, {.every_epochs = 2, .at_end = false}) == "-20 ");
}

TEST_CASE("variables that are not finite are not saved over good ones") {
  const auto error = [](Logarithm& model, const std::vector<float>& losses, Hook hook) {
    return error_of([&] { return model.fit_with(losses, {std::move(hook)}, df::train::OnNan::fail).steps; });
  };
  const float none = std::numeric_limits<float>::quiet_NaN();
  for (const df::train::CheckpointOptions& options :
       {df::train::CheckpointOptions{}, df::train::CheckpointOptions{.every_steps = 1, .every_epochs = 0}}) {
    Logarithm by_weights, by_loss;
    // The logarithm of -1 is NaN: the loss is finite, the variable is not.
    CHECK(contains(error(by_weights, {1, 2, -1, 3}, by_weights.checkpoints(options)),
                   "checkpoints: not saved after step 3; the variable 'count' is not finite"));
    CHECK(by_weights.saved() == "-1 -2 ");
    CHECK(by_weights.restored() == Catch::Approx(std::log(2)));
    CHECK(contains(error(by_loss, {1, 2, none, 3}, by_loss.checkpoints(options)), "the loss is nan in step 3"));
    CHECK(by_loss.saved() == "-1 -2 ");
    CHECK(by_loss.restored() == Catch::Approx(std::log(2)));
  }
  Logarithm infinite;
  CHECK(contains(error(infinite, {1, 0}, infinite.checkpoints({.every_epochs = 0})), "not saved after step 2"));
  CHECK(infinite.saved().empty());
  Logarithm all;
  all.fit({1, -1, none}, all.checkpoints({.only_finite = false}));
  CHECK(all.saved() == "-1 -2 -3 ");
}

TEST_CASE("a fit that stops at a loss of NaN leaves the checkpoint before, or that of the best epoch") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  Logarithm plain;
  CHECK(contains(plain.fit_with({3, 2, none}, {plain.checkpoints()}, df::train::OnNan::stop).stopped_by, "nan"));
  CHECK(plain.saved() == "-1 -2 ");
  CHECK(plain.restored() == Catch::Approx(std::log(2)));
  Logarithm best;
  best.fit_with({3, 1, 2, none},
                {best.checkpoints(), df::train::early_stopping({.value = "loss", .patience = 9, .restore_best = true})},
                df::train::OnNan::stop);
  CHECK(best.session.run(best.count).scalar() == 0);
  CHECK(best.saved() == "-1 -2 -3 -4 ");
  CHECK(best.restored() == 0);
}

TEST_CASE("only the best epochs are saved if a checkpoint is of the best") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const auto saved = [](const std::vector<float>& losses, df::train::CheckpointOptions options) {
    options.best_of = "loss";
    Logarithm model;
    model.fit(losses, model.checkpoints(options));
    return model.saved();
  };
  CHECK(saved({3, 4, 2, 2, 1, 5}, {}) == "-1 -3 -5 ");
  CHECK(saved({3, 4, 2, 5, 9, 9}, {.larger_is_better = true}) == "-1 -2 -4 -5 ");
  CHECK(saved({none, 4, none, 3}, {.only_finite = false}) == "-2 -4 ");
  CHECK(saved({3, 1, 5, 2}, {.every_epochs = 2}) == "-2 ");
  CHECK(saved({none}, {.only_finite = false}).empty());
  Logarithm again;
  const Hook hook = again.checkpoints({.best_of = "loss"});
  again.fit({3, 1}, hook);
  again.fit({5, 6}, hook);  // begins anew
  CHECK(again.saved() == "-2 -1 ");
  const auto code = [&](const df::train::CheckpointOptions& options) {
    return code_of([&] { return again.checkpoints(options).on_end != nullptr; });
  };
  CHECK(code({.every_steps = 1, .best_of = "loss"}) == df::Code::invalid_argument);
  CHECK(code({.every_epochs = 0, .best_of = "loss"}) == df::Code::invalid_argument);
  CHECK(code_of([&] { return again.fit({1}, again.checkpoints({.best_of = "accuracy"})).steps; }) ==
        df::Code::not_found);
}

// The expected rates follow Keras 3's ReduceLROnPlateau.
TEMPLATE_TEST_CASE("a rate is reduced on a plateau as by Keras", "", float, double) {
  using T = TestType;
  const float none = std::numeric_limits<float>::quiet_NaN();
  // The rate that the step of each epoch takes, and the last rate.
  const auto rates = [](const std::vector<float>& losses, df::train::ReduceOnPlateauOptions options) {
    options.value = "loss";
    Fed fed;
    const df::Variable<T> rate(fed.graph, T(1), {.name = "rate", .trainable = false});
    const df::Variable<T> w(fed.graph, T(0), {.name = "w"});
    fed.train = df::train::GradientDescent(rate).minimize(w);  // w -= rate
    fed.session.run(df::initialize_variables(fed.graph));
    std::vector<double> taken;
    double before = 0;
    const auto note = [&] {
      const double value = static_cast<double>(fed.session.run(w).scalar());
      taken.push_back(before - value);
      before = value;
    };
    const Hook notes{.on_step = [&](Fitting&) { note(); }};
    fed.fit_with(losses, {df::train::reduce_on_plateau(rate, options), notes}, df::train::OnNan::go_on);
    taken.push_back(static_cast<double>(fed.session.run(rate).scalar()));
    return taken;
  };
  using Rates = std::vector<double>;
  CHECK(rates({5, 4, 4, 4, 4, 4, 3, 3, 3}, {.factor = 0.5, .patience = 2}) ==
        Rates{1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125});
  CHECK(rates({4, 4, 4, 4, 4}, {.factor = 0.5, .patience = 1, .cooldown = 1}) == Rates{1, 1, 0.5, 0.25, 0.125, 0.0625});
  CHECK(rates({4, 4, 4, 4, 4}, {.factor = 0.5, .patience = 1, .cooldown = 2}) == Rates{1, 1, 0.5, 0.5, 0.25, 0.25});
  CHECK(rates({4, 4, 4, 4}, {.factor = 0.25, .patience = 1, .min_rate = 0.125}) == Rates{1, 1, 0.25, 0.125, 0.125});
  CHECK(rates({4, 3.75f, 3.5f, 2}, {.factor = 0.5, .patience = 1, .min_delta = 0.5}) == Rates{1, 1, 0.5, 0.25, 0.25});
  CHECK(rates({1, 2, 2, 1}, {.larger_is_better = true, .factor = 0.5, .patience = 1}) == Rates{1, 1, 1, 0.5, 0.25});
  CHECK(rates({none, none, 3}, {.factor = 0.5, .patience = 1}) == Rates{1, 0.5, 0.25, 0.25});
  CHECK(rates({1, 1}, {}) == Rates{1, 1, 1});  // a patience of 10 epochs
}

TEST_CASE("a reduction of a rate begins anew with each fit, and is part of checkpoints") {
  Logarithm model;
  const df::Variable<float> rate(model.graph, 1.0f, {.name = "rate", .trainable = false});
  model.session.run(rate.initializer());
  df::train::Saver saver(model.graph, df::train::SaverOptions{.files = model.files});
  const Hook reduces = df::train::reduce_on_plateau(rate, {.value = "loss", .factor = 0.5, .patience = 2});
  const Hook saves = df::train::checkpoints(saver, "/rates/m");
  model.fit_with({3, 4}, {saves, reduces}, df::train::OnNan::fail);
  model.fit_with({3, 4}, {saves, reduces}, df::train::OnNan::fail);
  CHECK(model.session.run(rate).scalar() == 1);
  model.fit_with({3, 4, 4}, {saves, reduces}, df::train::OnNan::fail);
  CHECK(model.session.run(rate).scalar() == 0.5f);
  model.session.run(rate.assign(7.0f));
  saver.restore(model.session, *df::train::latest_checkpoint(*model.files, "/rates"));  // saved again at the end
  CHECK(model.session.run(rate).scalar() == 0.5f);
}

TEST_CASE("a reduction of a rate that cannot be is an error") {
  Fed fed;
  const df::Variable<float> rate(fed.graph, 1.0f), vector(fed.graph, df::Tensor<float>::zeros({2}));
  const auto code = [&](const df::Variable<float>& of, df::train::ReduceOnPlateauOptions options) {
    return code_of([&] { return df::train::reduce_on_plateau(of, options).on_begin != nullptr; });
  };
  CHECK(code(rate, {}) == df::Code::ok);
  for (const double factor : {0.0, 1.0, -0.5, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(code(rate, {.factor = factor}) == df::Code::invalid_argument);
  }
  CHECK(code(rate, {.patience = 0}) == df::Code::invalid_argument);
  CHECK(code(rate, {.cooldown = -1}) == df::Code::invalid_argument);
  CHECK(code(rate, {.min_rate = -1}) == df::Code::invalid_argument);
  CHECK(code(vector, {}) == df::Code::invalid_argument);
  CHECK(code({}, {}) == df::Code::invalid_argument);
  CHECK(code_of([&] { return fed.fit({1, 2}, df::train::reduce_on_plateau(rate)).steps; }) == df::Code::not_found);
}

TEST_CASE("the end saves nothing that has been saved already") {
  const auto num_saves = [](df::train::CheckpointOptions options) {
    Fed fed;
    int saves = 0;
    const auto state = [&] {
      ++saves;
      return std::string();
    };
    const auto restore = [](std::string_view) { return [] {}; };
    const auto files = std::make_shared<df::MemoryFileSystem>();
    fed.session = df::Session(fed.graph, {.devices = {device_with(files)}});
    fed.session.run(df::initialize_variables(fed.graph));
    df::train::Saver saver(fed.graph, {.states = {{"saves", state, restore}}, .files = files});
    fed.fit({5, 4, 3, 2}, df::train::checkpoints(saver, "/d/m", std::move(options)));
    return saves;
  };
  CHECK(num_saves({.every_epochs = 0}) == 1);
  CHECK(num_saves({.every_epochs = 1}) == 4);
  CHECK(num_saves({.every_epochs = 2}) == 2);
  CHECK(num_saves({.every_epochs = 3}) == 2);
  CHECK(num_saves({.every_steps = 2, .every_epochs = 0}) == 2);
  CHECK(num_saves({.every_steps = 3, .every_epochs = 0}) == 2);
  CHECK(num_saves({.every_steps = 3, .every_epochs = 0, .at_end = false}) == 1);
}

TEST_CASE("the last checkpoint holds the variables that fit leaves, in any order of its hooks") {
  for (const bool is_saved_first : {true, false}) {
    for (const std::vector<float>& losses : {std::vector<float>{3, 1, 2, 2}, {3, 2, 1}}) {
      INFO(is_saved_first << ", " << losses.size() << " epochs");
      Fed fed;
      const auto files = std::make_shared<df::MemoryFileSystem>();
      df::Session session(fed.graph, {.devices = {device_with(files)}});
      session.run(df::initialize_variables(fed.graph));
      df::train::Saver saver(fed.graph, {.files = files});
      std::vector<Hook> hooks{df::train::checkpoints(saver, "/m/best"),
                              df::train::early_stopping({.value = "loss", .patience = 2, .restore_best = true})};
      if (!is_saved_first) std::swap(hooks[0], hooks[1]);
      std::size_t epoch = 0;
      const auto data =
          df::data::from_range(std::vector{0}).map([&](int) { return df::Tensor<float>(losses.at(epoch++)); });
      df::train::fit(session, df::train::TrainStep(df::feeds(fed.x), fed.x, fed.train), data,
                     {.epochs = static_cast<std::int64_t>(losses.size()), .hooks = hooks});
      const float left = session.run(fed.count).scalar();
      CHECK(left == (losses.size() == 4 ? 2 : 3));
      session.run(fed.count.assign(0.0f));
      saver.restore(session, *df::train::latest_checkpoint(*files, "/m"));
      CHECK(session.run(fed.count).scalar() == left);
    }
  }
}

TEST_CASE("variables that another hook changes do not stay with the best epoch's") {
  Fed fed;
  const df::Operation change = fed.count.assign_add(100.0f);
  const Hook changes{.on_epoch_end = [&](Fitting& fitting) { fitting.session().run(change); }};
  const auto step = df::train::TrainStep(df::feeds(fed.x), fed.x, fed.train);
  float loss = 3;
  const auto data = df::data::from_range(std::vector{0}).map([&](int) { return df::Tensor<float>(loss--); });
  df::train::fit(fed.session, step, data,
                 {.epochs = 3, .hooks = {df::train::early_stopping({.value = "loss", .restore_best = true}), changes}});
  CHECK(fed.session.run(fed.count).scalar() == 203);  // after the third step, before the third change
}

TEST_CASE("a fit that a stop ends leaves a checkpoint to go on from, not the best epoch") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  for (const bool is_stopped : {true, false}) {
    Process process(files);
    process.session.run(process.initialize);
    std::stop_source stop;
    const Hook stops{.on_step = [&](Fitting& fitting) {
      if (fitting.step() == 25 && is_stopped) stop.request_stop();
      if (fitting.step() == 25 && !is_stopped) fitting.stop("enough");
    }};
    const df::train::EarlyStoppingOptions keep_first{
        .value = "loss", .larger_is_better = true, .patience = 100, .min_delta = 1e9, .restore_best = true};
    const std::string prefix = is_stopped ? "/stopped/m" : "/ended/m";
    process.fit({.epochs = 4,
                 .hooks = {df::train::checkpoints(*process.saver, prefix, {.global_step = process.step}),
                           df::train::early_stopping(keep_first), stops},
                 .stop = stop.get_token()});
    const std::int64_t steps = is_stopped ? 25 : 10;
    CHECK(process.session.run(process.step).scalar() == steps);
    CHECK(*df::train::latest_checkpoint(*files, is_stopped ? "/stopped" : "/ended") ==
          prefix + "-" + std::to_string(steps));
  }
}

TEST_CASE("a fit that is restored in the middle of an epoch goes on as one that was never interrupted, bit for bit") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  Process whole(files);
  whole.session.run(whole.initialize);
  const std::vector<double> losses = whole.fit({.epochs = 4});
  REQUIRE(losses.size() == 40);
  for (const std::int64_t steps : {7, 10, 23, 30}) {
    INFO(steps);
    Process first(files);
    first.session.run(first.initialize);
    const Hook saving =
        df::train::checkpoints(*first.saver, "/models/m", {.every_steps = steps, .global_step = first.step});
    std::vector<double> resumed = first.fit({.epochs = 4, .max_steps = steps, .hooks = {saving}});

    Process second(files);
    second.saver->restore(second.session, "/models/m-" + std::to_string(steps));
    const std::vector<double> rest = second.fit({.epochs = 4});
    resumed.insert(resumed.end(), rest.begin(), rest.end());
    CHECK(resumed == losses);
    CHECK(second.session.run(second.step).scalar() == 40);
  }
}

TEST_CASE("one hook that stops early sees fits of one graph after another, of which the earlier ones are gone") {
  const Hook hook = df::train::early_stopping({.value = "loss", .patience = 2, .restore_best = true});
  for (int graph = 0; graph < 4; ++graph) {
    Fed fed;
    fed.fit({3, 1, 2, 2}, hook);
    CHECK(fed.session.run(fed.count).scalar() == 2);
  }
}

TEST_CASE("variables that a graph has got since the last fit come back as well") {
  Fed fed;
  const Hook hook = df::train::early_stopping({.value = "loss", .patience = 2, .restore_best = true});
  fed.fit({3, 1, 2, 2}, hook);
  const df::Variable<float> later(fed.graph, 10.0f, {.name = "later"});
  fed.session.run(later.initializer());
  const df::Operation both[] = {fed.train, later.assign_add(1.0f)};
  fed.train = df::group(both);
  fed.fit({3, 1, 2, 2}, hook);
  CHECK(fed.session.run(fed.count).scalar() == 4);
  CHECK(fed.session.run(later).scalar() == 12);
}
