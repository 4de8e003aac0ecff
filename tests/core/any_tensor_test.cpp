#include <dflow/core/any_tensor.hpp>
#include <dflow/core/tensor.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace dflow;

TEST_CASE("a tensor has type, shape and aligned elements", "[any_tensor]") {
  CpuAllocator allocator;
  {
    AnyTensor tensor(DType::float32, {2, 3}, allocator);
    CHECK(tensor.is_initialized());
    CHECK(tensor.dtype() == DType::float32);
    CHECK(tensor.shape() == Shape{2, 3});
    CHECK(tensor.bytes() == 24);
    CHECK(tensor.is_aligned());
    CHECK(tensor.buffer_is_unique());
    std::ranges::fill(tensor.span<float>(), 1.5f);
    CHECK(std::as_const(tensor).span<float>()[5] == 1.5f);
    CHECK(allocator.stats().num_allocations == 1);
  }
  CHECK(allocator.stats().bytes_in_use == 0);
}

TEST_CASE("every element type makes tensors of rank 0, of many and of no elements", "[any_tensor]") {
  for_each_type<AllTypes>([]<class T>() {
    for (const Shape& shape : {Shape{}, Shape{3, 2}, Shape{0}, Shape{4, 0}}) {
      const AnyTensor tensor = AnyTensor::zeros(dtype_of<T>, shape);
      CHECK(tensor.span<T>().size() == static_cast<std::size_t>(shape.num_elements()));
      for (const T& value : tensor.span<T>()) CHECK(value == T());
      CHECK(bitwise_equal(tensor, tensor.deep_copy()));
      CHECK((tensor.raw_data() == nullptr) == (shape.num_elements() == 0));
    }
  });
}

TEST_CASE("an uninitialised tensor refuses access", "[any_tensor]") {
  AnyTensor tensor;
  CHECK_FALSE(tensor.is_initialized());
  CHECK(tensor.raw_data() == nullptr);
  CHECK(tensor.to_string() == "uninitialised");
  CHECK(status_of([&] { return tensor.span<float>().size(); }).message() ==
        "the tensor is uninitialised, float was asked for");
  AnyTensor source(DType::int32, {2});
  const AnyTensor moved = std::move(source);
  CHECK_FALSE(source.is_initialized());
  CHECK(status_of([&] { return source.span<std::int32_t>().size(); }).code() == Code::invalid_argument);
  CHECK(moved.buffer_is_unique());
  CHECK_FALSE(tensor.deep_copy().is_initialized());
  CHECK(Tensor<float>().span().empty());
}

