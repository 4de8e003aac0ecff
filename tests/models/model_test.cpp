#include <dflow/models/model.hpp>

#include "catch.hpp"
#include "models/trained.hpp"
#include "support/control_flow_programs.hpp"
#include "support/errors.hpp"

#include <dflow/models/model_def.hpp>
#include <dflow/net/server.hpp>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// A pool in which the first thread that waits runs a task meanwhile, as a worker does.
class PoolWithTask final : public ThreadPool {
 public:
  int num_threads() const noexcept override { return threads_.num_threads(); }
  void schedule(Task task) override { threads_.schedule(std::move(task)); }
  void wait(PoolEvent& event) override {
    if (const auto run = std::exchange(meanwhile, nullptr)) run();
    threads_.wait(event);
  }
  bool current_thread_is_worker() const noexcept override { return threads_.current_thread_is_worker(); }

  std::function<void()> meanwhile;

 private:
  WorkStealingPool threads_{2};
};

NodeDef node_def_of(std::string_view name, std::string_view op, DType type) {
  NodeDef node;
  node.name = name;
  node.op = op;
  node.types = {{"T", type}};
  return node;
}

}  // namespace

TEST_CASE("a model of a session has its values, is called by names, and outlives all of it") {
  std::optional<PreparedModel> predict;
  Tensor<float> expected;
  {
    Trained trained;
    expected = trained.logits_value();
    const Model model(trained.session, trained.signatures(), {{"license", "Apache-2.0"}});
    CHECK(model.metadata() == ModelMetadata{{"license", "Apache-2.0"}});
    CHECK(model.values().size() == 4);
    predict = model.prepare("serving_default");
  }
  CHECK(predict->inputs().size() == 1);
  CHECK(predict->inputs()[0].name == "points");
  CHECK(predict->inputs()[0].shape.to_string() == "[?,2]");
  CHECK(predict->outputs()[1].dtype == DType::int64);
  const Tensor<float> points({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1});
  const NamedTensors out = (*predict)({{"points", points}});
  CHECK(out.size() == 2);
  CHECK(bitwise_equal(out["logits"], expected));
  CHECK(out.get<std::int64_t>("label").dim(0) == 4);
}

TEST_CASE("a model has what its signatures reach, and neither device nor place in a program") {
  Graph graph;
  auto on = graph.device("/cpu:0");
  auto x = placeholder<float>(graph, {dynamic, 2});
  auto y = dense(x, 3);
  auto loss = reduce_mean(square(y));
  auto train = train::Adam(0.1f).minimize(loss);
  train::Saver saver(graph);
  Session session(graph);
  session.run(initialize_variables(graph));
  session.run({{x, Tensor<float>({1, 2}, {1, 2})}}, train);
  const Model model(session, {{"f", {{"x", x}}, {{"y", y}}}});
  CHECK(!has_op(model.graph(), "ApplyAdam"));
  CHECK(!has_op(model.graph(), "SaveV2"));
  CHECK(!has_op(model.graph(), "RandomUniform"));
  CHECK(to_graph_def(model.graph()).nodes.size() < 16);
  const GraphDef frozen = to_graph_def(models::freeze(model).graph());
  CHECK(frozen.nodes.size() <= 7);  // the input, two constants, two reads, product and bias
  for (const NodeDef& node : frozen.nodes) {
    CHECK(node.device.empty());
    CHECK(node.op != "Variable");
    CHECK(node.op != "Assign");
  }
}

TEST_CASE("nodes of a model are placed beside none of the graph that it was taken from") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  Output<float> y;
  {
    const auto beside = graph.colocate_with(constant(graph, 1.0f, {.name = "elsewhere"}).operation());
    y = add(x, x, {.name = "y"});
  }
  Session session(graph);
  const Model model(session, {{"f", {{"x", x}}, {{"y", y}}}});
  CHECK(!model.graph().find("elsewhere").is_valid());
  for (const NodeDef& node : to_graph_def(model.graph()).nodes) CHECK(node.colocated_with.empty());
}

