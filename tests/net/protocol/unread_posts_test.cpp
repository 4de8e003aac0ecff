#include <dflow/net/protocol/unread_posts.hpp>

#include "catch.hpp"

#include <cstdint>
#include <vector>

using dflow::net::UnreadPosts;
using Marks = std::vector<std::uint64_t>;

TEST_CASE("posts are unread until something that was sent after them is answered", "[net]") {
  UnreadPosts posts;
  CHECK(posts.marks().empty());
  posts.add(1, 70);
  posts.add(2, 80);
  posts.add(4, 90);
  CHECK(posts.marks() == Marks{70, 80, 90});
  posts.acknowledge(1);  // an answer to what was sent with it, not after
  CHECK(posts.marks() == Marks{70, 80, 90});
  posts.acknowledge(3);
  CHECK(posts.marks() == Marks{90});
  posts.acknowledge(2);  // answers come in any order
  CHECK(posts.marks() == Marks{90});
  posts.acknowledge(5);
  CHECK(posts.size() == 0);
}

TEST_CASE("posts about one thing in a row count as one, which is unread as long as the last is", "[net]") {
  UnreadPosts posts;
  posts.add(1, 70);
  posts.add(2, 70);
  posts.add(4, 70);
  CHECK(posts.size() == 1);
  posts.acknowledge(3);
  CHECK(posts.marks() == Marks{70});
  posts.add(5, 80);
  posts.add(6, 70);
  CHECK(posts.marks() == Marks{70, 80, 70});
}
