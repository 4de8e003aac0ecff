#pragma once

#include <dflow/data/stream.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace dflow::data {

// The steps that hold no element back. Functions are called from whatever thread reads the stream.

SharedRecipe map_recipe(SharedRecipe input, std::function<Item(Item)> apply);
SharedRecipe filter_recipe(SharedRecipe input, std::function<bool(const Item&)> keeps);
SharedRecipe take_recipe(SharedRecipe input, std::uint64_t n);
SharedRecipe skip_recipe(SharedRecipe input, std::uint64_t n);
/// `n` passes, each with the next epoch; without a number endless. It ends where a pass gives nothing.
SharedRecipe repeat_recipe(SharedRecipe input, std::optional<std::uint64_t> n);
/// `join` makes one element of an element of each; it ends with the first that does.
/// Errors: InvalidArgument without an input.
SharedRecipe zip_recipe(std::vector<SharedRecipe> inputs, std::function<Item(std::vector<Item>&)> join);
SharedRecipe concatenate_recipe(SharedRecipe first, SharedRecipe second);

}  // namespace dflow::data
