#include <dflow/base/fixed_string.hpp>

#include "catch.hpp"

#include <type_traits>

using dflow::FixedString;

namespace {
template <FixedString name>
struct Named {
  static constexpr auto text = name.view();
};
}  // namespace

TEST_CASE("a literal is a template argument", "[fixed_string]") {
  static_assert(Named<"MatMul">::text == "MatMul");
  static_assert(Named<"">::text.empty());
  static_assert(std::is_same_v<Named<"a">, Named<"a">>);
  static_assert(!std::is_same_v<Named<"a">, Named<"b">>);
  static_assert(FixedString("ab") == FixedString("ab"));
  static_assert(!(FixedString("ab") == FixedString("abc")));
  static_assert(FixedString("ab").size() == 2);
}