TEST_CASE("a wrong name is answered with the names that are there, the nearest first") {
  Trained trained(0);
  Model model(trained.session, trained.signatures());
  const std::string signature = error_of([&] { return model.prepare("serving_defualt"); }, Code::not_found);
  CHECK(contains(signature, "the model has no signature 'serving_defualt'; did you mean 'serving_default'?"));
  CHECK(contains(error_of([&] { return model.output("logit"); }, Code::not_found), "did you mean 'logits'?"));
  CHECK(contains(error_of([&] { return model.input("image"); }, Code::not_found), "there is 'points'"));
  const PreparedModel predict = model.prepare("serving_default");
  CHECK(contains(error_of(
                     [&] {
                       return predict({{"point", trained.points}});
                     },
                     Code::not_found),
                 "signature 'serving_default' has no input 'point'; did you mean 'points'?"));
  CHECK(contains(error_of([&] { return predict({}); }), "input 'points' is missing"));
  CHECK(contains(error_of([&] {
                   return predict({{"points", trained.points}, {"points", trained.points}});
                 }),
                 "input 'points' is given twice"));
  CHECK(contains(error_of([&] {
                   return predict({{"points", trained.classes}});
                 }),
                 "input 'points' is float [?,2], not int32 [4]"));
  CHECK(contains(error_of([&] { return predict({{"points", AnyTensor()}}); }), "input 'points' is given an empty"));
  CHECK(contains(error_of(
                     [&] {
                       return predict({{"points", trained.points}})["lables"];
                     },
                     Code::not_found),
                 "there is no tensor 'lables'; did you mean 'label'? There is 'logits', 'label'"));
  CHECK(error_of([&] { return model.output<double>("logits"); }) != "no error");
}

TEST_CASE("of many names an error lists eight, and says how many others there are") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  Session session(graph);
  Signature signature{"f", {{"x", x}}, {}};
  const auto error = [&] {
    const NamedTensors out = Model(session, {signature}).prepare("f")({{"x", Tensor<float>(1.0f)}});
    return error_of([&] { return out["?"]; }, Code::not_found);
  };
  while (signature.outputs.size() < 8) {
    signature.outputs.push_back({"y" + std::to_string(signature.outputs.size()), x + 1.0f});
  }
  CHECK(contains(error(), "'y6', 'y7'"));
  CHECK(!contains(error(), "others"));
  for (const char* name : {"y8", "y9"}) signature.outputs.push_back({name, x + 1.0f});
  CHECK(contains(error(), "'y6', 'y7' and 2 others"));
}

TEST_CASE("signatures that cannot be called are refused with their names") {
  Trained trained(0);
  Graph other;
  auto foreign = placeholder<float>(other, {2});
  const auto refused = [&](const std::vector<Signature>& signatures) {
    return error_of([&] { return Model(trained.session, signatures); });
  };
  CHECK(contains(refused({}), "at least one signature"));
  CHECK(contains(refused({{"", {}, {{"y", trained.logits}}}}), "has no name"));
  CHECK(contains(refused({{"f", {{"x", trained.x}}, {}}}), "signature 'f' has no outputs"));
  CHECK(contains(refused({{"f", {}, {{"y", AnyOutput()}}}}), "the edge of 'y' is empty"));
  CHECK(contains(refused({{"f", {{"x", foreign}}, {{"y", trained.logits}}}}), "the edge of 'x' is of another graph"));
  CHECK(contains(refused({{"f", {{"x", trained.x}, {"x", trained.x}}, {{"y", trained.logits}}}}),
                 "two inputs named 'x'"));
  CHECK(contains(refused({{"f", {{"x", trained.x}, {"again", trained.x}}, {{"y", trained.logits}}}}),
                 "signature 'f' has the edge 'x' for two inputs, 'x' and 'again'"));
  CHECK(contains(refused({{"f", {}, {{"", trained.logits}}}}), "an output without a name"));
  const Signature one{"f", {{"x", trained.x}}, {{"y", trained.logits}}};
  CHECK(contains(refused({one, one}), "signature 'f' is there twice"));
  const AnyOutput handle = AnyVariable(trained.hidden.kernel()).handle();
  CHECK(contains(refused({{"f", {}, {{"w", handle}}}}), "the edge of 'w' carries resource"));
  auto body = function(trained.graph, "body", [](Output<float> v) { return relu(v); });
  const AnyOutput inside = trained.graph.output("body/Relu");
  CHECK(contains(refused({{"f", {}, {{"y", inside}}}}), "is in the body of a function"));
}

