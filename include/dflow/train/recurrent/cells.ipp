#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/activation.hpp>
#include <dflow/ops/nn/bias.hpp>
#include <dflow/train/recurrent/cells.hpp>
#include <dflow/train/variables/layer_builder.hpp>

#include <array>
#include <string_view>
#include <utility>

namespace dflow {

namespace detail {

/// [x, h] kernel + bias, multiplied in the call's compute type; the result has the inputs' element type.
inline AnyOutput joint_linear(const AnyOutput& x, const AnyOutput& h, const LayerBuilder& layer,
                              std::string_view kernel, std::string_view bias) {
  const AnyOutput joint = layer.input(any_concat(1, std::array{x, h}));
  return layer.result(build<BiasAdd>({AnyOutput(build<MatMul>({joint, layer.value(kernel)})), layer.value(bias)}));
}

/// A tensor's extent along a dimension, int32 [1].
inline AnyOutput extent_of(const AnyOutput& x, int axis) { return any_slice(shape_of(x), {axis}, {1}, {}); }

AnyOutput zero_state(const AnyOutput& x, int axis, std::int64_t units, std::string_view layer, const At& at) {
  if (!x.is_valid() || !x.shape().has_rank() || axis < 0 || axis >= x.shape().rank()) {
    reject_layer(layer, str_cat("there is no dimension ", axis, " for the batch"), at);
  }
  require_positive(units, "units", layer, at);
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  const AnyOutput zero = zeros_like(scalar_like(x, 0));
  const std::int64_t batch = x.shape().dim(axis);
  if (batch != dynamic) return build<Fill>({IndexList{batch, units}.edge(graph, {}), zero});
  const AnyOutput columns = IndexList(units).edge(graph, DType::int32, {});
  const AnyOutput zeros = build<Fill>({any_concat(0, std::array{extent_of(x, axis), columns}), zero});
  return build<EnsureShape>({zeros}, {.shape = {dynamic, units}});
}

ScopeGuard enter_cell(const AnyOutput& x, std::string_view name, const At& at) {
  if (!x.is_valid()) reject_layer(name, "the input is an empty Output", at);
  return enter_name_scope(*x.graph(), name, at.where);
}

}  // namespace detail

BasicRnnCell::BasicRnnCell(std::int64_t units, RnnCellOptions options)
    : Layer(options.name), units_(units), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput BasicRnnCell::call(const AnyOutput& x, const AnyOutput& h, const At& at) const {
  const std::int64_t inputs = detail::known_channels(x, 2, 2, name(), at);
  detail::require_positive(units_, "units", name(), at);
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) {
    const DType dtype = layer.variable_dtype();
    layer.make("kernel", dtype, {inputs + units_, units_}, options_.kernel_initializer, options_.kernel_regularizer);
    layer.make("bias", dtype, {units_}, options_.bias_initializer);
  }
  const AnyOutput sum = detail::joint_linear(x, h, layer, "kernel", "bias");
  const AnyOutput next = detail::activate(sum, options_.activation);
  layer.commit();
  return next;
}

LstmCell::LstmCell(std::int64_t units, LstmCellOptions options)
    : Layer(options.name), units_(units), options_(std::move(options)) {
  options_.name = {};
}

void LstmCell::make_variables(detail::LayerBuilder& layer, DType dtype, std::int64_t inputs) const {
  layer.make("kernel", dtype, {inputs + num_outputs(), 4 * units_}, options_.kernel_initializer,
             options_.kernel_regularizer);
  layer.make("bias", dtype, {4 * units_}, options_.bias_initializer);
  if (options_.use_peepholes) {
    for (const char* name : {"w_f_diag", "w_i_diag", "w_o_diag"}) {
      layer.make(name, dtype, {units_}, options_.bias_initializer);
    }
  }
  if (options_.projection > 0) {
    layer.make("projection/kernel", dtype, {units_, options_.projection}, options_.kernel_initializer,
               options_.kernel_regularizer);
  }
}

std::pair<AnyOutput, AnyOutput> LstmCell::call(const AnyOutput& x, const AnyOutput& c, const AnyOutput& h,
                                               const At& at) const {
  const std::int64_t inputs = detail::known_channels(x, 2, 2, name(), at);
  detail::require_positive(units_, "units", name(), at);
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) make_variables(layer, layer.variable_dtype(), inputs);
  auto next = next_state(layer, detail::joint_linear(x, h, layer, "kernel", "bias"), c);
  layer.commit();
  return next;
}

detail::PreparedInputs LstmCell::prepare(const AnyOutput& x, const At& at) const {
  const std::int64_t inputs = detail::known_channels(x, 2, 2, name(), at);
  detail::require_positive(units_, "units", name(), at);
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) make_variables(layer, layer.variable_dtype(), inputs);
  const AnyOutput kernel = layer.value("kernel");
  // A larger kernel would have rows to be cut out, so it is rejected here.
  if (const std::int64_t rows = kernel.shape().dim(0); rows != inputs + num_outputs()) {
    detail::reject_layer(name(),
                         str_cat("the cell was made for ", rows - num_outputs(), " inputs, and is given ", inputs), at);
  }
  const auto rows_of = [&](std::int64_t begin, std::int64_t count) {
    return detail::any_slice(kernel, {begin, 0}, {count, 4 * units_}, {});
  };
  detail::PreparedInputs prepared;
  const AnyOutput product = build<MatMul>({layer.input(x), rows_of(0, inputs)});
  prepared.rows = layer.result(build<BiasAdd>({product, layer.value("bias")}));
  prepared.kernel = rows_of(inputs, num_outputs());
  layer.commit();
  return prepared;
}

