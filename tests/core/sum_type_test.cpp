#include <dflow/core/sum_type.hpp>

#include "catch.hpp"

#include <type_traits>

using namespace dflow;

TEST_CASE("running sums of 16-bit floats are float, and those of all other types have the type") {
  for_each_type<AllTypes>([]<class T>() {
    constexpr bool is_narrow = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
    CHECK(std::is_same_v<detail::SumType<T>, std::conditional_t<is_narrow, float, T>>);
    CHECK(detail::sum_type(dtype_of<T>) == (is_narrow ? DType::float32 : dtype_of<T>));
  });
  CHECK(detail::sum_type(DType::variant) == DType::variant);
  CHECK(detail::sum_type(DType::resource) == DType::resource);
}