TEST_CASE("an edge in a body, and a handle, are no edges of a signature of a file") {
  Graph graph;
  Variable<float> w(graph, 1.0f, {.name = "w"});
  auto x = placeholder<float>(graph, {});
  auto body = function(graph, "body", [](Output<float> v) { return relu(v); });
  Session session(graph);
  session.run(initialize_variables(graph));
  const std::vector<Signature> signatures{{"f", {{"x", x}}, {{"y", body(x) * w}}}};
  for (const char* edge : {"body/Relu", "w"}) {
    detail::ModelDef def = detail::ModelDef::of(session, signatures, {});
    def.signatures[0].outputs[0].second = edge;
    const Status status = status_of(
        [&] { return detail::ModelDef::build(def, session.ops(), std::make_shared<const SessionOptions>()); });
    CHECK(status.code() == Code::invalid_argument);
    CHECK(mentions(status, "signature 'f': '" + std::string(edge) + "' is no edge that can be fed or fetched"));
  }
}

TEST_CASE("a variable whose value is not there, or of another type, is DataLoss that names it") {
  const auto is_told = [](const Status& status) {
    return status.code() == Code::data_loss && status.op() == "Variable" && status.node() == "w";
  };
  detail::ModelDef def;
  def.graph.nodes.push_back(node_def_of("w", "Variable", DType::float32));
  CHECK(is_told(status_of([&] {
    detail::freeze_variables(def, detail::WrittenVariables::refuse);
    return 0;
  })));
  CHECK(is_told(status_of([&] { return detail::add_initial_values(def); })));
  def.values = {{"w", Tensor<std::int32_t>(1)}};
  CHECK(is_told(status_of([&] { return detail::add_initial_values(def); })));
}

TEST_CASE("a variable that a function may get as an argument is not frozen") {
  for (const DType type : {DType::resource, DType::float32}) {
    detail::ModelDef def;
    def.graph.nodes.push_back(node_def_of("w", "Variable", DType::float32));
    def.graph.nodes.push_back(node_def_of("f/v", "FunctionArgument", type));
    def.graph.nodes.push_back(node_def_of("call", "Call", DType::float32));
    def.graph.nodes.back().inputs = {"w"};
    def.values = {{"w", Tensor<float>(1.0f)}};
    const Status status = status_of([&] {
      detail::freeze_variables(def, detail::WrittenVariables::refuse);
      return 0;
    });
    CHECK(status.ok() == (type != DType::resource));
    if (!status.ok()) CHECK(status.node() == "call");
  }
}

TEST_CASE("a variable without a value is an error that names it") {
  Graph graph;
  Variable<float> w(graph, 1.0f, {.name = "w"});
  Session session(graph);
  const std::string error = error_of(
      [&] {
        return Model(session, {{"f", {}, {{"w", w.read()}}}});
      },
      Code::failed_precondition);
  CHECK(contains(error, "'w'"));
}

