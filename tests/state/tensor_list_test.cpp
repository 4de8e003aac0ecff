#include <dflow/state/tensor_list.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/memory/allocator.hpp>
#include <dflow/core/tensor.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

constexpr int deep = 200'000;

/// A list of a number and a list of a number and a list, and so on.
TensorList nested_list(int depth, float number) {
  TensorList list;
  for (int i = 0; i < depth; ++i) {
    TensorList outer;
    outer.set(0, Tensor<float>(number));
    if (i > 0) outer.set(1, make_list(std::move(list)));
    list = std::move(outer);
  }
  return list;
}

void add_floats(AnyTensor& sum, const AnyTensor& more) {
  detail::add_list_elements(sum, more, default_cpu_allocator());
}

}  // namespace

TEST_CASE("lists in lists are destroyed and added at any depth") {
  TensorList sum = nested_list(deep, 1);
  const TensorList more = nested_list(deep, 2), copy = sum;
  sum.add(more, add_floats);
  const TensorList* of_sum = &sum;
  const TensorList* of_copy = &copy;
  for (int i = 0; i < deep; ++i) {
    if (of_sum->find(0)->as<float>().scalar() != 3 || of_copy->find(0)->as<float>().scalar() != 1) FAIL("at " << i);
    if (i + 1 == deep) break;
    of_sum = &list_of(*of_sum->find(1));
    of_copy = &list_of(*of_copy->find(1));
  }
  CHECK(of_sum->find(1) == nullptr);
}

TEST_CASE("a list that is added to longer lists in it takes the elements that it lacks") {
  TensorList sum, more, inner;
  sum.set(2, make_list({}));
  inner.set(5, Tensor<float>(7.0f));
  more.set(0, Tensor<float>(1.0f));
  more.set(2, make_list(inner));
  sum.add(more, add_floats);
  sum.add(more, add_floats);
  CHECK(sum.size() == 3);
  CHECK(sum.find(0)->as<float>().scalar() == 2);
  CHECK(list_of(*sum.find(2)).size() == 6);
  CHECK(list_of(*sum.find(2)).find(5)->as<float>().scalar() == 14);
  CHECK(list_of(*more.find(2)).find(5)->as<float>().scalar() == 7);
  TensorList other;
  other.set(2, Tensor<float>(1.0f));
  CHECK(code_of([&] { sum.add(other, add_floats); }) == Code::invalid_argument);
}

TEMPLATE_TEST_CASE("the elements of a sum of 16-bit floats are rounded once", "", Half, BFloat16) {
  // Added one after the other, they stop at 2048 and at 256.
  const std::vector<AnyTensor> ones(4096, Tensor<TestType>::full({300}, TestType(1.0f)).any());
  const AnyTensor sum = detail::sum_of_list_elements(ones, default_cpu_allocator());
  for (const TestType each : Tensor<TestType>(sum)) CHECK(static_cast<float>(each) == 4096);
}

TEST_CASE("a sum of elements is of any numbers, and keeps the sign of zeros") {
  const std::vector<AnyTensor> whole{Tensor<std::int8_t>(std::int8_t{100}), Tensor<std::int8_t>(std::int8_t{100}),
                                     Tensor<std::int8_t>(std::int8_t{3})};
  CHECK(Tensor<std::int8_t>(detail::sum_of_list_elements(whole, default_cpu_allocator())).scalar() == -53);
  const std::vector<AnyTensor> zeros(3, Tensor<double>(-0.0));
  CHECK(std::signbit(Tensor<double>(detail::sum_of_list_elements(zeros, default_cpu_allocator())).scalar()));
  CHECK(code_of([] {
          const std::vector<AnyTensor> texts(2, Tensor<std::string>("a"));
          return detail::sum_of_list_elements(texts, default_cpu_allocator());
        }) == Code::invalid_argument);
}
