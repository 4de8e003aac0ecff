#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/data/stream.hpp>

#include <functional>
#include <memory>

namespace dflow::data {

struct MapOptions {
  /// Calls at once, in threads of the iterator's own; 1: in the thread that reads, when an element is asked for.
  int threads = 1;
  /// Where the calls run instead; null: on threads of each iterator's own.
  std::shared_ptr<ThreadPool> pool = nullptr;
  /// Elements that are under way or done before they are asked for; 0: twice as many as threads.
  int ahead = 0;
};

/// `apply` of each element, several at once; elements come in their order. The input is read by the thread that reads
/// the stream, which never waits inside of the pool.
///
/// Errors: InvalidArgument for numbers that are too small or too large.
SharedRecipe parallel_map_recipe(SharedRecipe input, std::function<Item(Item)> apply, MapOptions options);

}  // namespace dflow::data