TEST_CASE("an input that the graph computes in training becomes a placeholder, and what is before it goes") {
  Graph graph;
  FifoQueue<float, std::int32_t> queue(graph, {.capacity = 4, .shapes = {{2}, {}}, .name = "examples"});
  auto [x, label] = queue.dequeue();
  auto y = x * 2.0f + cast<float>(label);
  Session session(graph);
  const Model model(session, {{"f", {{"x", x}, {"label", label}}, {{"y", y}}}});
  CHECK(!has_op(model.graph(), "FIFOQueue"));
  CHECK(model.input("label").shape().to_string() == "[]");
  const auto out = model.prepare("f")({{"x", Tensor<float>({2}, {1, 2})}, {"label", Tensor<std::int32_t>(3)}});
  CHECK(bitwise_equal(out["y"], Tensor<float>({2}, {5, 7})));

  const Status status = status_of([&] { return Model(session, {{"f", {{"x", x}}, {{"y", y}}}}); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(mentions(status, "whose content a model does not hold: make an edge behind it an input"));
  CHECK(status.op() == "FIFOQueue");
  CHECK(status.node() == "examples");
}

TEST_CASE("a function that calls itself reads the placeholder of an input that was computed") {
  Graph graph;
  FifoQueue<float, float> queue(graph, {.capacity = 4, .shapes = {{}, {}}});
  auto [x, factor] = queue.dequeue();
  auto power = recursive_function<Output<float>(Output<std::int32_t>)>(
      graph, "power", [&, factor = factor](const auto& self, Output<std::int32_t> k) {
        return cond(
            k < 1, [&] { return factor * 1.0f; }, [&] { return Output<float>(factor * self(k - 1)); });
      });
  auto n = placeholder<std::int32_t>(graph, {});
  auto y = power(n) + x;
  Session session(graph);
  const Model model(session, {{"f", {{"x", x}, {"factor", factor}, {"n", n}}, {{"y", y}}}});
  const NamedTensors out = models::freeze(model).prepare("f")(
      {{"x", Tensor<float>(1.0f)}, {"factor", Tensor<float>(2.0f)}, {"n", Tensor<std::int32_t>(3)}});
  CHECK(out.get<float>("y").scalar() == 17.0f);
}

TEST_CASE("a gradient in a model reads the placeholders of inputs that were computed, whatever their names") {
  Graph graph;
  FifoQueue<float, float> queue(graph, {.capacity = 4, .shapes = {{}, {}}});
  FifoQueue<float> other(graph, {.capacity = 4, .shapes = {{}}});
  auto [a, b] = queue.dequeue({.name = "d"});
  auto c = other.dequeue({.name = "d_1"});  // the name that the placeholder of b gets
  // The gradient calls the recursion, and names the edges that it captures: one of `outer`, and three of the graph.
  auto outer = function(graph, "outer", [&, a = a, b = b, c = c](Output<float> v) {
    auto twice = v * 2.0f;
    auto power = recursive_function<Output<float>(Output<std::int32_t>)>(
        graph, "power", [&](const auto& self, Output<std::int32_t> k) {
          auto each = (twice - a) * b - c;
          return cond(
              k < 1, [&] { return each * 1.0f; }, [&] { return Output<float>(each * self(k - 1)); });
        });
    return power(constant(graph, 2));
  });
  auto n = placeholder<float>(graph, {});
  auto y = gradients(outer(n), n);
  Session session(graph);
  const Model model(session, {{"f", {{"a", a}, {"b", b}, {"c", c}, {"n", n}}, {{"y", y}}}});
  const Tensor<float> one(1.0f), two(2.0f), three(3.0f), five(5.0f);
  const float expected = session.run({{a, one}, {b, two}, {c, three}, {n, five}}, y).scalar();
  CHECK(expected == 3 * 15 * 15 * 4);
  const NamedTensors out = model.prepare("f")({{"a", one}, {"b", two}, {"c", three}, {"n", five}});
  CHECK(out.get<float>("y").scalar() == expected);
}

TEST_CASE("an edge may be an input of one signature and computed by another") {
  Graph graph;
  auto x = placeholder<float>(graph, {2}, {.name = "x"});
  auto code = x * 3.0f;
  auto y = code + 1.0f;
  Session session(graph);
  const Model model(session, {{"whole", {{"x", x}}, {{"y", y}}}, {"decode", {{"code", code}}, {{"y", y}}}});
  const Tensor<float> two({2}, {1, 2});
  CHECK(bitwise_equal(model.prepare("whole")({{"x", two}})["y"], Tensor<float>({2}, {4, 7})));
  CHECK(bitwise_equal(model.prepare("decode")({{"code", two}})["y"], Tensor<float>({2}, {2, 3})));
  // Alone, the second one has no need of x.
  const Model decode = models::prune(model, {"decode"});
  CHECK(!decode.graph().find("x").is_valid());
  CHECK(bitwise_equal(decode.prepare("decode")({{"code", two}})["y"], Tensor<float>({2}, {2, 3})));
  CHECK(contains(error_of([&] { return decode.signature("whole"); }, Code::not_found), "there is 'decode'"));
}

TEST_CASE("the same name for different edges of two signatures is asked for by the signature") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  Session session(graph);
  const Model model(session, {{"f", {{"x", x}}, {{"y", x + 1.0f}}}, {"g", {{"x", x}}, {{"y", x + 2.0f}}}});
  CHECK(model.input("x") == model.signature("g").inputs[0].edge);
  CHECK(contains(error_of([&] { return model.output("y"); }), "different edges named 'y'"));
  CHECK(!(model.signature("f").outputs[0].edge == model.signature("g").outputs[0].edge));
}

TEST_CASE("programs with control flow give the same values as models, frozen and not") {
  const auto run_as_model = [](const ControlFlowProgram& program) {
    Graph graph;
    auto x = placeholder<float>(graph, {});
    auto n = placeholder<std::int32_t>(graph, {});
    Variable<float> zero(graph, 0.0f, {.name = "zero"});
    Signature signature{"f", {{"x", x}, {"n", n}}, {}};
    int number = 0;
    for (const Output<float>& edge : program.build(graph, x, n)) {
      signature.outputs.push_back({std::to_string(number++), edge + zero});
    }
    Session session(graph);
    session.run(initialize_variables(graph));
    const std::vector<NamedTensor> fed{{"x", Tensor<float>(1.5f)}, {"n", Tensor<std::int32_t>(4)}};
    std::vector<Feed> feeds{{x, Tensor<float>(1.5f)}, {n, Tensor<std::int32_t>(4)}};
    std::vector<AnyOutput> edges;
    for (const NamedEdge& output : signature.outputs) edges.push_back(output.edge);
    std::vector<AnyTensor> expected(edges.size());
    session.run_erased({}, nullptr, feeds, edges, {}, expected);
    const Model model(session, {signature});
    const Model frozen = models::freeze(model);
    CHECK(!has_op(frozen.graph(), "Variable"));
    for (const Model* each : {&model, &frozen}) {
      const NamedTensors out = each->prepare("f")(fed);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK(bitwise_equal(out[std::to_string(i)], expected[i]));
      }
    }
  };
  for (const auto& programs : {control_flow_programs(), raw_control_flow_programs()}) {
    for (const ControlFlowProgram& program : programs) {
      CAPTURE(program.name);
      run_as_model(program);
    }
  }
}

