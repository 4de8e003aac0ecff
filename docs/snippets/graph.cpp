// The snippets of docs/graph.md and docs/control-flow.md, one function per section.

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_def_json.hpp>
#include <dflow/op/import.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/state/random_stream.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

void tensors() {
  // [tensors]
  df::Tensor<float> t({2, 3}, {1, 2, 3, 4, 5, 6});
  t(1, 2) = 7;
  df::Tensor<float> same = t;                     // a handle to the same elements
  df::Tensor<float> own = t.copy();               // elements of its own
  df::Tensor<float> first_row = t.slice(0, 1);    // [1, 3], shares t's elements
  df::Tensor<float> column = t.reshaped({6, 1});  // shares them as well
  std::vector<float> numbers(6, 0.5f);
  df::Tensor<float> view = df::borrow(numbers, {2, 3});  // no copy: `numbers` must outlive every handle
  df::AnyTensor any = t;                                 // element type known at run time only
  df::Tensor<float> typed_again(any);                    // throws InvalidArgument if it were another type
  // [tensors]
  require(own(1, 2) == 7 && first_row.dim(0) == 1 && column.rank() == 2 && view(1, 1) == 0.5f, "tensors");
  require(same(0, 1) == 2 && typed_again(1, 2) == 7, "handles");

  // [elements]
  std::int64_t count = t.num_elements(), columns = t.dim(1);  // 6, 3
  int rank = t.rank();                                        // 2
  const df::Shape& shape = t.shape();                         // prints as [2,3]
  float total = 0;
  for (float element : t) total += element;        // in row-major order
  std::span<float> all = t.span();                 // the same elements; t.data() is a pointer to the first
  float only = df::Tensor<float>(3.0f).scalar();   // the element of a tensor that has one
  auto ones = df::Tensor<float>::full({2, 2}, 1);  // and zeros(shape)
  std::puts(t.to_string().c_str());                // float[2,3] [[1, 2, 3], [4, 5, 7]]
  // [elements]
  require(count == 6 && columns == 3 && rank == 2 && shape == df::Shape({2, 3}) && total == 22, "elements");
  require(all[5] == 7 && only == 3 && ones(1, 1) == 1, "whole tensors");

  // [lending]
  const std::vector<float> table(6, 0.5f);
  auto lent = df::borrow(table, {2, 3});  // const elements: nobody writes them
  auto* block = new std::vector<float>(6);
  df::Tensor<float> given = df::adopt(std::span(*block), {2, 3}, [block] { delete block; });
  // [lending]
  require(lent.is_read_only() && lent.is_borrowed() && !given.is_borrowed(), "lending");
}

