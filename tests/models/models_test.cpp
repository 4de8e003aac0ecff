#include <dflow/models/models.hpp>

#include "catch.hpp"
#include "models/trained.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <cmath>
#include <cstddef>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// Two rows of an element type, none of them the type's default.
template <class T>
Tensor<T> two_rows() {
  Tensor<T> values({2, 2});
  if constexpr (std::same_as<T, std::string>) {
    values = Tensor<std::string>({2, 2}, {"", "two", std::string("\0\xff", 2), std::string(1000, 'x')});
  } else {
    for (std::size_t i = 0; i < 4; ++i) values.span()[i] = static_cast<T>(static_cast<float>(i % 2 + 1));
  }
  return values;
}

struct Doubled : ElementwiseOp<"ModelsTestDoubled", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T v) {
    return v + v;
  }
};

}  // namespace

TEST_CASE("a saved model gives the values of the session that it is saved from") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Trained trained;
  models::save("/models/digits", trained.session, trained.save_options(files));
  for (const bool trainable : {false, true}) {
    CAPTURE(trainable);
    const Model model = models::load("/models/digits", {.trainable = trainable, .files = files});
    CHECK(model.metadata() == ModelMetadata{{"version", "7"}});
    CHECK(has_op(model.graph(), "Variable") == trainable);
    CHECK(trainable_variables(model.graph()).size() == (trainable ? 4u : 0u));
    const NamedTensors out = model.prepare("serving_default")({{"points", trained.points}});
    CHECK(bitwise_equal(out["logits"], trained.logits_value()));
  }
}

TEST_CASE("a model in the machine's files is loaded by its folder") {
  const TemporaryFolder folder;
  Trained trained;
  const std::string path = folder.file("models/digits");
  models::save(path, trained.session, {.signatures = trained.signatures()});
  models::save(path, trained.session, {.signatures = trained.signatures()});
  PosixFileSystem files;
  CHECK(files.list_directory(path).size() == 4);  // the graph, two files of variables, model.json
  const NamedTensors out = models::load(path).prepare("serving_default")({{"points", trained.points}});
  CHECK(bitwise_equal(out["logits"], trained.logits_value()));
}

TEST_CASE("a model that is loaded to be trained goes on with its values, and is saved again") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Trained trained(5);
  models::save("/m", trained.session, trained.save_options(files));
  Model model = models::load("/m", {.trainable = true, .files = files});
  auto logits = model.output<float>("logits");
  auto labels = placeholder<std::int32_t>(model.graph(), {dynamic});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, labels));
  auto train = train::Adam(0.05f).minimize(loss);
  const auto points = model.input<float>("points");
  Session session(model.graph());
  session.run(initialize_variables(model.graph()));
  const float first = session.run({{points, trained.points}, {labels, trained.classes}}, loss).scalar();
  CHECK(first ==
        trained.session.run({{trained.x, trained.points}, {trained.labels, trained.classes}}, trained.loss).scalar());
  for (int i = 0; i < 100; ++i) session.run({{points, trained.points}, {labels, trained.classes}}, train);
  CHECK(session.run({{points, trained.points}, {labels, trained.classes}}, loss).scalar() < first / 2);
  models::save("/m", session, {.signatures = model.signatures(), .files = files});
  const Model tuned = models::load("/m", {.files = files});
  CHECK(bitwise_equal(tuned.prepare("serving_default")({{"points", trained.points}})["logits"],
                      session.run({{points, trained.points}}, logits)));
  // The model itself keeps the values that it was loaded with.
  models::save("/before", model, files);
  CHECK(bitwise_equal(
      models::load("/before", {.files = files}).prepare("serving_default")({{"points", trained.points}})["logits"],
      trained.logits_value()));
}

TEST_CASE("variables that are not trained stay so") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Graph graph;
  auto x = placeholder<float>(graph, {dynamic, 3});
  BatchNormalization norm;
  auto y = norm(x, Training(false));
  Session session(graph);
  session.run(initialize_variables(graph));
  models::save("/m", session, {.signatures = {{"f", {{"x", x}}, {{"y", y}}}}, .files = files});
  const Model model = models::load("/m", {.trainable = true, .files = files});
  CHECK(global_variables(model.graph()).size() == 4);
  CHECK(trainable_variables(model.graph()).size() == 2);
}

namespace {

template <class T>
void check_element_type() {
  const auto files = std::make_shared<MemoryFileSystem>();
  const Tensor<T> held = two_rows<T>(), fixed = two_rows<T>(), empty(Shape{0, 3});
  Graph graph;
  Variable<T> w(graph, held, {.name = "w"});
  Variable<T> none(graph, empty, {.name = "none"});
  auto x = placeholder<T>(graph, {dynamic, 2});
  auto all = concat(std::vector<Output<T>>{x, w, constant(graph, fixed)}, 0);
  Session session(graph);
  session.run(initialize_variables(graph));
  const Tensor<T> expected = session.run({{x, held}}, all);
  const Model made(session, {{"f", {{"x", x}}, {{"all", all}, {"none", none}}}});
  models::save("/made", made, files);
  models::save("/frozen", models::freeze(made), files);
  for (const char* path : {"/made", "/frozen"}) {
    for (const bool trainable : {false, true}) {
      CAPTURE(path, trainable, dtype_name(dtype_of<T>));
      const Model model = models::load(path, {.trainable = trainable, .files = files});
      const NamedTensors out = model.prepare("f")({{"x", held}});
      CHECK(bitwise_equal(out["all"], expected));
      CHECK(out["none"].shape() == Shape{0, 3});
    }
  }
}

}  // namespace