TEST_CASE("variables that bodies read are frozen, and reads in the graph's order stay") {
  Graph graph;
  Variable<float> w(graph, 3.0f, {.name = "w"});
  auto x = placeholder<float>(graph, {});
  auto scale = function(graph, "scale", [&](Output<float> v) { return v * w.read(); });
  auto branch = cond(
      x > 0.0f, [&] { return scale(x); }, [&] { return w.read() - x; });
  auto sum = while_loop([](auto v) { return v < 20.0f; }, [&](auto v) { return v + w.read(); }, branch);
  Session session(graph);
  session.run(initialize_variables(graph));
  session.run(w.assign(constant(graph, 5.0f)));
  const Model frozen = models::freeze(Model(session, {{"f", {{"x", x}}, {{"y", sum}}}}));
  CHECK(!has_op(frozen.graph(), "Variable"));
  CHECK(!has_op(frozen.graph(), "ReadVariable"));
  const PreparedModel f = frozen.prepare("f");
  for (const float at : {2.0f, -1.0f}) {
    const float expected = session.run({{x, at}}, sum).scalar();
    CHECK(f({{"x", Tensor<float>(at)}}).get<float>("y").scalar() == expected);
  }
}

TEST_CASE("a variable that a signature writes stays one, and freezing it is an error that names the node") {
  Graph graph;
  Variable<std::int64_t> calls(graph, std::int64_t{40}, {.name = "calls", .trainable = false});
  Variable<float> w(graph, 2.0f, {.name = "w"});
  auto x = placeholder<float>(graph, {});
  Operation count = calls.assign_add(std::int64_t{1});
  Output<std::int64_t> counted;
  {
    auto after = graph.control_dependencies({count});
    counted = calls.read();
  }
  Session session(graph);
  session.run(initialize_variables(graph));
  session.run(count);
  const Model model(session,
                    {{"f", {{"x", x}}, {{"y", x * w}, {"calls", counted}}}, {"g", {{"x", x}}, {{"y", x * w}}}});
  const Status status = status_of([&] { return models::freeze(model); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.op() == "AssignAdd");
  CHECK(mentions(status, "a signature does not only read variable 'calls'"));
  CHECK(!has_op(models::freeze(models::prune(model, {"g"})).graph(), "Variable"));

  const auto files = std::make_shared<MemoryFileSystem>();
  models::save("/m", model, files);
  const Model loaded = models::load("/m", {.files = files});
  CHECK(loaded.values().size() == 1);
  const PreparedModel f = loaded.prepare("f");
  for (const std::int64_t expected : {42, 43}) {
    const NamedTensors out = f({{"x", Tensor<float>(3.0f)}});
    CHECK(out.get<std::int64_t>("calls").scalar() == expected);
    CHECK(out.get<float>("y").scalar() == 6.0f);
  }
  // Another prepared signature of the model sees the same variables, and a copy of the model has its own.
  CHECK(loaded.prepare("f")({{"x", Tensor<float>(3.0f)}}).get<std::int64_t>("calls").scalar() == 44);
  const Model copy = loaded;
  CHECK(copy.prepare("f")({{"x", Tensor<float>(3.0f)}}).get<std::int64_t>("calls").scalar() == 42);
}

TEST_CASE("a handle that goes through raw control flow is not frozen") {
  Graph graph;
  Variable<float> w(graph, 2.0f, {.name = "w"});
  auto x = placeholder<float>(graph, {});
  Session session(graph);
  session.run(initialize_variables(graph));
  auto initialized = w.any_variable().is_initialized().as<bool>();
  const Model model(session, {{"f", {{"x", x}}, {{"y", x * w}, {"is", initialized}}}});
  CHECK(status_of([&] { return models::freeze(model); }).op() == "IsVariableInitialized");
}

TEST_CASE("lookup tables keep their content") {
  const auto files = std::make_shared<MemoryFileSystem>();
  const Tensor<std::string> words({3}, {"cat", "dog", "emu"});
  for (const bool is_frozen : {false, true}) {
    CAPTURE(is_frozen);
    {
      Graph graph;
      HashTable<std::string, std::int64_t> vocabulary(graph, {.name = "vocabulary"});
      MutableHashTable<std::int64_t, float> weights(graph, {.value_shape = {2}, .name = "weights"});
      Operation fill = vocabulary.initialize(constant(graph, Tensor<std::string>({2}, {"cat", "dog"})),
                                             constant(graph, Tensor<std::int64_t>({2}, {10, 20})));
      auto text = placeholder<std::string>(graph, {dynamic}, {.name = "text"});
      auto ids = vocabulary.find(text, std::int64_t{-1});
      const Variable<float> bias(graph, Tensor<float>({2}, {0, 0}));  // and with it collections of other names
      auto found = weights.find(ids, Tensor<float>({2}, {0, 0})) + bias;
      Operation put = weights.insert(constant(graph, Tensor<std::int64_t>({1}, {20})),
                                     constant(graph, Tensor<float>({1, 2}, {3, 4})));
      Session session(graph);
      CHECK(code_of([&] {
              return Model(session, {{"f", {{"text", text}}, {{"ids", ids}}}});
            }) == Code::failed_precondition);
      session.run(fill, put, initialize_variables(graph));
      const std::size_t nodes = graph.num_nodes();
      Model model(session, {{"f", {{"text", text}}, {{"ids", ids}, {"weights", found}}}});
      const std::size_t exports = graph.num_nodes() - nodes;
      model = Model(session, {{"f", {{"text", text}}, {{"ids", ids}, {"weights", found}}}});
      CHECK(graph.num_nodes() - nodes == exports);
      models::save("/m", is_frozen ? models::freeze(model) : model, files);
    }
    // Saved again as it was loaded, too.
    models::save("/m", models::load("/m", {.files = files}), files);
    const Model model = models::load("/m", {.files = files});
    const NamedTensors out = model.prepare("f")({{"text", words}});
    CHECK(bitwise_equal(out["ids"], Tensor<std::int64_t>({3}, {10, 20, -1})));
    CHECK(bitwise_equal(out["weights"], Tensor<float>({3, 2}, {0, 0, 3, 4, 0, 0})));
    Session session(model.graph());
    model.initialize(session);
    model.initialize(session);
    CHECK(bitwise_equal(model.prepare(session, "f")({{"text", words}})["ids"], out["ids"]));
  }
}

TEST_CASE("a session of another graph is refused") {
  Trained trained(0);
  const Model model(trained.session, trained.signatures());
  CHECK(contains(error_of([&] { return model.prepare(trained.session, "serving_default"); }), "of another graph"));
  CHECK(contains(error_of([&] {
                   model.initialize(trained.session);
                   return 0;
                 }),
                 "of another graph"));
}

TEST_CASE("models that were moved from say so") {
  Trained trained(0);
  Model model(trained.session, trained.signatures());
  PreparedModel predict = model.prepare("serving_default");
  const PreparedModel moved = std::move(predict);
  const Model taken = std::move(model);
  CHECK(code_of([&] { return predict({{"points", trained.points}}); }) == Code::failed_precondition);
  CHECK(code_of([&] { return model.prepare("serving_default"); }) == Code::failed_precondition);
  CHECK(code_of([&] { return model.prepare(trained.session, "serving_default"); }) == Code::failed_precondition);
  CHECK(code_of([&] { return model.signatures(); }) == Code::failed_precondition);
  CHECK(code_of([&] { return model.signature("serving_default"); }) == Code::failed_precondition);
  CHECK(code_of([&] { return model.input("points"); }) == Code::failed_precondition);
  CHECK(code_of([&] { return Model(model); }) == Code::failed_precondition);
  Code told = Code::ok;
  predict.run_async({}, {}, [&](const Status& status, const std::vector<AnyTensor>&) { told = status.code(); });
  CHECK(told == Code::failed_precondition);
  predict.run_async({}, {}, nullptr);
  CHECK(moved({{"points", trained.points}}).size() == 2);
  CHECK(taken.prepare("serving_default")({{"points", trained.points}}).size() == 2);
}

TEST_CASE("a model is called from many threads at once, and asynchronously") {
  Trained trained;
  const Tensor<float> expected = trained.logits_value();
  const Model model(trained.session, trained.signatures());
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const PreparedModel predict = model.prepare("serving_default");
        for (int i = 0; i < 50; ++i) {
          if (!bitwise_equal(predict({{"points", trained.points}})["logits"], expected)) ++wrong;
        }
      });
    }
  }
  CHECK(wrong == 0);
  const PreparedModel predict = model.prepare("serving_default");
  std::promise<std::pair<Status, std::vector<AnyTensor>>> first, second;
  const std::vector<NamedTensor> inputs{{"points", trained.points}};
  predict.run_async({}, inputs, [&](Status status, std::vector<AnyTensor> tensors) {
    first.set_value({std::move(status), std::move(tensors)});
  });
  predict.run_async({}, {}, [&](Status status, std::vector<AnyTensor> tensors) {
    second.set_value({std::move(status), std::move(tensors)});
  });
  const auto [status, tensors] = first.get_future().get();
  REQUIRE(status.ok());
  CHECK(bitwise_equal(tensors.at(0), expected));
  CHECK(second.get_future().get().first.code() == Code::invalid_argument);
  RunOptions late;
  late.deadline = Duration(0);
  CHECK(code_of([&] { return predict.run(late, nullptr, inputs); }) == Code::deadline_exceeded);
}