void outputs() {
  // [outputs]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 3});  // Output<float>, shape [?,3]
  auto w = df::constant(graph, df::Tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  auto y = df::relu(df::matmul(x, w)) * 2.0f + 1.0f;              // literals take the edge's element type
  auto is_large = y > 10.0f;                                      // Output<bool>
  auto count = df::reduce_sum(df::cast<std::int32_t>(is_large));  // types never mix by themselves
  auto logits = df::matmul(x, w, {.transpose_a = false}, {.name = "logits"});
  // [outputs]

  // [erased]
  df::AnyOutput edge = graph.output("logits");  // by name, with the index of the output as in "name:1"
  std::printf("%s is a %s of shape %s\n", edge.name().c_str(), std::string(df::dtype_name(edge.dtype())).c_str(),
              edge.shape().to_string().c_str());  // logits is a float of shape [?,2]
  df::Output<float> typed = edge.as<float>();     // throws InvalidArgument if it were another type
  // [erased]
  df::Session session(graph);
  require(session.run({{x, df::Tensor<float>({1, 3}, {1, 1, 1})}}, count).scalar() == 2, "count");
  require(typed == logits, "the edge found by name");

  auto texts = df::constant<std::string>(graph, {"<=50K", ">50K"});
  // [operands]
  auto rich = df::equal(texts, ">50K");
  auto clipped = df::select(is_large, 10.0f, y);                   // a number beside edges
  auto positions = df::range(0, df::size(texts), 1);               // start, limit, delta
  auto mixed = df::matmul(y, df::Tensor<float>({2, 1}, {1, -1}));  // a tensor is a constant, too
  auto first = df::gather(w, 0);
  // [operands]
  require(session.run(rich)(1) && session.run(positions)(1) == 1 && session.run(first)(1) == 2, "operands");
  require(clipped.dtype() == df::DType::float32 && mixed.shape() == df::PartialShape{df::dynamic, 1}, "operands");

  auto i = df::constant(graph, 2);
  // [parts]
  auto row = df::gather(w, i);                                         // row i, an Output<std::int32_t> []: shape [2]
  auto rows = df::slice(w, {1, 0}, {2, -1});                           // rows 1 and 2: [2, 2]
  auto column = w(df::slice(), 1);                                     // NumPy's w[:, 1]: shape [3]
  auto around = w(df::slice({}, {}, -1), df::ellipsis, df::new_axis);  // w[::-1, ..., numpy.newaxis]: [3, 2, 1]
  std::vector<df::Output<float>> all = df::unpack(w, 3);               // each row, where it is known how many there are
  // [parts]
  const auto [one, second, last] = session.run(row, column, all[2]);
  require(std::ranges::equal(one.span(), last.span()), "row");
  require(std::ranges::equal(second.span(), std::array{2.0f, 4.0f, 6.0f}), "column");
  require(std::ranges::equal(session.run(rows).span(), std::array{3.0f, 4.0f, 5.0f, 6.0f}), "rows");
  require(session.run(around).to_string() == "float[3,2,1] [[[5], [6]], [[3], [4]], [[1], [2]]]", "around");
}

void build_errors() {
  // [build_errors]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  auto w = df::placeholder<float>(graph, {4, 2});
  try {
    df::matmul(x, w);
  } catch (const df::Error& error) {
    // error.code() is Code::invalid_argument, error.status().op() "MatMul", and error.status().where() the line of
    // the call above; what() has it all, with the shapes.
    std::puts(error.what());
  }
  // [build_errors]
  require(graph.num_nodes() == 2, "a failed builder appends nothing");
}

void scopes() {
  // [scopes]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 4}, {.name = "x"});
  df::Output<float> hidden;
  {
    auto in = graph.name_scope("encoder");  // names become "encoder/..."
    auto on = graph.device("/cpu:0");       // and these nodes are placed there
    hidden = df::dense(x, 8);               // "encoder/dense/kernel", "encoder/dense/bias", ...
  }
  auto checked = df::check_numerics(hidden, "the encoder's output");
  {
    auto after = graph.control_dependencies({checked.operation()});
    hidden = df::tanh(hidden);  // runs after the check, although it does not read its output
  }
  // [scopes]
  require(graph.find("encoder/dense/kernel").is_valid(), "scoped names");
}

void checks() {
  df::Graph graph;
  // [checks]
  auto weights = df::placeholder<float>(graph, df::PartialShape::unknown(), {.name = "weights"});
  auto rows = df::assert_rank(weights, 2, "weights of the classes");  // the rank is known from here on
  auto shares = df::assert_less_equal(df::assert_non_negative(rows), 1.0f, "shares");
  auto y = df::reduce_sum(shares, 1);
  // [checks]
  df::Session session(graph);
  require(session.run({{weights, df::Tensor<float>({1, 2}, {0.5f, 0.25f})}}, y)(0) == 0.75f, "checks that hold");
  try {
    session.run({{weights, df::Tensor<float>({1, 2}, {0.5f, 1.5f})}}, y);
    require(false, "a check that does not hold");
  } catch (const df::Error& error) {
    require(error.status().code() == df::Code::invalid_argument, "the code of a check");
  }
}

void devices() {
  // [devices]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  df::Output<float> scaled, shifted;
  {
    auto on = graph.device("/cpu:0");
    scaled = x * 2.0f;
  }
  {
    auto on = graph.device("/cpu:1");
    shifted = scaled + 1.0f;  // the tensor is sent from one to the other
  }
  df::Session session(graph, {.num_threads = 2, .num_cpu_devices = 2});
  auto value = session.run({{x, df::Tensor<float>({2}, {1, 2})}}, shifted);
  std::puts(session.placement_log().c_str());
  // [devices]
  require(value(1) == 5, "two devices");
}

void variables() {
  // [variables]
  df::Graph graph({.seed = 1});
  df::Variable<float> w(graph, df::truncated_normal<float>(graph, {4, 2}, {.stddev = 0.1f}), {.name = "w"});
  df::Variable<float> total(graph, 0.0f, {.name = "total", .trainable = false});
  auto x = df::placeholder<float>(graph, {df::dynamic, 4});
  auto sum = df::reduce_sum(df::matmul(x, w));  // a variable is the edge that reads it
  df::Operation add = total.assign_add(sum);
  df::Output<float> after_add;
  {
    auto after = graph.control_dependencies({add});
    after_add = total.read();  // a read that sees the update
  }

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run({{x, df::Tensor<float>::zeros({1, 4})}}, add);  // an operation is run, nothing comes back
  auto [value, weights] = session.run({{x, df::Tensor<float>::zeros({1, 4})}}, after_add, w);
  // [variables]
  require(value.scalar() == 0 && weights.dim(0) == 4, "variables");
}

void random_streams() {
  // [random_streams]
  df::Graph graph;
  auto noise = df::random_uniform<float>(graph, {3});
  auto device = std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{});
  auto another = std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{});
  df::Session session(graph, {.devices = {device}});
  session.run(noise);
  std::map<std::string, df::RandomStreamState> saved;  // by the node's name and seeds
  auto streams = device->context().resources->container(df::RandomStream::container_name);
  for (const std::string& key : streams->names()) saved[key] = streams->lookup<df::RandomStream>(key)->state();

  auto others = another->context().resources->container(df::RandomStream::container_name);
  for (const auto& [key, state] : saved) {
    others->insert(key, std::make_shared<df::RandomStream>(key, state.seed, state.seed2));
    others->lookup<df::RandomStream>(key)->set_state(state);
  }
  df::Session resumed(graph, {.devices = {another}});
  auto next = session.run(noise), same = resumed.run(noise);  // the same numbers
  // [random_streams]
  require(next(0) == same(0) && next(1) == same(1) && next(2) == same(2), "a random stream that was saved");
}

