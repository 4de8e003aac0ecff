#include <dflow/train/fitting/accumulated_gradients.hpp>

#include "catch.hpp"

#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/fitting/loss_scale_optimizer.hpp>
#include <dflow/train/optimizers.hpp>
#include <dflow/train/weight_decay.hpp>

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

struct Model {
  Model() {
    w.emplace(graph, df::Tensor<float>::full({2}, 1.0f), df::VariableOptions{.name = "w"});
    table.emplace(graph, df::Tensor<float>::full({3, 2}, 2.0f), df::VariableOptions{.name = "table"});
    half.emplace(graph, df::Tensor<df::Half>::full({2}, df::Half(1.0f)), df::VariableOptions{.name = "half"});
    const auto y = df::gather(*table, ids) * *w * *w * df::cast<float>(*half);
    loss = df::reduce_mean(df::reduce_sum(y * y, {1}));
  }

  df::Graph graph;
  df::Output<std::int32_t> ids = df::placeholder<std::int32_t>(graph, {df::dynamic});
  std::optional<df::Variable<float>> w, table;
  std::optional<df::Variable<df::Half>> half;
  df::Variable<std::int64_t> step{graph, 0, {.trainable = false}};
  df::Output<float> loss;
};

}  // namespace

TEST_CASE("the update of batches that were added up is that of one batch of all of them") {
  const df::train::Momentum optimizer(0.01);
  Model parts, whole;
  const df::train::AccumulatedGradients accumulated(optimizer, parts.loss, {.global_step = parts.step});
  const auto train = optimizer.minimize(whole.loss);
  df::Session by_parts(parts.graph), at_once(whole.graph);
  by_parts.run(df::initialize_variables(parts.graph));
  at_once.run(df::initialize_variables(whole.graph));
  for (int round = 0; round < 3; ++round) {
    for (const auto& ids :
         {df::Tensor<std::int32_t>(df::Shape{2}, {0, 1}), df::Tensor<std::int32_t>(df::Shape{2}, {1, 1})}) {
      by_parts.run({{parts.ids, ids}}, accumulated.add());
    }
    by_parts.run(accumulated.update());
    at_once.run({{whole.ids, df::Tensor<std::int32_t>(df::Shape{4}, {0, 1, 1, 1})}}, train);
    const auto [w, table, half] = by_parts.run(*parts.w, *parts.table, *parts.half);
    const auto [w1, table1, half1] = at_once.run(*whole.w, *whole.table, *whole.half);
    for (int i = 0; i < 2; ++i) CHECK(w(i) == Approx(w1(i)));
    for (int i = 0; i < 2; ++i) CHECK(static_cast<float>(half(i)) == Approx(static_cast<float>(half1(i))));
    for (int i = 0; i < 6; ++i) CHECK(table.data()[i] == Approx(table1.data()[i]));
  }
  CHECK(by_parts.run(parts.step).scalar() == 3);
}

TEST_CASE("an update of nothing has no gradients in it, and adds none later") {
  Model model;
  const df::train::AccumulatedGradients accumulated(df::train::GradientDescent(0.1), model.loss);
  df::Session session(model.graph);
  session.run(df::initialize_variables(model.graph));
  session.run(accumulated.update());
  CHECK(session.run(*model.w)(0) == 1.0f);
  session.run({{model.ids, df::Tensor<std::int32_t>(df::Shape{1}, {0})}}, accumulated.add());
  CHECK(session.run(*model.w)(0) == 1.0f);  // not before the update
  session.run(accumulated.update());
  const float moved = session.run(*model.w)(0);
  CHECK(moved < 1.0f);
  session.run(accumulated.update());
  CHECK(session.run(*model.w)(0) == moved);
}

TEST_CASE("an update of nothing changes no variable, slot or global step") {
  const df::train::Momentum momentum(0.01);
  const df::train::AdamW adam(0.01);
  const df::train::LossScaleOptimizer scaled(df::train::Adam(0.01), df::train::LossScale::fixed(4));
  for (const df::train::Optimizer* const optimizer :
       std::initializer_list<const df::train::Optimizer*>{&momentum, &adam, &scaled}) {
    Model model;
    const df::train::AccumulatedGradients accumulated(*optimizer, model.loss, {.global_step = model.step});
    df::Session session(model.graph);
    session.run(df::initialize_variables(model.graph));
    session.run({{model.ids, df::Tensor<std::int32_t>(df::Shape{2}, {0, 2})}}, accumulated.add());
    session.run(accumulated.update());
    const auto values = [&] {
      std::vector<double> all;
      for (const df::AnyVariable& variable : df::global_variables(model.graph)) {
        const df::AnyTensor value = session.run(variable.read_edge());
        df::visit_dtype<df::TypeList<float, df::Half, std::int64_t>>(value.dtype(), [&]<class T>() {
          for (const T element : value.span<T>()) all.push_back(static_cast<double>(element));
        });
      }
      return all;
    };
    const std::vector<double> before = values();
    CHECK(session.run(model.step).scalar() == 1);
    CHECK(session.run(*model.w)(0) < 1.0f);
    for (int i = 0; i < 2; ++i) session.run(accumulated.update());
    CHECK(values() == before);
  }
}

TEST_CASE("variables of accumulated gradients are named as those of gradients of one batch") {
  const auto names = [](bool accumulates) {
    Model model;
    std::set<std::string> all;
    const df::train::Adam adam(0.01);
    if (accumulates) {
      const df::train::AccumulatedGradients accumulated(adam, model.loss);
    } else {
      static_cast<void>(adam.minimize(model.loss));
    }
    for (const df::AnyVariable& variable : df::global_variables(model.graph)) {
      if (variable.name().find("accumulated") == std::string::npos) all.insert(variable.name());
    }
    return all;
  };
  CHECK(names(true) == names(false));
}