TEST_CASE("access by another type names both", "[any_tensor]") {
  AnyTensor tensor(DType::float32, {2});
  const Status status = status_of([&] { return tensor.span<std::int64_t>().size(); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "the tensor's element type is float, int64 was asked for");
  CHECK(status_of([&] { return tensor.as<double>().num_elements(); }).code() == Code::invalid_argument);
  CHECK(tensor.as<float>().shares_buffer_with(tensor));
}

TEST_CASE("tensors that cannot be made are refused", "[any_tensor]") {
  CHECK(status_of([] { return AnyTensor(DType::invalid, {1}).bytes(); }).code() == Code::invalid_argument);
  CHECK(status_of([] { return AnyTensor(DType::resource, {1}).bytes(); }).code() == Code::invalid_argument);
  CHECK(status_of([] { return AnyTensor(DType::qint8, {1}).bytes(); }).code() == Code::invalid_argument);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  CHECK(status_of([&] { return AnyTensor(DType::complex128, {huge}).bytes(); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return AnyTensor(DType::string, {huge}).bytes(); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return AnyTensor(DType::int8, {huge / 2}).bytes(); }).code() == Code::resource_exhausted);
}

TEST_CASE("copies share elements, deep copies do not", "[any_tensor]") {
  AnyTensor a(DType::int32, {2});
  a.span<std::int32_t>()[0] = 1;
  AnyTensor b = a;
  CHECK(b.shares_buffer_with(a));
  CHECK_FALSE(a.buffer_is_unique());
  b.span<std::int32_t>()[0] = 2;
  CHECK(a.span<std::int32_t>()[0] == 2);
  AnyTensor c = a.deep_copy();
  CHECK_FALSE(c.shares_buffer_with(a));
  c.span<std::int32_t>()[0] = 3;
  CHECK(a.span<std::int32_t>()[0] == 2);
  b.reset();
  CHECK(a.buffer_is_unique());
}

TEST_CASE("slices and reshapes share the buffer", "[any_tensor]") {
  AnyTensor tensor(DType::int32, {4, 3});
  std::int32_t next = 0;
  for (std::int32_t& value : tensor.span<std::int32_t>()) value = next++;
  const AnyTensor rows = tensor.slice(1, 3);
  CHECK(rows.shape() == Shape{2, 3});
  CHECK(rows.span<std::int32_t>()[0] == 3);
  CHECK(rows.slice(1, 2).span<std::int32_t>()[2] == 8);
  CHECK(rows.slice(1, 1).num_elements() == 0);
  CHECK(rows.shares_buffer_with(tensor));
  CHECK_FALSE(rows.is_aligned());
  CHECK(tensor.slice(0, 4).shape() == tensor.shape());
  CHECK(tensor.reshaped({12}).span<std::int32_t>()[11] == 11);
  CHECK(rows.deep_copy().is_aligned());
  for (const auto& [begin, end] : {std::pair{-1, 2}, std::pair{3, 2}, std::pair{0, 5}}) {
    CHECK(status_of([&, b = begin, e = end] { return tensor.slice(b, e).bytes(); }).code() == Code::invalid_argument);
  }
  CHECK(status_of([] { return AnyTensor(DType::int8, {}).slice(0, 1).bytes(); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return tensor.reshaped({5}).bytes(); }).message() ==
        "a tensor of shape [4,3] has 12 elements and cannot be reshaped to [5]");
}

TEST_CASE("adopted memory is checked and released", "[any_tensor]") {
  float values[4] = {1, 2, 3, 4};
  bool is_released = false;
  {
    const AnyTensor tensor =
        AnyTensor::adopt(DType::float32, {2, 2}, values, sizeof values, [&] { is_released = true; });
    CHECK(tensor.span<float>()[3] == 4);
    CHECK(tensor.slice(1, 2).span<float>()[0] == 3);
  }
  CHECK(is_released);
  CHECK(status_of([&] { return AnyTensor::adopt(DType::float32, {5}, values, sizeof values, {}).bytes(); }).message() ==
        "16 bytes are too few for a tensor of float[5]");
  CHECK(status_of([&] { return AnyTensor::adopt(DType::float32, {1}, nullptr, 4, {}).bytes(); }).code() ==
        Code::invalid_argument);
  CHECK(status_of([&] { return AnyTensor::adopt(DType::invalid, {1}, values, 4, {}).bytes(); }).code() ==
        Code::invalid_argument);
}

TEST_CASE("tensors over parts of one buffer", "[any_tensor]") {
  const BufferRef buffer = BufferRef::allocate(64, default_cpu_allocator());
  AnyTensor a = AnyTensor::over(buffer, 0, DType::float32, {8});
  AnyTensor b = AnyTensor::over(buffer, 32, DType::int32, {2, 4});
  std::ranges::fill(a.span<float>(), 0.0f);
  std::ranges::fill(b.span<std::int32_t>(), 1);
  CHECK(a.span<float>()[7] == 0.0f);
  CHECK(a.shares_buffer_with(b));
  CHECK(status_of([&] { return AnyTensor::over(buffer, 33, DType::int32, {8}).bytes(); }).code() ==
        Code::invalid_argument);
  CHECK(status_of([&] { return AnyTensor::over(buffer, 65, DType::int8, {0}).bytes(); }).code() ==
        Code::invalid_argument);
  CHECK(status_of([&] { return AnyTensor::over(buffer, 0, DType::string, {1}).bytes(); }).code() ==
        Code::invalid_argument);
}

TEST_CASE("bitwise equality", "[any_tensor]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(bitwise_equal(Tensor<float>({2}, {nan, 1}), Tensor<float>({2}, {nan, 1})));
  CHECK_FALSE(bitwise_equal(Tensor<float>(0.0f), Tensor<float>(-0.0f)));
  CHECK_FALSE(bitwise_equal(Tensor<float>({2}, {1, 2}), Tensor<float>({1, 2}, {1, 2})));
  CHECK_FALSE(bitwise_equal(Tensor<float>(0.0f), Tensor<std::int32_t>(0)));
  CHECK(bitwise_equal(Tensor<std::string>("abc"), Tensor<std::string>("abc")));
  CHECK_FALSE(bitwise_equal(Tensor<std::string>("abc"), Tensor<std::string>("abd")));
  CHECK(bitwise_equal(AnyTensor(), AnyTensor()));
  CHECK_FALSE(bitwise_equal(AnyTensor(), Tensor<float>(0.0f)));
}

TEST_CASE("tensors print with brackets, cut at a limit", "[any_tensor]") {
  const Tensor<float> tensor({2, 3}, {1, 2, 3, 4, 5, 6.5f});
  CHECK(tensor.to_string() == "float[2,3] [[1, 2, 3], [4, 5, 6.5]]");
  CHECK(tensor.to_string(2) == "float[2,3] [[1, 2, ...], ...]");
  CHECK(Tensor<std::int8_t>(std::int8_t{-3}).to_string() == "int8[] -3");
  CHECK(Tensor<bool>(true).to_string() == "bool[] true");
  CHECK(Tensor<Half>(Half(0.5f)).to_string() == "half[] 0.5");
  CHECK(Tensor<std::complex<float>>(std::complex<float>(1, -2)).to_string() == "complex64[] (1,-2)");
  CHECK(Tensor<std::string>("a\"\n").to_string() == "string[] \"a\\\"\\x0a\"");
  CHECK(Tensor<std::string>(std::string(1000, 'x')).to_string().size() < 120);
  CHECK(Tensor<float>(Shape{1000000, 0}).to_string() == "float[1000000,0] []");
}