void state() {
  // [state]
  df::Graph graph;
  df::Variable<float> total(graph, 0.0f, {.name = "total", .container = "counters"});
  df::Operation count = total.assign_add(df::constant(graph, 1.0f));

  auto device =
      std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{.pool = std::make_shared<df::WorkStealingPool>(2)});
  df::Session one(graph, {.devices = {device}}), other(graph, {.devices = {device}});
  one.run(df::initialize_variables(graph));
  one.run(count);
  float seen = other.run(total).scalar();          // 1: the device keeps it, not the session
  device->context().resources->reset("counters");  // total has no value any more, in either session
  one.release_memory();                            // what is kept for speed alone goes back to the system
  // [state]
  require(seen == 1, "a variable of two sessions");
  try {
    other.run(total);
    require(false, "a reset container");
  } catch (const df::Error& error) {
    require(error.code() == df::Code::failed_precondition, "a reset container");
  }
}

void running() {
  // [running]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  auto y = x * x;
  auto z = df::reduce_sum(y);
  df::Session session(graph);
  df::Tensor<float> at({3}, {1, 2, 3});

  df::Tensor<float> squares = session.run({{x, at}}, y);  // one fetch: its tensor
  auto [all, sum] = session.run({{x, at}}, y, z);         // several: a tuple
  auto from_y = session.run({{y, at}}, z);                // any edge can be fed: x is not needed then
  // [running]
  require(squares(2) == 9 && all(1) == 4 && sum.scalar() == 14 && from_y.scalar() == 6, "run");

  // [prepared]
  auto step = session.prepare(df::feeds(x), df::fetches(z));
  for (int i = 0; i < 3; ++i) std::printf("%g\n", static_cast<double>(step(at).scalar()));
  // [prepared]

  // [partial]
  auto scale = df::placeholder<float>(graph, {});
  auto scaled = z * scale;
  auto run = session.partial_run(df::feeds(x, scale), df::fetches(z, scaled));
  float first = run.feed(x, at).fetch(z).scalar();
  float second = run.feed(scale, 1 / first).fetch(scaled).scalar();
  // [partial]
  std::printf("%g\n", static_cast<double>(second));

  // [asynchronous]
  std::promise<float> promise;
  session.run_async({{x, at}}, z,
                    [&promise](const df::Status& status, const df::Tensor<float>& value) {  // called by another thread
                      promise.set_value(status.ok() ? value.scalar() : -1.0f);
                    });
  float result = promise.get_future().get();
  // [asynchronous]
  require(result == 14, "run_async");

  // [options]
  using namespace std::chrono_literals;
  df::RunMetadata metadata;
  auto traced = session.run({.deadline = 2s, .trace = true}, &metadata, {{x, at}}, z);
  auto within = step.run({.deadline = 2s}, nullptr, at);  // a prepared step takes them too
  std::string trace = df::chrome_trace(metadata.stats);   // for chrome://tracing or Perfetto
  // [options]
  require(traced.scalar() == 14 && within.scalar() == 14 && !trace.empty(), "trace");
}

