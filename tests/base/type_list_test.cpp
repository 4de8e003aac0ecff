#include <dflow/base/type_list.hpp>

#include "catch.hpp"

#include <string>
#include <type_traits>

using namespace dflow;

namespace {
using Floats = TypeList<float, double>;
using Ints = TypeList<int, long, short>;
}  // namespace

TEST_CASE("size, contains, index and element of a list", "[type_list]") {
  static_assert(TypeList<>::size == 0);
  static_assert(Ints::size == 3);
  static_assert(contains_v<double, Floats>);
  static_assert(!contains_v<int, Floats>);
  static_assert(!contains_v<int, TypeList<>>);
  static_assert(index_of_v<float, Floats> == 0);
  static_assert(index_of_v<short, Ints> == 2);
  static_assert(std::is_same_v<element_t<1, Ints>, long>);
  static_assert(std::is_same_v<element_t<2, TypeList<int, int, char>>, char>);
}

TEST_CASE("lists are concatenated and checked for duplicates", "[type_list]") {
  static_assert(std::is_same_v<concat_t<Floats, Ints>, TypeList<float, double, int, long, short>>);
  static_assert(std::is_same_v<concat_t<>, TypeList<>>);
  static_assert(std::is_same_v<concat_t<Floats, TypeList<>, TypeList<char>>, TypeList<float, double, char>>);
  static_assert(is_unique_v<concat_t<Floats, Ints>>);
  static_assert(!is_unique_v<concat_t<Floats, Floats>>);
  static_assert(is_unique_v<TypeList<>>);
}

TEST_CASE("for_each_type visits in order", "[type_list]") {
  std::string sizes;
  for_each_type<TypeList<char, double, float>>([&]<class T>() { sizes += std::to_string(sizeof(T)); });
  CHECK(sizes == "184");
}
