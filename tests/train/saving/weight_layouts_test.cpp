#include <dflow/train/saving/weight_layouts.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/permuted.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/recurrent/cells.hpp>
#include <dflow/train/saving/weights.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace df = dflow;
namespace layout = df::train::layout;
using df::Tensor;

namespace {

Tensor<float> counted_weights(const df::Shape& shape) {
  Tensor<float> tensor(shape);
  float next = 0;
  for (float& element : tensor) element = next++;
  return tensor;
}

df::AnyTensor laid_out(const df::train::WeightLayout& layout, const std::vector<df::AnyTensor>& tensors) {
  return layout(tensors);
}

df::AnyTensor transpose_of(const df::AnyTensor& matrix) { return df::permuted(matrix, std::array{1, 0}); }

// Weights of a cell of two units with two inputs, as PyTorch has them, and an input and a state.
const Tensor<float> w_ih({8, 2}, {0, 0.875f, -0.75f, 0.875f, -0.375f, -0.125f, 0.625f, -0.125f, 0.125f, -1, 0.5f,
                                  0.125f, -0.375f, 0.625f, -0.375f, -0.125f});
const Tensor<float> w_hh({8, 2}, {-0.75f, -0.25f, -0.625f, -0.5f, 0.5f, -0.5f, 0, 1, 0.875f, 0.5f, 0.125f, -0.5f,
                                  -0.625f, 1, 0, -0.75f});
const Tensor<float> b_ih({8}, {0.25f, 0.5f, 0.25f, 0.875f, -0.875f, 0, -0.125f, -0.875f});
const Tensor<float> b_hh({8}, {0.25f, 0.75f, 0.125f, -0.5f, 0.625f, 0, 0, 0.5f});
const Tensor<float> cell_input({1, 2}, {-0.75f, 0.625f}), cell_h({1, 2}, {0.375f, 0.625f}),
    cell_c({1, 2}, {-0.625f, 0.625f});

/// What the cell, its variables set, makes of the input and the state: c and h of an LSTM.
template <class Cell>
std::vector<float> cell_step(const Cell& cell, const std::vector<std::pair<std::string, df::AnyTensor>>& variables) {
  df::Graph graph;
  std::vector<Tensor<float>> results;
  const auto x = df::constant(graph, cell_input), h = df::constant(graph, cell_h);
  if constexpr (std::is_same_v<Cell, df::LstmCell>) {
    const auto next = std::get<1>(cell(x, std::tuple(df::constant(graph, cell_c), h)));
    df::Session session(graph);
    for (const auto& [name, value] : variables) df::train::assign(session, {{cell.variable(name), value}});
    results = {session.run(std::get<0>(next)), session.run(std::get<1>(next))};
  } else {
    const auto next = std::get<1>(cell(x, h));
    df::Session session(graph);
    for (const auto& [name, value] : variables) df::train::assign(session, {{cell.variable(name), value}});
    results = {session.run(next)};
  }
  std::vector<float> values;
  for (const Tensor<float>& each : results) values.insert(values.end(), each.begin(), each.end());
  return values;
}

void check_cell(const std::vector<float>& values, const std::vector<float>& wanted) {
  REQUIRE(values.size() == wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Catch::Approx(wanted[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("a matrix is transposed, and a convolution's kernel gets dflow's order of dimensions") {
  CHECK(bitwise_equal(laid_out(layout::transposed(), {counted_weights({2, 3})}),
                      Tensor<float>({3, 2}, {0, 3, 1, 4, 2, 5})));
  const df::AnyTensor kernel = laid_out(layout::pytorch_conv2d(), {counted_weights({5, 4, 2, 3})});
  CHECK(kernel.shape() == df::Shape{2, 3, 4, 5});
  // The weight of filter 1, input 2, row 1, column 0.
  CHECK(Tensor<float>(kernel)(1, 0, 2, 1) == 1 * 24 + 2 * 6 + 1 * 3 + 0);
  CHECK(contains(error_of([] { return laid_out(layout::transposed(), {counted_weights({2, 3, 4})}); }), "[2,3,4]"));
  CHECK(contains(error_of([] {
                   return laid_out(layout::transposed(), {counted_weights({2}), counted_weights({3})});
                 }),
                 "one tensor, not [2], [3]"));
}

TEST_CASE("a dense layer behind flattened images gets its columns in dflow's order") {
  // [units 2, channels 2 * rows 1 * columns 3]: element u * 6 + c * 3 + x becomes (x * 2 + c, u).
  const Tensor<float> kernel(laid_out(layout::pytorch_flattened(2, 1, 3), {counted_weights({2, 6})}));
  CHECK(bitwise_equal(kernel, Tensor<float>({6, 2}, {0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11})));
  CHECK(contains(error_of([] {
                   return laid_out(layout::pytorch_flattened(2, 2, 3), {counted_weights({2, 6})});
                 }),
                 "the layout takes [units, 12], not [2,6]"));
}

// The values of these tests are by NumPy, from the formulas in the documentation of PyTorch's and Keras's layers.
TEST_CASE("an LSTM with the weights of PyTorch or Keras computes what theirs do, for any forget bias") {
  const std::vector<float> wanted{-0.587358882f, -0.056168614f, -0.379413118f, -0.0193637254f};
  df::AnyTensor sum = b_ih.deep_copy();
  for (std::size_t i = 0; i < 8; ++i) sum.span<float>()[i] += b_hh.span()[i];
  for (const double forget_bias : {1.0, 0.0, 2.5}) {
    const auto pytorch = layout::pytorch_lstm(forget_bias), keras = layout::keras_lstm(forget_bias);
    check_cell(cell_step(df::LstmCell(2, {.forget_bias = forget_bias}),
                         {{"kernel", laid_out(pytorch, {w_ih, w_hh})}, {"bias", laid_out(pytorch, {b_ih, b_hh})}}),
               wanted);
    check_cell(cell_step(df::LstmCell(2, {.forget_bias = forget_bias}),
                         {{"kernel", laid_out(keras, {transpose_of(w_ih), transpose_of(w_hh)})},
                          {"bias", laid_out(keras, {sum})}}),
               wanted);
  }
}

TEST_CASE("a GRU with the weights of Keras's, without reset_after, computes what Keras's does") {
  const Tensor<float> kernel({2, 6},
                             {-0.625f, -0.875f, 0.75f, 0.75f, 0.75f, 0, -0.5f, -1, 0.25f, 0.5f, 0.625f, -0.375f});
  const Tensor<float> recurrent(
      {2, 6}, {-0.625f, 0.25f, 0.625f, 0.875f, -0.75f, 0, 0.75f, -0.125f, 0.125f, -1, 0.375f, 0.875f});
  const Tensor<float> bias({6}, {0.625f, 0.75f, 0.375f, -0.5f, 0.5f, -0.625f});
  const auto gates = layout::keras_gru_gates(), candidate = layout::keras_gru_candidate();
  check_cell(cell_step(df::GruCell(2), {{"gates/kernel", laid_out(gates, {kernel, recurrent})},
                                        {"gates/bias", laid_out(gates, {bias})},
                                        {"candidate/kernel", laid_out(candidate, {kernel, recurrent})},
                                        {"candidate/bias", laid_out(candidate, {bias})}}),
             {0.335076033f, 0.23966955f});
}

TEST_CASE("a simple recurrent cell with the weights of PyTorch or Keras computes what theirs do") {
  const Tensor<float> v_ih({2, 2}, {0.625f, -0.875f, 0.625f, -0.625f}),
      v_hh({2, 2}, {-0.25f, -0.375f, 0.375f, -0.625f});
  const Tensor<float> vb_ih({2}, {-0.25f, -1}), vb_hh({2}, {-0.5f, -0.125f}), sum({2}, {-0.75f, -1.125f});
  const std::vector<float> wanted{-0.970085827f, -0.977336493f};
  check_cell(cell_step(df::BasicRnnCell(2), {{"kernel", laid_out(layout::pytorch_rnn(), {v_ih, v_hh})},
                                             {"bias", laid_out(layout::pytorch_rnn(), {vb_ih, vb_hh})}}),
             wanted);
  check_cell(cell_step(df::BasicRnnCell(2),
                       {{"kernel", laid_out(layout::keras_rnn(), {transpose_of(v_ih), transpose_of(v_hh)})},
                        {"bias", laid_out(layout::keras_rnn(), {sum})}}),
             wanted);
}

TEST_CASE("tensors that make up no recurrent kernel are InvalidArgument with their shapes") {
  const auto message = [](const std::vector<df::AnyTensor>& tensors) {
    return error_of([&] { return laid_out(layout::keras_lstm(), tensors); });
  };
  CHECK(contains(message({counted_weights({3, 8}), counted_weights({2, 4})}), "not [3,8], [2,4]"));
  CHECK(contains(message({counted_weights({3, 6})}), "in 4 blocks"));
  CHECK(contains(message({counted_weights({3, 8}), counted_weights({8})}), "not [3,8], [8]"));
  CHECK(contains(message({counted_weights({2, 3, 8})}), "not [2,3,8]"));
  CHECK(contains(message({Tensor<std::int32_t>(df::Shape{8})}), "not [8]"));
  CHECK(contains(message({}), "the layout takes"));
  const Tensor<float> no_columns(df::Shape{std::int64_t{1} << 62, 0});
  CHECK(contains(message({no_columns, no_columns}), "4611686018427387904 + 4611686018427387904"));
}

TEST_CASE("the bias of a recurrent cell of 16 bits is added up in more bits, and its tensors stay as they are") {
  const Tensor<df::BFloat16> first({4},
                                   {df::BFloat16(256.0f), df::BFloat16(1.0f), df::BFloat16(2.0f), df::BFloat16(1)});
  const Tensor<df::BFloat16> second({4}, {df::BFloat16(1.0f), df::BFloat16(1.0f), df::BFloat16(2.0f), df::BFloat16(1)});
  const Tensor<df::BFloat16> sum(laid_out(layout::pytorch_lstm(1), {first, second}));
  CHECK(float(sum(0)) == 256.0f);  // 257, rounded once
  CHECK(float(sum(1)) == 4.0f);
  CHECK(float(sum(2)) == 1.0f);
  CHECK(float(first(1)) == 1.0f);
}