void compiled_functions() {
  // [compiled]
  df::Graph graph;
  df::Variable<float> state(graph, 0, {.name = "state"});
  auto inc = df::placeholder<float>(graph, {});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));

  auto accumulate = df::compile(session, df::inputs(inc), df::outputs(state), df::updates(state, state + inc));
  float before = accumulate(1).scalar();                             // 0, and the state is 1
  before = accumulate(300).scalar();                                 // 1, and the state is 301
  df::CompiledFunction<df::Tensor<float>(float)> kept = accumulate;  // its type, by the element types of its inputs
  // [compiled]
  require(before == 1 && kept(1).scalar() == 301, "a compiled function");
}

void merging() {
  df::Graph trained;
  auto x = df::placeholder<float>(trained, {df::dynamic, 4}, {.name = "x"});
  auto code = df::tanh(df::dense(x, 2), {.name = "code"});
  // [merging]
  df::Graph graph;
  auto images = df::placeholder<float>(graph, {df::dynamic, 4});
  df::MergedGraph encoder = df::merge(graph, trained, {.prefix = "encoder", .input_map = df::EdgeMap().add(x, images)});
  df::Output<float> encoded = encoder(code);       // the copy of an edge: "encoder/code"
  df::Output<float> same(encoder.output("code"));  // by the name that it had
  auto noisy = df::substitute(encoded, df::EdgeMap().add(images, images + 0.1f));  // with the same variables
  // [merging]
  require(encoded == same && noisy != encoded && df::global_variables(graph).size() == 2, "a merge");
}

void run_errors() {
  // [run_errors]
  df::Graph graph;
  auto rows = df::constant(graph, df::Tensor<float>({2, 2}, {1, 2, 3, 4}));
  auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto picked = df::gather(rows, ids);
  df::Session session(graph);
  try {
    session.run({{ids, df::Tensor<std::int32_t>({1}, {7})}}, picked);
  } catch (const df::Error& error) {
    std::puts(error.what());  // which id, which range, which node, which line
  }
  auto value = session.run({{ids, df::Tensor<std::int32_t>({1}, {1})}}, picked);  // the session goes on
  // [run_errors]
  require(value(0, 1) == 4, "after an error");
}

void gradients() {
  // [gradients]
  df::Graph graph;
  auto x = df::placeholder<double>(graph, {});
  auto w = df::placeholder<double>(graph, {});
  auto y = x * x * w;
  auto dx = df::gradients(y, x);  // 2 x w
  auto [gx, gw] = df::gradients(y, x, w);
  auto second = df::gradients(dx, x);                          // 2 w: a gradient is an edge like any other
  auto held = df::gradients(df::stop_gradient(x * x) * w, x);  // 0
  auto none = df::gradients(w * w, x);                         // 0: w * w does not depend on x
  // [gradients]
  df::Session session(graph);
  auto [a, b, c, d, e, f] = session.run({{x, 3.0}, {w, 5.0}}, dx, gx, gw, second, held, none);
  require(a.scalar() == 30 && b.scalar() == 30 && c.scalar() == 9 && d.scalar() == 10, "gradients");
  require(e.scalar() == 0 && f.scalar() == 0, "gradients of what does not depend on x");
  auto v = df::placeholder<double>(graph, {3});
  auto position = df::gradients(df::cast<double>(df::argmax(v)), v);
  auto flat = session.run({{v, df::Tensor<double>({3}, {1, 3, 2})}}, position);
  require(flat(0) == 0 && flat(1) == 0 && flat(2) == 0, "gradients through a position");
}

void checked_gradients() {
  // [checked_gradients]
  df::Graph graph;
  auto x = df::placeholder<double>(graph, {2, 3});
  auto w = df::placeholder<double>(graph, {3});
  auto y = df::tanh(x * w);
  df::Session session(graph);
  const df::GradientCheck check = df::check_gradients(
      session, y,
      {{x, df::Tensor<double>({2, 3}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6})}, {w, df::Tensor<double>({3}, {1, -2, 3})}});
  if (!check.is_ok())
    std::puts(check.to_string().c_str());  // "wrong: the largest error is 1, more than the allowed ..."
  // [checked_gradients]
  require(check.is_ok() && check.max_error < 1e-6, "checked gradients");
}

