#include <dflow/op/attrs_reflection.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dflow {
namespace {

struct NoFields {};
struct ThreeFields {
  float alpha = 0.5f;
  std::string label = "none";
  std::vector<std::int64_t> axes;
};
struct TenFields {
  bool first = true;
  std::int32_t b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9;
  std::string last = "ten";
};

struct Counted {
  explicit Counted(int& count) : live(&count) { ++count; }
  Counted(Counted&& other) noexcept : live(other.live) { ++*live; }
  ~Counted() { --*live; }
  int* live;
};

struct ThrowsWhenMoved {
  explicit ThrowsWhenMoved(int& count) : counted(count) {}
  ThrowsWhenMoved(ThrowsWhenMoved&& other) : counted(std::move(other.counted)) { throw std::runtime_error("moved"); }
  Counted counted;
};

TEST_CASE("the fields of a struct are read in order with their names and kinds") {
  STATIC_REQUIRE(reflect::num_fields<NoFields> == 0);
  STATIC_REQUIRE(reflect::num_fields<ThreeFields> == 3);
  STATIC_REQUIRE(reflect::num_fields<TenFields> == 10);
  STATIC_REQUIRE(reflect::fields_of<NoFields>.empty());
  STATIC_REQUIRE(reflect::field_name<ThreeFields, 2> == "axes");

  const auto& fields = reflect::fields_of<ThreeFields>;
  CHECK(fields[0].name == "alpha");
  CHECK(fields[0].kind == AttrKind::real);
  CHECK(fields[1].name == "label");
  CHECK(fields[1].kind == AttrKind::string);
  CHECK(fields[2].name == "axes");
  CHECK(fields[2].kind == AttrKind::integer_list);
  CHECK(reflect::fields_of<TenFields>[0].name == "first");
  CHECK(reflect::fields_of<TenFields>[9].name == "last");
}

TEST_CASE("a field is read and written in its place") {
  TenFields ten;
  const auto& fields = reflect::fields_of<TenFields>;
  for (std::size_t i = 1; i < 9; ++i) {
    CHECK(std::get<std::int64_t>(fields[i].get(&ten)) == static_cast<std::int64_t>(i) + 1);
    fields[i].set(&ten, static_cast<std::int64_t>(10 * i));
  }
  fields[0].set(&ten, false);
  fields[9].set(&ten, std::string("changed"));
  CHECK_FALSE(ten.first);
  CHECK(ten.b == 10);
  CHECK(ten.f == 50);
  CHECK(ten.i == 80);
  CHECK(ten.last == "changed");
}

TEST_CASE("a value of another kind or out of range is rejected with the field's name") {
  TenFields ten;
  const AttrField& field = reflect::fields_of<TenFields>[1];
  const auto set = [&](const AttrValue& value) {
    return [&field, &ten, value] {
      field.set(&ten, value);
      return true;
    };
  };
  CHECK(contains(error_of(set(std::string("2"))), "attribute 'b' must be int, got string"));
  CHECK(contains(error_of(set(std::int64_t{1} << 40)), "attribute 'b' cannot hold 1099511627776"));
  CHECK(ten.b == 2);
}

TEST_CASE("default attributes have the values of the struct") {
  const std::shared_ptr<void> attrs = reflect::make_default<ThreeFields>();
  CHECK(static_cast<const ThreeFields*>(attrs.get())->alpha == 0.5f);
  CHECK(static_cast<const ThreeFields*>(attrs.get())->label == "none");
}

TEST_CASE("shared attributes live as long as their last owner") {
  int live = 0;
  {
    std::shared_ptr<const void> first = reflect::share(Counted(live));
    CHECK(live == 1);
    const std::shared_ptr<const void> second = first;
    first.reset();
    CHECK(live == 1);
  }
  CHECK(live == 0);
}

TEST_CASE("attributes that cannot be moved leave nothing behind") {
  int live = 0;
  CHECK_THROWS_AS(reflect::share(ThrowsWhenMoved(live)), std::runtime_error);
  CHECK(live == 0);
}

}  // namespace
}  // namespace dflow
