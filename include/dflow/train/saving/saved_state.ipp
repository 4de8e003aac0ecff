#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/train/saving/saved_state.hpp>

#include <memory>
#include <utility>

namespace dflow::train {

SavedState saved_iterator(std::string name, data::AnyIterator& iterator) {
  const auto living = [name, reference = iterator.reference()]() -> data::AnyIterator& {
    data::AnyIterator* const found = reference.get();
    if (found == nullptr) {
      throw_error(Status::failed_precondition(str_cat("the iterator of the saved state '", name, "' is gone")));
    }
    return *found;
  };
  return {std::move(name), [living] { return living().state(); },
          [living](std::string_view state) -> std::function<void()> {
            const auto restored = std::make_shared<data::AnyIterator>(living().restored(state));
            return [living, restored] { living() = std::move(*restored); };
          }};
}

}  // namespace dflow::train