TEST_CASE("values of every element type are saved and loaded, as variables and as constants") {
  for_each_type<AllTypes>([]<class T>() { check_element_type<T>(); });
}

TEST_CASE("the parts of a partitioned variable are saved and loaded, and train on") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Graph graph;
  auto table = partitioned_variable<float>(graph, {7, 2}, {.partitioner = fixed_size_partitioner(3), .name = "words"});
  auto ids = placeholder<std::int64_t>(graph, {dynamic});
  auto rows = embedding_lookup(table, ids);
  Session session(graph);
  session.run(initialize_variables(graph));
  const Tensor<std::int64_t> some({3}, {6, 0, 3});
  const Tensor<float> expected = session.run({{ids, some}}, rows);
  models::save("/m", session, {.signatures = {{"f", {{"ids", ids}}, {{"rows", rows}}}}, .files = files});
  CHECK(bitwise_equal(models::load("/m", {.files = files}).prepare("f")({{"ids", some}})["rows"], expected));
  Model model = models::load("/m", {.trainable = true, .files = files});
  CHECK(model.values().size() == 3);
  CHECK(bitwise_equal(model.prepare("f")({{"ids", some}})["rows"], expected));
  for (const AnyVariable& part : trainable_variables(model.graph())) CHECK(part.whole_name() == "words");
  auto loss = reduce_sum(square(model.output<float>("rows")));
  auto train = train::GradientDescent(0.1f).minimize(loss);
  Session more(model.graph());
  more.run(initialize_variables(model.graph()));
  const auto fed = model.input<std::int64_t>("ids");
  const float before = more.run({{fed, some}}, loss).scalar();
  more.run({{fed, some}}, train);
  CHECK(more.run({{fed, some}}, loss).scalar() < before);
  // A Saver takes the parts for the slices of one tensor, as in the program that made them.
  const TemporaryFolder folder;
  PosixFileSystem machine;
  train::Saver saver(model.graph());
  const auto saved = open_saved_tensors(machine, saver.save(more, folder.file("checkpoint")));
  CHECK(saved->find("words").value().shape == Shape{7, 2});
}

TEST_CASE("a program with a few ops loads a model whose variables became constants") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Trained trained;
  models::save("/m", trained.session, trained.save_options(files));
  constexpr auto few = ops<Placeholder, Const, Identity, MatMul, BiasAdd, Tanh, ArgMax>;
  const Model model =
      models::load("/m", {.session = {.ops = few, .pool = std::make_shared<InlinePool>()}, .files = files});
  const NamedTensors out = model.prepare("serving_default")({{"points", trained.points}});
  CHECK(bitwise_equal(out["logits"], trained.logits_value()));
  // Freezing and pruning need no more ops.
  CHECK(bitwise_equal(models::prune(models::freeze(model), {"serving_default"})
                          .prepare("serving_default")({{"points", trained.points}})["logits"],
                      trained.logits_value()));

  constexpr auto too_few = ops<Placeholder, Const, Identity, MatMul, Tanh, ArgMax>;
  const std::string error = error_of([&] { return models::load("/m", {.session = {.ops = too_few}, .files = files}); });
  CHECK(contains(error, "model '/m': the op table has no op 'BiasAdd'"));
  CHECK(contains(
      error_of([&] { return models::load("/m", {.trainable = true, .session = {.ops = few}, .files = files}); }),
      "the op table has no op 'Variable'"));
}

TEST_CASE("an op of a program's own is saved and loaded with its table") {
  const auto files = std::make_shared<MemoryFileSystem>();
  constexpr auto ours = standard_ops + ops<Doubled>;
  Graph graph;
  auto x = placeholder<float>(graph, {});
  Variable<float> w(graph, 4.0f, {.name = "w"});
  auto y = apply<Doubled>(x * w);
  Session session(graph, {.ops = ours});
  session.run(initialize_variables(graph));
  const Model model(session, {{"f", {{"x", x}}, {{"y", y}}}});
  CHECK(models::freeze(model).prepare("f")({{"x", Tensor<float>(1.5f)}}).get<float>("y").scalar() == 12.0f);
  models::save("/m", model, files);
  CHECK(contains(error_of([&] { return models::load("/m", {.files = files}); }), "no op 'ModelsTestDoubled'"));
  const Model loaded = models::load("/m", {.session = {.ops = ours}, .files = files});
  CHECK(loaded.prepare("f")({{"x", Tensor<float>(1.5f)}}).get<float>("y").scalar() == 12.0f);
}

TEST_CASE("names and metadata that a file cannot hold are refused before anything is written") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Trained trained(0);
  models::SaveOptions options = trained.save_options(files);
  options.metadata["author"] = "\xff";
  CHECK(code_of([&] {
          models::save("/m", trained.session, options);
          return 0;
        }) == Code::invalid_argument);
  CHECK(!files->exists("/m"));
  CHECK(contains(error_of([&] {
                   models::save("/m", trained.session, {});
                   return 0;
                 }),
                 "at least one signature"));
}

TEST_CASE("saving does not change the graph, and a save while training holds values of each variable as a whole") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Trained trained(0);
  const std::size_t nodes = trained.graph.num_nodes();
  for (int i = 0; i < 3; ++i) {
    trained.session.run({{trained.x, trained.points}, {trained.labels, trained.classes}}, trained.train);
    models::save("/m", trained.session, trained.save_options(files));
  }
  CHECK(trained.graph.num_nodes() == nodes);
  CHECK(bitwise_equal(
      models::load("/m", {.files = files}).prepare("serving_default")({{"points", trained.points}})["logits"],
      trained.logits_value()));
}
