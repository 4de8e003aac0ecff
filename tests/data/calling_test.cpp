#include <dflow/data/calling.hpp>

#include "catch.hpp"

#include <dflow/data/from.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <utility>

namespace df = dflow;
using Floats = df::Tensor<float>;

namespace {

const float* place(const Floats& x) { return x.data(); }
const float* place_without_errors(const Floats& x) noexcept { return x.data(); }
const float* place_to_write(Floats& x) { return x.data(); }

struct Overloaded {
  const float* operator()(const Floats& x) const { return x.data(); }
  const float* operator()(int) const { return nullptr; }
};

/// Whether a function that gives the place of its tensor got the memory of the source.
template <class F>
bool sees_source(F f) {
  const Floats x({1, 2}, {1, 2});
  const float* const seen = *df::data::from_tensors(x).map(f).iterate().next();
  CHECK(x(0, 0) == 1);
  return seen == x.data();
}

/// The same for the members of a pair: the first, and the second.
template <class F>
std::pair<bool, bool> see_source(F f) {
  const Floats x({1, 2}, {1, 2});
  const df::Tensor<int> y({1}, {3});
  const auto [first, second] = *df::data::from_tensors(x, y).map(f).iterate().next();
  return {first == x.data(), second == y.data()};
}

/// Whether a filter that notes the place of its tensor got the memory of the source.
template <class F>
bool filter_sees_source(F f) {
  const Floats x({1, 2}, {1, 2});
  const float* seen = nullptr;
  const auto data = df::data::from_tensors(x).filter(f(seen));
  REQUIRE(data.iterate().next().has_value());
  return seen == x.data();
}

}  // namespace

TEST_CASE("a function that takes a tensor by const reference gets the tensor of the source, without a copy") {
  CHECK(sees_source([](const Floats& x) { return x.data(); }));
  CHECK(sees_source([](const df::AnyTensor& x) { return static_cast<const float*>(x.raw_data()); }));
  CHECK(sees_source([](const auto& x) { return x.data(); }));
  CHECK(sees_source([]<class T>(const T& x) noexcept { return x.data(); }));
  CHECK(sees_source(place));
  CHECK(sees_source(place_without_errors));
  CHECK(sees_source(std::function(place)));
}

TEST_CASE("a function that may write into its tensor gets one of its own") {
  CHECK_FALSE(sees_source([](Floats& x) -> const float* { return x.data(); }));
  CHECK_FALSE(sees_source([](Floats x) -> const float* { return x.data(); }));
  CHECK_FALSE(sees_source([](df::AnyTensor x) { return static_cast<const float*>(x.raw_data()); }));
  CHECK_FALSE(sees_source([](auto& x) -> const float* { return x.data(); }));
  CHECK_FALSE(sees_source([](auto x) -> const float* { return x.data(); }));
  CHECK_FALSE(sees_source([](auto&& x) -> const float* { return x.data(); }));
  CHECK_FALSE(sees_source([]<class T>(df::Tensor<T>& x) -> const float* { return x.data(); }));
  CHECK_FALSE(sees_source([](std::span<float> x) -> const float* { return x.data(); }));
  CHECK_FALSE(sees_source(place_to_write));
  CHECK_FALSE(sees_source(Overloaded()));  // which of the two is not known
}

TEST_CASE("each member of a tuple is copied or shared as its parameter says") {
  using Both = std::pair<bool, bool>;
  using Places = std::pair<const float*, const int*>;
  CHECK(see_source([](const Floats& x, const df::Tensor<int>& y) { return Places(x.data(), y.data()); }) ==
        Both(true, true));
  CHECK(see_source([](const auto& x, const auto& y) { return Places(x.data(), y.data()); }) == Both(true, true));
  CHECK(see_source([](Floats& x, const df::Tensor<int>& y) { return Places(x.data(), y.data()); }) ==
        Both(false, true));
  CHECK(see_source([](auto& x, const auto& y) { return Places(x.data(), y.data()); }) == Both(false, false));
  CHECK(see_source([](auto& x, auto y) { return Places(x.data(), y.data()); }) == Both(false, false));
  CHECK(see_source([](const std::tuple<Floats, df::Tensor<int>>& both) {
          return Places(std::get<0>(both).data(), std::get<1>(both).data());
        }) == Both(true, true));
  CHECK(see_source([](std::tuple<Floats, df::Tensor<int>>& both) {
          return Places(std::get<0>(both).data(), std::get<1>(both).data());
        }) == Both(false, false));
}

TEST_CASE("a function that hands its arguments on is compiled for those that it is called with") {
  const auto write = [](Floats& x, df::Tensor<int>& y) {
    x(0) = 5;
    y() = 6;
    return x(0) + static_cast<float>(y());
  };
  const Floats x({1, 1}, {1});
  const df::Tensor<int> y({1}, {2});
  const auto rows = df::data::from_tensors(x, y);
  const auto forwarded = [write](auto&& a, auto&& b) {
    return write(std::forward<decltype(a)>(a), std::forward<decltype(b)>(b));
  };
  CHECK(rows.map(forwarded).iterate().next() == 11);
  CHECK(rows.map([write](auto& a, auto& b) { return write(a, b); }).iterate().next() == 11);
  const auto write_row = [](Floats& row) { return row(0) = 7; };
  const auto row = df::data::from_tensors(x);
  CHECK(row.map([write_row](auto&& a) { return write_row(std::forward<decltype(a)>(a)); }).iterate().next() == 7);
  CHECK(row.map([](auto a) { return a(0) = 8; }).iterate().next() == 8);
  CHECK(x(0, 0) == 1);
  CHECK(y(0) == 2);
}

TEST_CASE("a question about an element is asked of the element itself, unless it is taken by value") {
  CHECK(filter_sees_source(
      [](const float*& seen) { return [&seen](const Floats& x) { return seen = x.data(), true; }; }));
  CHECK(
      filter_sees_source([](const float*& seen) { return [&seen](const auto& x) { return seen = x.data(), true; }; }));
  CHECK(filter_sees_source([](const float*& seen) { return [&seen](auto& x) { return seen = x.data(), true; }; }));
  CHECK_FALSE(
      filter_sees_source([](const float*& seen) { return [&seen](Floats x) { return seen = x.data(), true; }; }));
  CHECK_FALSE(filter_sees_source([](const float*& seen) { return [&seen](auto x) { return seen = x.data(), true; }; }));
}
