#include <dflow/base/lifetime.hpp>

#include "catch.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

using namespace dflow;

namespace {

struct Referred {
  int value = 1;
  Lifetime lifetime = {};

  Reference<Referred> reference() { return {*this, lifetime}; }
};

int value_of(const Reference<Referred>& reference) {
  int value = 0;
  reference.with([&](const Referred& of) { value = of.value; });
  return value;
}

}  // namespace

TEST_CASE("a reference knows whether its object is gone", "[lifetime]") {
  std::optional<Referred> object(std::in_place);
  const Reference<Referred> one = object->reference(), two = object->reference();
  const Reference<Referred> none;
  CHECK(none.is_empty());
  CHECK(none.get() == nullptr);
  CHECK(value_of(none) == 0);
  CHECK(one.get() == &*object);
  CHECK(value_of(two) == 1);
  object.reset();
  CHECK_FALSE(one.is_empty());
  CHECK(one.get() == nullptr);
  CHECK(value_of(two) == 0);
  object.emplace();
  CHECK(two.get() == nullptr);
}

TEST_CASE("a copy and a moved object begin lifetimes of their own", "[lifetime]") {
  auto first = std::make_unique<Referred>();
  const Reference<Referred> of_first = first->reference();
  auto copy = std::make_unique<Referred>(*first);
  auto moved = std::make_unique<Referred>(std::move(*first));
  const Reference<Referred> of_copy = copy->reference();
  *copy = Referred{.value = 7};
  CHECK(value_of(of_copy) == 7);
  first.reset();
  CHECK(of_first.get() == nullptr);
  CHECK(of_copy.get() == copy.get());
  CHECK(moved->reference().get() == moved.get());
}

TEST_CASE("an object ends when the call that uses it has returned", "[lifetime]") {
  auto object = std::make_unique<Referred>();
  const Reference<Referred> reference = object->reference();
  std::promise<void> begun;
  std::atomic<bool> has_ended{false}, saw_it_end{false};
  std::thread user([&] {
    reference.with([&](Referred& of) {
      begun.set_value();
      for (int i = 0; i < 100; ++i) {
        std::this_thread::yield();
        of.value = i;
      }
      saw_it_end = has_ended.load();
    });
  });
  begun.get_future().wait();
  object.reset();
  has_ended = true;
  user.join();
  CHECK_FALSE(saw_it_end);
  CHECK(reference.get() == nullptr);
}
