#include <dflow/io/summary/tensor_proto.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/tensor.hpp>
#include <dflow/io/proto/proto_writer.hpp>

#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>

using namespace dflow;
using namespace std::string_view_literals;

namespace {

AnyTensor read_tensor(std::string_view bytes) { return read_tensor_proto(ProtoReader(bytes)); }

std::string write_tensor(const AnyTensor& tensor) {
  std::string bytes;
  ProtoWriter out(bytes);
  write_tensor_proto(out, tensor);
  return bytes;
}

Code code_of_tensor(std::string_view bytes) {
  return code_of([&] { return read_tensor(bytes); });
}

}  // namespace

TEST_CASE("tensors are read_tensor as TensorFlow writes them", "[tensor_proto]") {
  // tf.make_tensor_proto of TensorFlow 2.21; bfloat16 by hand in half_val.
  CHECK(bitwise_equal(read_tensor("\x08\x01\x12\x00\x2a\x04\x00\x00\xc0\x3f"sv), Tensor<float>(1.5f)));
  CHECK(bitwise_equal(read_tensor("\x08\x13\x12\x04\x12\x02\x08\x02\x22\x04\x00\x3e\x00\xc0"sv),
                      Tensor<Half>({2}, {Half(1.5f), Half(-2.0f)})));
  CHECK(bitwise_equal(read_tensor("\x08\x0e\x12\x04\x12\x02\x08\x02\x6a\x05\xc0\x7f\x80\x80\x03"sv),
                      Tensor<BFloat16>({2}, {BFloat16(1.5f), BFloat16(-2.0f)})));
  CHECK(bitwise_equal(
      read_tensor("\x08\x09\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02\x22\x10\x01\x00\x00\x00\x00\x00\x00\x00"
                  "\xfe\xff\xff\xff\xff\xff\xff\xff"sv),
      Tensor<std::int64_t>({1, 2}, {1, -2})));
  CHECK(bitwise_equal(read_tensor("\x08\x04\x12\x00\x3a\x02\xc8\x01"sv), Tensor<std::uint8_t>(std::uint8_t{200})));
  CHECK(bitwise_equal(read_tensor("\x08\x0a\x12\x04\x12\x02\x08\x03\x5a\x03\x01\x00\x01"sv),
                      Tensor<bool>({3}, {true, false, true})));
  CHECK(bitwise_equal(read_tensor("\x08\x07\x12\x04\x12\x02\x08\x02\x42\x01\x61\x42\x02\x62\x63"sv),
                      Tensor<std::string>({2}, {"a", "bc"})));
  CHECK(bitwise_equal(read_tensor("\x08\x08\x12\x00\x4a\x08\x00\x00\x80\x3f\x00\x00\x00\x40"sv),
                      Tensor<std::complex<float>>(std::complex<float>(1, 2))));
  CHECK(bitwise_equal(read_tensor("\x08\x17\x12\x00\x8a\x01\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"sv),
                      Tensor<std::uint64_t>(std::uint64_t{1} << 63)));
  CHECK(bitwise_equal(read_tensor("\x08\x01\x12\x06\x12\x00\x12\x02\x08\x02"sv), Tensor<float>({0, 2}, {})));
  CHECK(bitwise_equal(read_tensor("\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02\x2a\x04\x00\x00\x00\x40"sv),
                      Tensor<float>({2, 2}, {2, 2, 2, 2})));
}

TEST_CASE("tensors of every element type are read_tensor as they were written", "[tensor_proto]") {
  for_each_type<PlainTypes>([]<class T>() {
    Tensor<T> tensor = Tensor<T>::zeros({2, 3});
    tensor(1, 2) = T(1);
    CHECK(bitwise_equal(read_tensor(write_tensor(tensor)), tensor));
    CHECK(bitwise_equal(read_tensor(write_tensor(Tensor<T>::zeros({0, 3}))), Tensor<T>::zeros({0, 3})));
  });
  const Tensor<std::string> texts({2, 1}, {"", std::string(300, 'x')});
  CHECK(bitwise_equal(read_tensor(write_tensor(texts)), texts));
  CHECK(code_of([] { return write_tensor(AnyTensor()); }) == Code::invalid_argument);
}

TEST_CASE("a tensor that does not fit is DataLoss, or Unimplemented, before it takes memory", "[tensor_proto]") {
  CHECK(code_of_tensor(""sv) == Code::data_loss);
  CHECK(code_of_tensor("\x08\x63\x12\x00"sv) == Code::unimplemented);      // type 99
  CHECK(code_of_tensor("\x08\x14\x12\x00"sv) == Code::unimplemented);      // handles
  CHECK(code_of_tensor("\x08\x01\x12\x02\x18\x01"sv) == Code::data_loss);  // unknown rank
  CHECK(code_of_tensor("\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv) == Code::data_loss);
  CHECK(code_of_tensor("\x08\x01\x12\x00\x2a\x08\x00\x00\xc0\x3f\x00\x00\xc0\x3f"sv) ==
        Code::data_loss);                                                              // two for one
  CHECK(code_of_tensor("\x08\x01\x12\x00\x22\x03\x00\x00\x00"sv) == Code::data_loss);  // three bytes
  // 2^40 elements of one value, 2^62 by 2^62 of none.
  const auto of_shape = [](std::initializer_list<std::int64_t> extents) {
    std::string bytes;
    ProtoWriter out(bytes);
    out.uint64(1, 1);
    out.message(2, [&](ProtoWriter& shape) {
      for (const std::int64_t extent : extents) shape.message(2, [&](ProtoWriter& dim) { dim.int64(1, extent); });
    });
    out.float32(5, 1);
    return bytes;
  };
  CHECK(code_of_tensor(of_shape({std::int64_t{1} << 40})) == Code::data_loss);
  CHECK(code_of_tensor(of_shape({std::int64_t{1} << 62, std::int64_t{1} << 62})) == Code::data_loss);
  CHECK(code_of_tensor(of_shape({1, 1, 1, 1, 1, 1, 1, 1})) == Code::ok);
  CHECK(code_of_tensor(of_shape({1, 1, 1, 1, 1, 1, 1, 1, 1})) == Code::unimplemented);
  CHECK(code_of_tensor(of_shape({max_filled_elements})) == Code::ok);
  CHECK(code_of_tensor(of_shape({max_filled_elements + 1})) == Code::data_loss);
}

TEST_CASE("a damaged tensor is a tensor, DataLoss or Unimplemented, never more", "[tensor_proto]") {
  std::mt19937 random(23);
  for (const AnyTensor& tensor :
       {Tensor<float>({2, 2}, {1, 2, 3, 4}).any(), Tensor<bool>({3}, {true, false, true}).any(),
        Tensor<std::string>({2}, {"a", "bc"}).any()}) {
    const std::string whole = write_tensor(tensor);
    for (int round = 0; round < 5000; ++round) {
      std::string damaged = whole.substr(0, 1 + random() % whole.size());
      for (int flips = 0; flips < 2; ++flips) damaged[random() % damaged.size()] = static_cast<char>(random());
      const Code code = code_of_tensor(damaged);
      if (code != Code::ok && code != Code::data_loss && code != Code::unimplemented) FAIL("round " << round);
    }
  }
}
