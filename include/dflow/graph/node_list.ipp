#pragma once

#include <dflow/base/config.hpp>
#include <dflow/graph/node_list.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace dflow {

static_assert(std::is_nothrow_move_constructible_v<Node>, "appending a node must not fail half way");

NodeList::~NodeList() {
  drop_from(0);
  for (std::size_t block = 0; block < max_blocks && blocks_[block] != nullptr; ++block) {
    std::allocator<Node>().deallocate(blocks_[block], first_block << block);
  }
}

void NodeList::reserve_one() {
  const std::size_t block = block_of(appended_);
  if (blocks_[block] == nullptr) blocks_[block] = std::allocator<Node>().allocate(first_block << block);
}

void NodeList::append(Node&& node) noexcept {
  const std::size_t block = block_of(appended_);
  std::construct_at(blocks_[block] + (appended_ - first_in(block)), std::move(node));
  ++appended_;
}

void NodeList::drop_from(std::size_t first) noexcept {
  while (appended_ > first) {
    --appended_;
    const std::size_t block = block_of(appended_);
    std::destroy_at(blocks_[block] + (appended_ - first_in(block)));
  }
}

}  // namespace dflow
