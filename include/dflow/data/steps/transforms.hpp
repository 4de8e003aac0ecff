#pragma once

#include <dflow/data/stream.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace dflow::data {

// Steps that hold no element back. The thread that reads the stream calls the functions.

SharedRecipe map_recipe(SharedRecipe input, std::function<Item(Item)> apply);
SharedRecipe filter_recipe(SharedRecipe input, std::function<bool(const Item&)> keeps);
SharedRecipe take_recipe(SharedRecipe input, std::uint64_t n);
SharedRecipe skip_recipe(SharedRecipe input, std::uint64_t n);
/// Makes `n` passes, each with the next epoch; without a number endless. It ends if a pass gives no element.
SharedRecipe repeat_recipe(SharedRecipe input, std::optional<std::uint64_t> n);
/// `join` makes one element of an element of each input; the stream ends when the first input ends.
/// Errors: InvalidArgument without an input.
SharedRecipe zip_recipe(std::vector<SharedRecipe> inputs, std::function<Item(std::vector<Item>&)> join);
SharedRecipe concatenate_recipe(SharedRecipe first, SharedRecipe second);

}  // namespace dflow::data
