#pragma once

#include <dflow/train/saving/saved_state.hpp>

#include <memory>
#include <utility>

namespace dflow::train {

SavedState saved_iterator(std::string name, data::AnyIterator& iterator) {
  return {std::move(name), [&iterator] { return iterator.state(); },
          [&iterator](std::string_view state) -> std::function<void()> {
            const auto restored = std::make_shared<data::AnyIterator>(iterator.restored(state));
            return [&iterator, restored] { iterator = std::move(*restored); };
          }};
}

}  // namespace dflow::train
