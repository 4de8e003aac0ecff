#include <dflow/ops/nn/sampled_losses.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

/// tools/oracle/candidate_values.py: losses of TensorFlow 2.21.0 and their gradients by weights, biases and inputs.
struct LossRow {
  std::string name;
  std::vector<double> losses, by_weights, by_biases, by_inputs;
};

const std::vector<LossRow>& rows_of_losses() {
  static const std::vector<LossRow> rows{
      {"nce_loss",
       {8.94651910885, 7.15372387325, 6.94078360089, 6.98142010062},
       {-0.755014673731, 0.416771136811,   -0.726978820388, -0.142187490679, -0.0284374981357, 0.0853124944071,
        2.05216681852,   1.04208124428,    -5.8139558796,   1.66197297895,   0.423142798876,   -3.11752010019,
        0.0973309555533, -0.0324436518511, -0.162218259256, 0.421421398729,  0.0842842797459,  -0.252852839238,
        1.16494780508,   0.0889723262875,  -1.34310390136},
       {1.1437499572, -0.113749992543, 6.85603712389, 3.54066289906, 0.129774607404, 0.337137118984, 1.43207622765},
       {-1.06584150966, 1.18269458993, -1.1729459358, 0.136063443028, 0.777721921088, -1.08509810256, -0.146957499528,
        1.13745917165, -1.17409146812, -0.163141804357, 0.904946485031, -1.13112489959}},
      {"nce_loss without hits",
       {6.48480902686, 7.15372387325, 5.23012685151, 6.50704671544},
       {-0.22860547324,  0.206207456615,   -0.516415140192, -0.142187490679, -0.0284374981357, 0.0853124944071,
        3.11799639567,   0.615749413422,   -5.38762404874,  0.842720027069,  0.423142798876,   -2.29826714831,
        0.0973309555533, -0.0324436518511, -0.162218259256, 0.421421398729,  0.0842842797459,  -0.252852839238,
        0.881653950807,  0.183403611044,   -0.870947477576},
       {0.722622596807, -0.113749992543, 6.00337346216, 2.72140994718, 0.129774607404, 0.337137118984, 1.05435108862},
       {-0.536830073938, 0.915586636831, -0.850594827422, 0.136063443028, 0.777721921088, -1.08509810256,
        -0.146957499528, 0.625426076723, -0.866871611162, -0.446435658627, 0.999377769787, -1.27277182672}},
      {"sampled_softmax_loss",
       {1.08312971697, 2.3161352463, 1.95265432273, 2.46112352768},
       {0.223059990671,  -0.0808261028123, 0.0566859523714, -0.581850425878, -0.116370085176,  0.349110255527,
        1.49228001438,   -0.0421709774103, -1.59413870676,  -0.366618010464, 0.0727838145423,  0.100235268524,
        -0.293166721989, 0.0977222406629,  0.488611203314,  -0.272569083944, -0.0545138167888, 0.163541450367,
        -0.201135762775, 0.123374926982,   0.435954576659},
       {-0.137512055184, -0.465480340702, 1.55196772935, -0.0274514539819, -0.390888962651, -0.218055267155,
        -0.312579649677},
       {0.122042802607, 0.11499264256, -0.138783376151, 0.0677751717037, 0.33831569178, -0.679576057779,
        -0.118772239097, -0.224018275511, -0.103229109092, -0.564348067311, 0.774883913234, -0.551576432389}},
      {"sampled_softmax_loss with hits",
       {1.25708985724, 2.3161352463, 2.28095090806, 2.49931995343},
       {0.265632523628,  -0.0989405518527,  0.0779189870308, -0.581850425878, -0.116370085176,  0.349110255527,
        1.22148027757,   -0.00658834194391, -1.41988914332,  -0.144295969818, 0.0633834189855,  -0.075111609114,
        -0.296233517548, 0.0987445058493,   0.493722529246,  -0.272569083944, -0.0545138167888, 0.163541450367,
        -0.192163804005, 0.114284870926,    0.410707530267},
       {-0.176859538884, -0.465480340702, 1.41330080138, 0.1384950281, -0.394978023397, -0.218055267155,
        -0.29642265934},
       {0.133558518909, 0.12763405515, -0.186378935034, 0.0677751717037, 0.33831569178, -0.679576057779,
        -0.0855337569929, -0.161326627209, -0.0743403812108, -0.533829443383, 0.755213289091, -0.521536440066}},
  };
  return rows;
}

