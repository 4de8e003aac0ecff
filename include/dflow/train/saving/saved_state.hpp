#pragma once

#include <dflow/data/iterator.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace dflow::train {

/// Something of this process that checkpoints hold beside what is in the graph: how far an iterator has come, for
/// instance.
struct SavedState {
  std::string name;  ///< in checkpoints
  /// Its bytes, when a checkpoint is saved, in the thread that saves it.
  std::function<std::string()> state;
  /// Takes the bytes of a checkpoint before anything of that is set, and returns what sets them: that does not fail.
  /// Errors: those of bytes that cannot be taken.
  std::function<std::function<void()>(std::string_view state)> restore;
};

SavedState saved_iterator(std::string name, data::AnyIterator& iterator);

/// The position of an iterator, for `SaverOptions::states`. The iterator stays where it is as long as the saver lives,
/// and is not read by one thread while another one saves.
template <class E>
SavedState saved_iterator(std::string name, data::Iterator<E>& iterator) {
  return saved_iterator(std::move(name), iterator.any());
}

}  // namespace dflow::train
