#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace dflow::net {

/// The posts of one side that the other side may not have read yet. The other side reads all in order, so that its
/// answer to anything shows that it has read all earlier posts.
///
/// Thread safety: one thread at a time.
class UnreadPosts {
 public:
  /// A post about `mark`, with a higher request number than the posts before. Consecutive ones about the same count
  /// as one.
  void add(std::uint64_t request, std::uint64_t mark) {
    if (!posts_.empty() && posts_.back().mark == mark) {
      posts_.back().request = request;
    } else {
      posts_.push_back({request, mark});
    }
  }
  /// The other side has answered that request, or ping.
  void acknowledge(std::uint64_t request) {
    while (!posts_.empty() && posts_.front().request < request) posts_.pop_front();
  }
  std::size_t size() const noexcept { return posts_.size(); }
  /// The marks of all posts, in their order.
  std::vector<std::uint64_t> marks() const {
    std::vector<std::uint64_t> marks;
    marks.reserve(posts_.size());
    for (const Post& post : posts_) marks.push_back(post.mark);
    return marks;
  }

 private:
  struct Post {
    std::uint64_t request;  ///< the last one about it
    std::uint64_t mark;
  };
  std::deque<Post> posts_;
};

}  // namespace dflow::net