/// 7 classes, 3 numbers of each, a batch of 4; the numbers of candidate_values.py.
template <class T>
df::Tensor<T> loss_weights() {
  df::Tensor<T> tensor({7, 3});
  for (int i = 0; i < 21; ++i) tensor.data()[i] = static_cast<T>(static_cast<float>(i * 5 % 13 - 6) / 8);
  return tensor;
}
template <class T>
df::Tensor<T> loss_biases() {
  df::Tensor<T> tensor({7});
  for (int i = 0; i < 7; ++i) tensor.data()[i] = static_cast<T>(static_cast<float>(i % 3 - 1) / 4);
  return tensor;
}
template <class T>
df::Tensor<T> loss_inputs() {
  df::Tensor<T> tensor({4, 3});
  for (int i = 0; i < 12; ++i) tensor.data()[i] = static_cast<T>(static_cast<float>(i * 7 % 11 - 5) / 4);
  return tensor;
}
df::Tensor<std::int64_t> loss_labels() { return df::Tensor<std::int64_t>({4, 2}, {0, 2, 5, 1, 3, 3, 6, 4}); }

df::Candidates loss_candidates(df::Graph& graph) {
  return {df::constant(graph, df::Tensor<std::int64_t>({5}, {2, 6, 3, 2, 0})),
          df::constant(graph, df::Tensor<float>({4, 2}, {0.125f, 0.25f, 0.375f, 0.5f, 0.625f, 0.75f, 0.875f, 1})),
          df::constant(graph, df::Tensor<float>({5}, {0.5f, 1.5f, 0.25f, 0.5f, 2}))};
}

template <class T>
df::Output<T> loss_of_row(const std::string& name, df::Graph& graph, const df::Output<T>& weights,
                          const df::Output<T>& biases, const df::Output<T>& inputs,
                          const df::Output<std::int64_t>& labels) {
  df::SampledLossOptions options{.sampled_values = loss_candidates(graph)};
  if (name.find("without hits") != std::string::npos) options.remove_accidental_hits = true;
  if (name.find("with hits") != std::string::npos) options.remove_accidental_hits = false;
  return name.find("nce") == 0 ? df::nce_loss(weights, biases, inputs, labels, options)
                               : df::sampled_softmax_loss(weights, biases, inputs, labels, options);
}

