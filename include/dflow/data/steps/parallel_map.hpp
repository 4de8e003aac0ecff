#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/data/stream.hpp>

#include <functional>
#include <memory>

namespace dflow::data {

struct MapOptions {
  /// The number of calls at once, in threads of the iterator's own. With 1 the reading thread makes the call, when an
  /// element is asked for.
  int threads = 1;
  /// The pool that runs the calls instead; null: each iterator has threads of its own.
  std::shared_ptr<ThreadPool> pool = nullptr;
  /// The number of elements that are under way or done before they are asked for; 0: twice as many as threads.
  int ahead = 0;
};

/// Applies `apply` to the elements, several at once; elements keep their order. The thread that reads the stream also
/// reads the input. It never waits inside of the pool.
///
/// Errors: InvalidArgument for numbers that are too small or too large.
SharedRecipe parallel_map_recipe(SharedRecipe input, std::function<Item(Item)> apply, MapOptions options);

}  // namespace dflow::data