TEST_CASE("a callback gets the errors of a model's inputs on its own thread, may be empty, and may throw") {
  Trained trained(0);
  Model model(trained.session, trained.signatures());
  std::promise<Status> thrown;
  Session session(model.graph(), {.on_callback_error = [&](const Status& status) { thrown.set_value(status); }});
  const PreparedModel predict = model.prepare(session, "serving_default");
  const std::vector<NamedTensor> wrong{{"nothing", trained.points}};
  std::promise<std::pair<Code, std::thread::id>> told;
  predict.run_async({}, wrong, [&](const Status& status, const std::vector<AnyTensor>&) {
    told.set_value({status.code(), std::this_thread::get_id()});
  });
  const auto [code, thread] = told.get_future().get();
  CHECK(code == Code::not_found);
  CHECK(thread != std::this_thread::get_id());
  predict.run_async({}, wrong, nullptr);
  predict.run_async({}, wrong,
                    [](const Status&, const std::vector<AnyTensor>&) { throw std::runtime_error("thrown"); });
  CHECK(contains(thrown.get_future().get().message(), "thrown"));
}

TEST_CASE("a task that a thread runs while it prepares a model may prepare it too") {
  Trained trained;
  const auto files = std::make_shared<MemoryFileSystem>();
  models::save("m", trained.session, trained.save_options(files));
  const auto pool = std::make_shared<PoolWithTask>();
  const net::Server server(net::ClusterSpec::local(), {.pool = pool});
  const Model model = models::load("m", {.trainable = true, .session = {.target = server.target()}, .files = files});
  std::optional<PreparedModel> meanwhile;
  pool->meanwhile = [&] { meanwhile = model.prepare("serving_default"); };
  const PreparedModel predict = model.prepare("serving_default");
  REQUIRE(meanwhile);
  CHECK(bitwise_equal((*meanwhile)({{"points", trained.points}})["logits"], trained.logits_value()));
  CHECK(bitwise_equal(predict({{"points", trained.points}})["logits"], trained.logits_value()));

  // Without a session there is nobody to wait for: the next call makes one.
  const Model refused = models::load("m", {.session = {.num_threads = -1}, .files = files});
  for (int i = 0; i < 2; ++i) {
    CHECK(code_of([&] { return refused.prepare("serving_default"); }) == Code::invalid_argument);
  }
}