template <class T>
bool are_losses(const df::Tensor<T>& got, const std::vector<double>& wanted, double tolerance) {
  if (got.num_elements() != static_cast<std::int64_t>(wanted.size())) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto number = static_cast<double>(got.data()[i]);
    if (!(std::abs(number - wanted[i]) <= tolerance * (1 + std::abs(wanted[i])))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("sampled losses and their gradients are TensorFlow's for given candidates") {
  for (const LossRow& row : rows_of_losses()) {
    INFO(row.name);
    df::Graph graph;
    const auto weights = df::placeholder<double>(graph, {7, 3}), biases = df::placeholder<double>(graph, {7}),
               inputs = df::placeholder<double>(graph, {4, 3});
    const auto labels = df::constant(graph, loss_labels());
    const auto loss = loss_of_row(row.name, graph, weights, biases, inputs, labels);
    CHECK(loss.shape() == df::PartialShape{4});
    const auto total = df::reduce_sum(loss);
    const auto [dw, db, dx] = df::gradients(total, weights, biases, inputs);
    df::Session session(graph);
    const std::initializer_list<df::Feed> feeds{
        {weights, loss_weights<double>()}, {biases, loss_biases<double>()}, {inputs, loss_inputs<double>()}};
    const auto [losses, by_weights, by_biases, by_inputs] = session.run(feeds, loss, dw, db, dx);
    CHECK(are_losses(losses, row.losses, 1e-7));
    CHECK(are_losses(by_weights, row.by_weights, 1e-7));
    CHECK(are_losses(by_biases, row.by_biases, 1e-7));
    CHECK(are_losses(by_inputs, row.by_inputs, 1e-7));
    CHECK(df::check_gradients(session, dw, feeds).is_ok());
    CHECK(df::check_gradients(session, dx, feeds).is_ok());
  }
}

TEST_CASE("sampled losses of other element types and of int32 labels are the same") {
  const auto check = []<class T>(T, double tolerance) {
    for (const LossRow& row : rows_of_losses()) {
      df::Graph graph;
      const auto weights = df::constant(graph, loss_weights<T>()), biases = df::constant(graph, loss_biases<T>()),
                 inputs = df::constant(graph, loss_inputs<T>());
      const auto labels = df::constant(graph, loss_labels());
      df::Session session(graph);
      const auto losses = session.run(loss_of_row(row.name, graph, weights, biases, inputs, labels));
      INFO(row.name << " of " << df::dtype_name(df::dtype_of<T>));
      CHECK(are_losses(losses, row.losses, tolerance));
    }
  };
  check(float(), 1e-5);
  check(df::Half(), 1e-2);
  check(df::BFloat16(), 4e-2);
}

TEST_CASE("gradients of variables by sampled losses are rows, and all classes give the whole softmax") {
  df::Graph graph({.seed = 11});
  const df::Variable<float> weights(graph, loss_weights<float>()), biases(graph, loss_biases<float>());
  const auto inputs = df::placeholder<float>(graph, {df::dynamic, 3});
  const auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic, 1});
  const df::SampledLossOptions drawn{.num_sampled = 3, .num_classes = 7};
  const auto loss = df::nce_loss(weights, biases, inputs, labels, drawn, {.name = "loss"});
  CHECK(loss.name() == "loss");
  const std::vector<df::AnyOutput> ys{df::reduce_sum(loss)}, xs{weights, biases};
  for (const df::Gradient& gradient : df::gradients(ys, xs)) CHECK(gradient.slices.has_value());

  // With every class a candidate, and true classes left out among them, the loss is that of all classes.
  const auto ids = df::cast<std::int64_t>(labels);
  const df::SampledLossOptions all{.sampled_values = df::all_candidate_sampler(ids, 7)};
  const auto sampled = df::sampled_softmax_loss(weights, biases, inputs, labels, all);
  const auto logits = df::matmul(inputs, weights, {.transpose_b = true}) + biases;
  const auto whole = df::sparse_softmax_cross_entropy(logits, df::reshape(labels, {-1}));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const std::initializer_list<df::Feed> feeds{{inputs, loss_inputs<float>()},
                                              {labels, df::Tensor<std::int32_t>({4, 1}, {0, 6, 2, 2})}};
  const auto [got, want, some] = session.run(feeds, sampled, whole, loss);
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(got(i) == Catch::Approx(want(i)).epsilon(1e-5));
    CHECK(std::isfinite(some(i)));
  }
}

TEST_CASE("sampled losses refuse what does not fit") {
  df::Graph graph;
  const auto weights = df::constant(graph, loss_weights<float>()), biases = df::constant(graph, loss_biases<float>());
  const auto inputs = df::placeholder<float>(graph, {4, 3});
  const df::SampledLossOptions options{.num_sampled = 3, .num_classes = 7};
  const auto labels_of = [&](df::PartialShape shape) { return df::placeholder<std::int64_t>(graph, std::move(shape)); };
  CHECK(error_of([&] {
          df::nce_loss(weights, biases, inputs, labels_of({4, df::dynamic}), options);
        }).find("nce_loss") != std::string::npos);
  CHECK(error_of([&] {
          df::nce_loss(weights, biases, inputs, labels_of({1, 2}), options);
        }).find("BatchMatMul") != std::string::npos);
  CHECK(error_of([&] {
          df::sampled_softmax_loss(weights, biases, inputs, labels_of({4, 2}), {.num_sampled = 8, .num_classes = 7});
        }).find("num_sampled = 8 unique candidates are more than range_max = 7") != std::string::npos);
  const auto labels = labels_of({4, 1});
  const auto loss = df::nce_loss(weights, biases, inputs, labels, options);
  df::Session session(graph);
  const std::initializer_list<df::Feed> feeds{{inputs, loss_inputs<float>()},
                                              {labels, df::Tensor<std::int64_t>({4, 1}, {0, 7, 1, 1})}};
  CHECK(error_of([&] { session.run(feeds, loss); }).find("true_classes[1,0] = 7 is outside [0, 7)") !=
        std::string::npos);
}