void clipped_training() {
  // [clipped]
  df::Graph graph({.seed = 1});
  auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  auto loss = df::reduce_mean(df::square(df::dense(x, 1) - 1.0f));
  df::train::Momentum optimizer(0.1f, 0.9f);
  auto gradients = df::train::clip_by_global_norm(optimizer.compute_gradients(loss), 1.0);
  df::Operation train = optimizer.apply_gradients(gradients);
  // [clipped]
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  df::Tensor<float> at({2, 3}, {1, 0, 0, 0, 1, 0});
  const float before = session.run({{x, at}}, loss).scalar();
  for (int i = 0; i < 20; ++i) session.run({{x, at}}, train);
  require(session.run({{x, at}}, loss).scalar() < before, "training");
}

void control_flow() {
  // [control]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  auto limit = df::placeholder<std::int32_t>(graph, {});

  auto y = df::cond(
      df::reduce_sum(x) > 0.0f, [&] { return x * 2.0f; }, [&] { return -x; });
  auto [i, power] = df::while_loop([&](auto i, auto) { return i < limit; },
                                   [&](auto i, auto power) {
                                     return std::tuple{i + 1, power * x};
                                   },
                                   std::tuple{df::constant(graph, 0), y});
  auto gx = df::gradients(df::reduce_sum(power), x);  // through both
  auto z = df::case_of(limit, std::tuple{[&] { return x; }, [&] { return x * x; }, [&] { return df::exp(x); }});

  df::Session session(graph);
  auto [value, slope] =
      session.run({{x, df::Tensor<float>({2}, {1, 2})}, {limit, df::Tensor<std::int32_t>(3)}}, power, gx);
  // [control]
  require(value(1) == 32 && slope(1) == 64 && i.is_valid(), "branches and loops");
  require(session.run({{x, df::Tensor<float>({1}, {3})}, {limit, 1}}, z)(0) == 9, "a choice");
}

void bounded_loop() {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {256, 256});
  // [kept]
  auto [i, y] = df::while_loop([](auto i, auto) { return i < 100; },
                               [&](auto i, auto y) {
                                 return std::tuple{i + 1, df::tanh(y + x)};
                               },
                               std::tuple{df::constant(graph, 0), x}, {.max_kept_bytes = 4 << 20});
  auto gx = df::gradients(df::reduce_sum(y), x);  // of 26 MB that it needs, 22 are in a file
  // [kept]
  df::Session session(graph);
  const auto slope = session.run({{x, df::Tensor<float>::zeros({256, 256})}}, gx);
  require(slope(0, 0) == 101 && i.is_valid(), "what a loop keeps");
}

void functions() {
  // [function]
  df::Graph graph;
  auto a = df::placeholder<float>(graph, {});
  auto b = df::placeholder<float>(graph, {});
  auto norm =
      df::function(graph, "norm", [](df::Output<float> x, df::Output<float> y) { return df::sqrt(x * x + y * y); });
  auto r = norm(norm(a, b), b);   // two nodes, one body
  auto gr = df::gradients(r, a);  // functions have gradients
  // [function]
  // [recursion]
  auto power = df::recursive_function<df::Output<float>(df::Output<std::int32_t>)>(
      graph, "power", [&](const auto& self, df::Output<std::int32_t> k) {
        return df::cond(
            k < 1, [&] { return df::ones_like(a); }, [&] { return a * self(k - 1); });
      });
  auto cube = power(df::constant(graph, 3));
  // [recursion]
  df::Session session(graph);
  const auto [value, slope] = session.run({{a, df::Tensor<float>(1.0f)}, {b, df::Tensor<float>(2.0f)}}, r, gr);
  require(session.run({{a, 2.0f}}, cube).scalar() == 8, "recursion");
  require(value.scalar() == 3 && slope.scalar() > 0.33f && slope.scalar() < 0.34f, "functions");
}

void function_table() {
  // [function_table]
  df::Graph library;
  df::register_function(library, "norm",
                        [](df::Output<float> x, df::Output<float> y) { return df::sqrt(x * x + y * y); });

  df::Graph graph;
  df::merge(graph, library);  // or a graph that was read from a file
  auto x = df::placeholder<float>(graph, {});
  auto norm = df::find_function<df::Output<float>(df::Output<float>, df::Output<float>)>(graph, "norm");
  auto r = norm(x, x + 1.0f);
  // [function_table]
  df::Session session(graph);
  require(session.run({{x, 3.0f}}, r).scalar() == 5, "a function found by its name");
}

