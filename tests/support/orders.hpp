// Objects that refer to each other are destroyed in every order, and those that are left are used after each.
#pragma once

#include "catch.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

/// An object that a test destroys.
struct Mortal {
  std::string name;
  std::function<void()> destroy;
  std::function<void()> use;  ///< called while the object lives
};

/// Resets the pointer and uses the object by `use(*pointer)`. `pointer` outlives the result.
template <class P, class Use>
Mortal mortal(std::string name, P& pointer, Use use) {
  return {std::move(name), [&pointer] { pointer.reset(); }, [&pointer, use] { use(*pointer); }};
}

/// For every order: makes a World, destroys its `mortals()` in this order, and uses the rest after each. Calls
/// `check(world)` after each use.
template <class World, class Check>
void destroy_in_every_order(const Check& check) {
  const std::size_t count = World().mortals().size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    const auto world = std::make_unique<World>();
    const std::vector<Mortal> mortals = world->mortals();
    std::string gone;
    for (auto next = order.begin(); next != order.end(); ++next) {
      mortals[*next].destroy();
      gone += " " + mortals[*next].name;
      INFO("destroyed:" << gone);
      for (auto left = next + 1; left != order.end(); ++left) mortals[*left].use();
      check(*world);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}
