#include <dflow/base/text/nearest_name.hpp>

#include "catch.hpp"

#include <initializer_list>
#include <string>
#include <string_view>

namespace {

std::string nearest_of(std::string_view wanted, std::initializer_list<std::string_view> names) {
  dflow::NearestName near(wanted);
  for (const std::string_view name : names) near.consider(name);
  return std::string(near.nearest());
}

}  // namespace

TEST_CASE("the nearest name has at most two edits, and the first of several counts") {
  CHECK(nearest_of("logit", {"labels", "logits", "logic"}) == "logits");
  CHECK(nearest_of("serving_defualt", {"serving", "serving_default"}) == "serving_default");
  CHECK(nearest_of("abcd", {"abxy", "abcx"}) == "abcx");
  CHECK(nearest_of("abcd", {"axyz", "abcdefg"}).empty());
  CHECK(nearest_of("abc", {}).empty());
}

TEST_CASE("a short name is not answered with a name that shares no character, and a long one not at all") {
  CHECK(nearest_of("x", {"y"}).empty());
  CHECK(nearest_of("ab", {"cd", "b"}) == "b");
  CHECK(nearest_of("", {"a"}).empty());
  const std::string longest(100, 'a'), too_long(101, 'a');
  CHECK(nearest_of(longest, {longest + "b"}) == longest + "b");
  CHECK(nearest_of(too_long, {too_long + "b"}).empty());
}