void graph_function() {
  // [graph_function]
  df::Graph trained;  // or one that was read from a file
  auto input = df::placeholder<float>(trained, {});
  auto output = df::tanh(input * 2.0f) + input;

  df::Graph graph;
  auto model = df::function(graph, "model", [&](df::Output<float> x) {
    return df::merge(graph, trained, {.prefix = "trained", .input_map = df::EdgeMap().add(input, x)})(output);
  });
  auto x = df::placeholder<float>(graph, {});
  auto y = model(model(x));  // one body
  // [graph_function]
  df::Session session(graph);
  require(session.run({{x, 0.0f}}, y).scalar() == 0, "a function made of a graph");
}

void rows() {
  // [rows]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto lengths = df::map([](auto row) { return df::sqrt(df::reduce_sum(row * row)); }, x);
  auto zero = df::constant(graph, df::Tensor<float>({2}, {0, 0}));
  auto sums = df::scan([](auto sum, auto row) { return sum + row; }, x, zero);  // of all rows so far

  auto [i, powers] = df::while_loop([](auto i, auto) { return i < 4; },
                                    [&](auto i, auto powers) {
                                      auto of = df::cast<float>(i);
                                      return std::tuple{i + 1, powers.write(i, df::pow(2.0f, of))};
                                    },
                                    std::tuple{df::constant(graph, 0), df::TensorArray<float>(graph, 4, df::Shape{})});
  auto all = powers.stack();  // [4]

  auto counts = df::constant(graph, df::Tensor<std::int32_t>({2}, {3, 1}));
  auto parts = df::TensorArray<float>::split(all, counts);       // [3] and [1]
  auto turned = df::TensorArray<float>(graph, 2, {df::dynamic})  // elements differ
                    .write(df::constant(graph, 0), parts.read(df::constant(graph, 1)))
                    .write(df::constant(graph, 1), parts.read(df::constant(graph, 0)))
                    .concat();  // [4]: the last power first
  // [rows]
  df::Session session(graph);
  const auto [a, b, c, d] = session.run({{x, df::Tensor<float>({2, 2}, {3, 4, 6, 8})}}, lengths, sums, all, turned);
  require(a(1) == 10 && b(1, 0) == 9 && c(3) == 8 && d(0) == 8 && d(3) == 4 && i.is_valid(), "rows");
}

void raw_frames() {
  // [raw]
  namespace raw = df::frames;
  df::Graph graph;
  auto limit = df::placeholder<std::int32_t>(graph, {});
  auto i = raw::merge({raw::enter(df::constant(graph, 0), "count")});
  auto goes_on = raw::loop_cond(i.value < raw::enter(limit, "count", {.is_constant = true}));
  auto [last, now] = raw::switch_on(i.value, goes_on);
  raw::next_iteration(now + 1, i);
  auto count = raw::exit(last);
  // [raw]
  df::Session session(graph);
  require(session.run({{limit, 5}}, count).scalar() == 5, "a raw loop");
}

void saving() {
  // [saving]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic}, {.name = "x"});
  auto y = df::add(x, x, {.name = "y"});

  std::string text = df::to_json(df::to_graph_def(graph));  // df::to_binary for the compact form
  df::Graph copy = df::import_graph(df::from_json(text), df::standard_op_table());
  df::Session session(copy);
  df::Output<float> fed(copy.output("x")), fetched(copy.output("y"));
  auto value = session.run({{fed, df::Tensor<float>({1}, {2})}}, fetched);
  // [saving]
  require(value(0) == 4 && y.is_valid(), "an imported graph");
}

void pieces() {
  // [selective]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto y = df::relu(df::matmul(x, df::constant(graph, df::Tensor<float>({2, 1}, {1, -1}))));

  // The program links the kernels of these ops and no others.
  constexpr auto few = df::ops<df::Placeholder, df::Const, df::Identity, df::MatMul, df::Relu>;
  df::Session session(graph, {.ops = few, .pool = std::make_shared<df::InlinePool>()});
  auto value = session.run({{x, df::Tensor<float>({1, 2}, {3, 1})}}, y);
  // [selective]
  require(value(0, 0) == 2, "a selective table");
}

}  // namespace

int main() {
  try {
    tensors();
    outputs();
    build_errors();
    scopes();
    checks();
    devices();
    variables();
    random_streams();
    state();
    running();
    compiled_functions();
    merging();
    run_errors();
    gradients();
    checked_gradients();
    clipped_training();
    control_flow();
    bounded_loop();
    functions();
    function_table();
    graph_function();
    rows();
    raw_frames();
    rows();
    saving();
    pieces();
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
