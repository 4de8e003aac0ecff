#pragma once

#include <dflow/data/iterator.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace dflow::train {

/// State of this process that checkpoints hold beside the state of the graph, for example the position of an
/// iterator.
struct SavedState {
  std::string name;  ///< in checkpoints
  /// Returns the state's bytes when a checkpoint is saved, in the thread that saves it.
  std::function<std::string()> state;
  /// Reads the bytes of a checkpoint before any of its state is set, and returns a function that sets this state
  /// without failing. Errors: any, for bytes that are not a valid state.
  std::function<std::function<void()>(std::string_view state)> restore;
};

SavedState saved_iterator(std::string name, data::AnyIterator& iterator);

/// The position of an iterator, for `SaverOptions::states`. No thread may read from the iterator while another thread
/// saves. The iterator stays at its address as long as the saver saves and restores. Errors, in the saver:
/// FailedPrecondition if the iterator is gone or was moved from.
template <class E>
SavedState saved_iterator(std::string name, data::Iterator<E>& iterator) {
  return saved_iterator(std::move(name), iterator.any());
}

}  // namespace dflow::train
