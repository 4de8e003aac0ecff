#include <dflow/core/dtype.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <set>

using namespace dflow;

TEST_CASE("element types have TensorFlow's numbers and names", "[dtype]") {
  CHECK(static_cast<int>(dtype_of<float>) == 1);
  CHECK(static_cast<int>(dtype_of<double>) == 2);
  CHECK(static_cast<int>(dtype_of<std::int32_t>) == 3);
  CHECK(static_cast<int>(dtype_of<std::uint8_t>) == 4);
  CHECK(static_cast<int>(dtype_of<std::int16_t>) == 5);
  CHECK(static_cast<int>(dtype_of<std::int8_t>) == 6);
  CHECK(static_cast<int>(dtype_of<std::string>) == 7);
  CHECK(static_cast<int>(dtype_of<std::complex<float>>) == 8);
  CHECK(static_cast<int>(dtype_of<std::int64_t>) == 9);
  CHECK(static_cast<int>(dtype_of<bool>) == 10);
  CHECK(static_cast<int>(dtype_of<BFloat16>) == 14);
  CHECK(static_cast<int>(dtype_of<std::uint16_t>) == 17);
  CHECK(static_cast<int>(dtype_of<std::complex<double>>) == 18);
  CHECK(static_cast<int>(dtype_of<Half>) == 19);
  CHECK(static_cast<int>(DType::resource) == 20);
  CHECK(static_cast<int>(DType::variant) == 21);
  CHECK(static_cast<int>(dtype_of<std::uint32_t>) == 22);
  CHECK(static_cast<int>(dtype_of<std::uint64_t>) == 23);
  CHECK(dtype_name(DType::float32) == "float");
  CHECK(dtype_name(DType::float64) == "double");
  CHECK(dtype_name(DType::float16) == "half");
  CHECK(dtype_name(DType::boolean) == "bool");
  CHECK(dtype_name(DType::complex128) == "complex128");
  CHECK(dtype_name(DType::invalid) == "invalid");
  CHECK(dtype_name(static_cast<DType>(24)) == "invalid");
  CHECK(dtype_name(static_cast<DType>(200)) == "invalid");
}

TEST_CASE("every name and number reads back as its type", "[dtype]") {
  std::set<std::string_view> names;
  for (int number = 1; number < 256; ++number) {
    const auto dtype = static_cast<DType>(number);
    const std::optional<DType> from_number = dtype_from_number(static_cast<std::uint64_t>(number));
    if (dtype_name(dtype) == "invalid") {
      CHECK_FALSE(from_number);
      continue;
    }
    CHECK(from_number == dtype);
    CHECK(parse_dtype(dtype_name(dtype)) == dtype);
    CHECK(names.insert(dtype_name(dtype)).second);
    CHECK(size_of(dtype) > 0);
  }
  CHECK(names.size() == 23);
  CHECK_FALSE(parse_dtype(""));
  CHECK_FALSE(parse_dtype("invalid"));
  CHECK_FALSE(parse_dtype("Float"));
  CHECK_FALSE(dtype_from_number(0));
  CHECK_FALSE(dtype_from_number(std::uint64_t{1} << 40));
}

TEST_CASE("sizes, kinds and masks", "[dtype]") {
  for_each_type<AllTypes>([]<class T>() { CHECK(size_of(dtype_of<T>) == sizeof(T)); });
  CHECK(size_of(DType::invalid) == 0);
  CHECK(is_floating(DType::bfloat16));
  CHECK_FALSE(is_floating(DType::int32));
  CHECK(is_integer(DType::uint8));
  CHECK(is_unsigned_integer(DType::uint8));
  CHECK_FALSE(is_signed_integer(DType::uint8));
  CHECK(is_complex(DType::complex64));
  CHECK(is_number(DType::complex64));
  CHECK_FALSE(is_number(DType::boolean));
  CHECK(is_plain(DType::boolean));
  CHECK_FALSE(is_plain(DType::string));
  CHECK_FALSE(is_element(DType::resource));
  CHECK_FALSE(is_element(DType::qint8));
  static_assert(dtypes_of<IndexTypes> == std::array{DType::int32, DType::int64});
  static_assert(dtype_mask<IndexTypes> == ((1u << 3) | (1u << 9)));
  CHECK(mask_to_string(dtype_mask<FloatTypes>) == "{float, double, bfloat16, half}");
  static_assert(Element<float> && Element<std::string> && !Element<long double> && !Element<const float>);
}

TEST_CASE("visit_dtype calls with the type that the number stands for", "[dtype]") {
  for_each_type<AllTypes>([]<class T>() {
    const bool is_same = visit_dtype<AllTypes>(dtype_of<T>, []<class U>() { return std::is_same_v<T, U>; });
    CHECK(is_same);
  });
  int calls = 0;
  visit_dtype<FloatTypes>(DType::float64, [&]<class T>() { calls += sizeof(T); });
  CHECK(calls == 8);
}

TEST_CASE("visit_dtype of a type outside the list names the type and the list", "[dtype]") {
  const Status status = status_of([] { return visit_dtype<IndexTypes>(DType::string, []<class T>() { return 1; }); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "element type string is not one of {int32, int64}");
}