TEST_CASE("an input that no output needs is fed like the others") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  auto rate = placeholder<float>(graph, {}, {.name = "rate"});
  Session session(graph);
  const Model model(session, {{"f", {{"x", x}, {"rate", rate}, {"scaled", rate * 2.0f}}, {{"y", x + 1.0f}}}});
  const NamedTensors out =
      model.prepare("f")({{"x", Tensor<float>(1.0f)}, {"scaled", Tensor<float>(2.0f)}, {"rate", Tensor<float>(3.0f)}});
  CHECK(out.get<float>("y").scalar() == 2.0f);
  CHECK(!has_op(model.graph(), "Mul"));
}

TEST_CASE("a file's collection of table initializers may name any node") {
  Graph graph;
  Output<float> deep = constant(graph, 1.0f);
  for (int i = 0; i < 20000; ++i) deep = deep + 1.0f;
  graph.add_to_collection("table_initializers", deep.operation());
  graph.add_to_collection("table_initializers", graph.find("Const"));
  Session session(graph);
  const Model model(session, {{"f", {}, {{"y", deep}}}});
  CHECK(models::prune(model, {"f"}).prepare("f")({}).get<float>("y").scalar() == 20001.0f);
}

TEST_CASE("a model of a session with several devices runs on one") {
  Graph graph;
  auto x = placeholder<float>(graph, {dynamic, 2});
  std::optional<Variable<float>> w;
  Output<float> y;
  {
    auto on = graph.device("/cpu:1");
    w.emplace(graph, Tensor<float>({2, 1}, {3, 4}), VariableOptions{.name = "w"});
    y = matmul(x, *w);
  }
  auto z = y + 1.0f;
  Session session(graph, {.num_cpu_devices = 2});
  session.run(initialize_variables(graph));
  const Model model(session, {{"f", {{"x", x}}, {{"z", z}}}});
  const NamedTensors out = model.prepare("f")({{"x", Tensor<float>({1, 2}, {1, 2})}});
  CHECK(out.get<float>("z")(0, 0) == 12.0f);
}
