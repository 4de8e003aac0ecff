#pragma once

#include <dflow/data/stream.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow::data {

/// Elements that are found by their number in [0, size): any position is restored at once. `at` is called from any
/// thread.
SharedRecipe indexed_source(std::string name, std::uint64_t size, std::function<Item(std::uint64_t index)> at);

/// Elements that can only be made one after the other. Each pass calls `begin` for a function that gives the elements,
/// until it gives an empty Item. A position is restored by passing over the elements before it.
SharedRecipe generated_source(std::string name, std::function<std::function<Item()>()> begin);

/// The integers from 0 on, without an end, as std::int64_t.
SharedRecipe counting_source();

/// One element, which is the failure. For passes that give failures.
SharedRecipe failed_source(Item failure);

/// The rows of tensors; they share the tensors' elements. `join` of `type` makes an element of as many tensors as
/// there are.
///
/// Errors: InvalidArgument for a scalar, and for tensors of different numbers of rows.
SharedRecipe row_source(std::vector<AnyTensor> tensors, const ElementType& type);

}  // namespace dflow::data