std::pair<AnyOutput, AnyOutput> LstmCell::step(const AnyOutput& row, const AnyOutput& kernel, const AnyOutput& c,
                                               const AnyOutput& h, const At& at) const {
  GraphStore& graph = *row.graph();
  const Composite place(graph, at.where);
  const detail::LayerBuilder layer(*state_, graph, row.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  const AnyOutput product = build<MatMul>({detail::cast_to(h, kernel.dtype()), kernel});
  return next_state(layer, Expr(layer.result(product)) + row, c);
}

std::pair<AnyOutput, AnyOutput> LstmCell::next_state(const detail::LayerBuilder& layer, const AnyOutput& gates,
                                                     const AnyOutput& c) const {
  const auto sigmoid = [](const Expr& of) { return Expr(build<Sigmoid>({of})); };
  const auto tanh = [](const Expr& of) { return Expr(build<Tanh>({of})); };
  const auto seen = [&](const Expr& gate, const char* by, const Expr& cell) {
    return options_.use_peepholes ? gate + cell * Expr(layer.result(layer.variable(by).read_edge())) : gate;
  };
  const std::vector<AnyOutput> parts = detail::any_split(1, 4, gates);
  const Expr i = parts[0], j = parts[1], f = parts[2], o = parts[3], cell = c;
  const auto input_gate = [&] { return sigmoid(seen(i, "w_i_diag", cell)); };
  Expr next;
  if (options_.couple_gates) {
    const Expr gate = input_gate();
    next = cell * (1.0 - gate) + gate * tanh(j);
  } else {
    next = cell * sigmoid(seen(f + options_.forget_bias, "w_f_diag", cell)) + input_gate() * tanh(j);
  }
  if (options_.cell_clip) {
    const Expr bounded = build<Minimum>({next, scalar_like(next, *options_.cell_clip)});
    next = build<Maximum>({bounded, scalar_like(next, -*options_.cell_clip)});
  }
  AnyOutput output = sigmoid(seen(o, "w_o_diag", next)) * tanh(next);
  if (options_.projection > 0) {
    output = layer.result(build<MatMul>({layer.input(output), layer.value("projection/kernel")}));
  }
  return {next, output};
}

GruCell::GruCell(std::int64_t units, GruCellOptions options)
    : Layer(options.name), units_(units), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput GruCell::call(const AnyOutput& x, const AnyOutput& h, const At& at) const {
  const std::int64_t inputs = detail::known_channels(x, 2, 2, name(), at);
  detail::require_positive(units_, "units", name(), at);
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) {
    const std::int64_t joint = inputs + units_;
    const DType dtype = layer.variable_dtype();
    layer.make("gates/kernel", dtype, {joint, 2 * units_}, options_.kernel_initializer, options_.kernel_regularizer);
    layer.make("gates/bias", dtype, {2 * units_}, options_.gate_bias_initializer);
    layer.make("candidate/kernel", dtype, {joint, units_}, options_.kernel_initializer, options_.kernel_regularizer);
    layer.make("candidate/bias", dtype, {units_}, options_.bias_initializer);
    if (options_.reset_after) layer.make("candidate/recurrent_bias", dtype, {units_}, options_.bias_initializer);
  }
  const AnyOutput gates = build<Sigmoid>({detail::joint_linear(x, h, layer, "gates/kernel", "gates/bias")});
  const std::vector<AnyOutput> parts = detail::any_split(1, 2, gates);
  const Expr r = parts[0], u = parts[1], state = h;
  const auto reset_after = [&]() -> AnyOutput {
    const AnyOutput kernel = layer.value("candidate/kernel");
    if (const std::int64_t rows = kernel.shape().dim(0); rows != inputs + units_) {
      detail::reject_layer(name(), str_cat("the cell was made for ", rows - units_, " inputs, and is given ", inputs),
                           at);
    }
    const auto product = [&](const AnyOutput& of, std::int64_t begin, std::int64_t count, std::string_view bias) {
      const AnyOutput rows = detail::any_slice(kernel, {begin, 0}, {count, units_}, {});
      return layer.result(build<BiasAdd>({AnyOutput(build<MatMul>({layer.input(of), rows})), layer.value(bias)}));
    };
    return Expr(product(x, 0, inputs, "candidate/bias")) +
           r * Expr(product(h, inputs, units_, "candidate/recurrent_bias"));
  };
  const Expr candidate = build<Tanh>(
      {options_.reset_after ? reset_after()
                            : detail::joint_linear(x, r * state, layer, "candidate/kernel", "candidate/bias")});
  const AnyOutput next = u * state + (1.0 - u) * candidate;
  layer.commit();
  return next;
}

}  // namespace dflow
