#include <dflow/data/steps/stack.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;
using df::data::stack_padded;
using df::data::stack_rows;

TEST_CASE("tensors of one shape become the rows of one more") {
  const df::Tensor<float> a({{1, 2}}), b({{3, 4}});
  CHECK(stack_rows(std::vector<df::AnyTensor>{a, b}).to_string() == "float[2,1,2] [[[1, 2]], [[3, 4]]]");
  const df::Tensor<std::string> word(std::string("long enough to lie on the heap"));
  const df::AnyTensor words = stack_rows(std::vector<df::AnyTensor>{word, word});
  CHECK(words.span<std::string>()[1] == word.scalar());
  CHECK(stack_rows(std::vector<df::AnyTensor>{df::Tensor<float>({0, 3})}).shape() == df::Shape{1, 0, 3});
}

TEST_CASE("rows of one buffer in their order are not copied, and in another order they are") {
  const df::Tensor<double> table({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto row = [&](int i) { return df::AnyTensor(table.slice(i, i + 1).reshaped({2})); };
  CHECK(stack_rows(std::vector{row(1), row(2)}).shares_buffer_with(table));
  CHECK(stack_rows(std::vector{row(1), row(2)}).to_string() == "double[2,2] [[3, 4], [5, 6]]");
  CHECK(!stack_rows(std::vector{row(2), row(1)}).shares_buffer_with(table));
  CHECK(!stack_rows(std::vector{row(0), row(2)}).shares_buffer_with(table));
  CHECK(!stack_rows(std::vector{row(1), row(1)}).shares_buffer_with(table));
  CHECK(stack_rows(std::vector{row(2), row(1)}).to_string() == "double[2,2] [[5, 6], [3, 4]]");
}

TEST_CASE("rows that do not fit together are InvalidArgument") {
  const df::Tensor<float> vector(df::Shape{2}), longer(df::Shape{3});
  const df::Tensor<double> wide(df::Shape{2});
  CHECK(code_of([] { return stack_rows({}); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return stack_rows(std::vector<df::AnyTensor>{vector, longer}); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return stack_rows(std::vector<df::AnyTensor>{vector, wide}); }) == df::Code::invalid_argument);
  CHECK(code_of([&] {
          return stack_padded(std::vector<df::AnyTensor>{vector, wide}, 0);
        }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return stack_rows(std::vector<df::AnyTensor>(1)); }) == df::Code::invalid_argument);
}

TEST_CASE("what is filled up holds the padding, if its type can") {
  const auto padded = [](auto one, double padding) {
    using T = decltype(one);
    const df::Tensor<T> a = df::Tensor<T>::full({1}, one), b = df::Tensor<T>::full({2}, one);
    return stack_padded(std::vector<df::AnyTensor>{a, b}, padding).to_string();
  };
  CHECK(padded(std::int8_t{1}, -128) == "int8[2,2] [[1, -128], [1, 1]]");
  CHECK(padded(std::uint64_t{1}, 7) == "uint64[2,2] [[1, 7], [1, 1]]");
  CHECK(padded(df::Half(1.0f), 0.5) == "half[2,2] [[1, 0.5], [1, 1]]");
  CHECK(padded(true, 0) == "bool[2,2] [[true, false], [true, true]]");
  CHECK(code_of([&] { return padded(std::int8_t{1}, 128); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return padded(std::uint8_t{1}, -1); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return padded(std::int64_t{1}, 9223372036854775808.0); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return padded(std::uint64_t{1}, 18446744073709551616.0); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return padded(std::int32_t{1}, 0.5); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return padded(std::int32_t{1}, std::nan("")); }) == df::Code::invalid_argument);
  // A corner of three dimensions.
  const df::Tensor<int> a({1, 2, 1}, {1, 2}), b({2, 1, 2}, {3, 4, 5, 6});
  CHECK(stack_padded(std::vector<df::AnyTensor>{a, b}, 0).to_string() ==
        "int32[2,2,2,2] [[[[1, 0], [2, 0]], [[0, 0], [0, 0]]], [[[3, 4], [0, 0]], [[5, 6], [0, 0]]]]");
}
