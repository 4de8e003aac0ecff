#pragma once

#include <dflow/session/feed.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace dflow {

namespace detail {

/// The feeds with those of sparse tensors as three. They are the caller's, or in `flat` if there are such.
inline std::span<const Feed> flattened(std::span<const Feed> feeds, std::vector<Feed>& flat) {
  const auto is_sparse = [](const Feed& feed) { return !feed.more.empty(); };
  if (std::none_of(feeds.begin(), feeds.end(), is_sparse)) return feeds;
  for (const Feed& feed : feeds) {
    flat.emplace_back(feed.output, feed.tensor);
    flat.insert(flat.end(), feed.more.begin(), feed.more.end());
  }
  return flat;
}

}  // namespace detail

/// The edges that a step is fed: a list of edges, or the edges of a list of feeds.
///
/// Thread safety: a view.
class FedEdges {
 public:
  FedEdges(std::span<const AnyOutput> edges) noexcept : edges_(edges.data()), size_(edges.size()) {}
  explicit FedEdges(std::span<const Feed> feeds) noexcept : feeds_(feeds.data()), size_(feeds.size()) {}

  std::size_t size() const noexcept { return size_; }
  const AnyOutput& operator[](std::size_t i) const noexcept { return feeds_ == nullptr ? edges_[i] : feeds_[i].output; }

 private:
  const AnyOutput* edges_ = nullptr;
  const Feed* feeds_ = nullptr;
  std::size_t size_;
};

/// The tensors that a run is fed: its own, which it takes, or the tensors of its caller's feeds, which stay.
///
/// Thread safety: a view.
class FedTensors {
 public:
  FedTensors(std::span<AnyTensor> own) noexcept : own_(own.data()), size_(own.size()) {}
  explicit FedTensors(std::span<const Feed> feeds) noexcept : feeds_(feeds.data()), size_(feeds.size()) {}

  std::size_t size() const noexcept { return size_; }
  const AnyTensor& operator[](std::size_t i) const noexcept { return feeds_ == nullptr ? own_[i] : feeds_[i].tensor; }
  /// The run's own tensors, which may be moved from; none if they are the caller's.
  std::span<AnyTensor> own() const noexcept { return {own_, own_ == nullptr ? 0 : size_}; }

 private:
  AnyTensor* own_ = nullptr;
  const Feed* feeds_ = nullptr;
  std::size_t size_;
};

}  // namespace dflow
