#include <dflow/io/checkpoint/parts/tensor_slices.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

using namespace std::string_view_literals;
using dflow::Code;
using dflow::Shape;
using dflow::Tensor;
using dflow::TensorSlice;

// The keys are from tables that TensorFlow 2.21 wrote.
TEST_CASE("the key of a slice is TensorFlow's") {
  CHECK(TensorSlice::whole(0).key("Variable") == "\0Variable\0\1\0"sv);
  CHECK(TensorSlice::whole(1).key("b") == "\0b\0\1\1\1\x80\x7f"sv);
  CHECK(TensorSlice{{0, 0}, {2, TensorSlice::all}}.key("w") == "\0w\0\1\1\2\x80\x82\x80\x7f"sv);
  CHECK(TensorSlice{{130, 0}, {70, TensorSlice::all}}.key("w") == "\0w\0\1\1\2\xc0\x82\xc0\x46\x80\x7f"sv);
}

// The bytes are from TensorFlow 2.21, for slices that begin at the number: a number of n bytes begins with n ones.
TEST_CASE("numbers in keys take the fewest bytes, and sort as numbers do") {
  const auto key = [](std::int64_t begin) { return TensorSlice{{begin}, {1}}.key("").substr(5); };
  CHECK(key(63) == "\xbf\x81"sv);
  CHECK(key(64) == "\xc0\x40\x81"sv);
  CHECK(key(8191) == "\xdf\xff\x81"sv);
  CHECK(key(8192) == "\xe0\x20\0\x81"sv);
  CHECK(key(std::int64_t{0x7fffffffffffffff}) == "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff\x81"sv);
  std::int64_t last = 0;
  for (std::int64_t n = 1; n < std::int64_t{1} << 61; n = n * 3 / 2 + 1) {
    CHECK(key(last) < key(n));
    last = n;
  }
  CHECK(TensorSlice::whole(0).key("a\0\xff"sv) == "\0a\0\xff\xff\0\0\1\0"sv);
}

TEST_CASE("a slice has a shape in the whole, or none") {
  const Shape whole{4, 3};
  CHECK(TensorSlice::whole(2).is_all_of(whole));
  CHECK(TensorSlice{{1, 0}, {2, TensorSlice::all}}.shape_in(whole) == Shape{2, 3});
  CHECK(TensorSlice{{4, 0}, {0, 3}}.shape_in(whole) == Shape{0, 3});
  for (const TensorSlice& slice : {TensorSlice{{3, 0}, {2, 3}}, TensorSlice{{5, 0}, {0, 3}}, TensorSlice::whole(1),
                                   TensorSlice{{1, 0}, {std::int64_t{0x7fffffffffffffff}, 3}}}) {
    CHECK(code_of([&] { return slice.shape_in(whole); }) == Code::data_loss);
  }
}

TEST_CASE("slices and shapes are read from messages, and what is none is DataLoss") {
  const auto slice = [](std::string_view bytes) { return TensorSlice::parse(dflow::ProtoReader(bytes)); };
  CHECK(slice("\x0a\2\x10\2\x0a\0"sv).length == std::vector<std::int64_t>{2, TensorSlice::all});
  CHECK(slice("\x0a\4\x08\3\x10\2"sv).begin == std::vector<std::int64_t>{3});
  CHECK(code_of([&] { return slice("\x0a\2\x08\1"sv); }) == Code::data_loss);  // a beginning without a length
  CHECK(code_of([&] { return slice("\x0a\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\x7f"sv); }) == Code::data_loss);
  const auto shape = [](std::string_view bytes) {
    return dflow::detail::parse_tensor_shape(dflow::ProtoReader(bytes));
  };
  CHECK(shape(""sv) == Shape{});
  CHECK(shape("\x12\2\x08\2\x12\2\x08\3"sv) == Shape{2, 3});
  CHECK(shape("\x12\0"sv) == Shape{0});
  CHECK(code_of([&] { return shape("\x18\1"sv); }) == Code::data_loss);
  CHECK(code_of([&] { return shape("\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"sv); }) == Code::data_loss);
  CHECK(code_of([&] { return shape("\x12\0\x12\0\x12\0\x12\0\x12\0\x12\0\x12\0\x12\0\x12\0"sv); }) ==
        Code::unimplemented);
}

TEST_CASE("a tensor is put together of parts in any arrangement, if they cover it once") {
  const auto part = [](const std::vector<std::int64_t>& begin, const dflow::AnyTensor& tensor) {
    return dflow::detail::TensorPart{begin, tensor};
  };
  const std::vector<std::int64_t> at00{0, 0}, at01{0, 1}, at10{1, 0}, at11{1, 1};
  const auto one = [](float value) { return Tensor<float>({1, 1}, {value}); };
  const auto assembled = [](const std::vector<dflow::detail::TensorPart>& parts) {
    return dflow::detail::assembled(dflow::DType::float32, Shape{2, 2}, parts);
  };
  CHECK(bitwise_equal(assembled({part(at11, one(4)), part(at00, Tensor<float>({1, 2}, {1, 2})), part(at10, one(3))}),
                      Tensor<float>({2, 2}, {1, 2, 3, 4})));
  CHECK(bitwise_equal(assembled({part(at01, Tensor<float>({2, 1}, {2, 4})), part(at00, Tensor<float>({2, 1}, {1, 3}))}),
                      Tensor<float>({2, 2}, {1, 2, 3, 4})));
  CHECK(code_of([&] {
          return assembled({part(at11, one(4)), part(at00, Tensor<float>({1, 2}, {1, 2}))});
        }) == Code::data_loss);
  CHECK(code_of([&] {
          return assembled({part(at10, Tensor<float>({1, 2}, {1, 2})), part(at01, Tensor<float>({2, 1}, {2, 4}))});
        }) == Code::data_loss);
  CHECK(code_of([&] {
          return assembled({part(at00, Tensor<float>({2, 2}, {1, 2, 3, 4})), part(at01, one(4))});
        }) == Code::data_loss);
  CHECK(dflow::detail::assembled(dflow::DType::string, Shape{0}, {}).num_elements() == 0);
}
