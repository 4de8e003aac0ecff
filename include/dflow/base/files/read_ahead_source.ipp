#pragma once

#include <dflow/base/files/read_ahead_source.hpp>
#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/status.hpp>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

namespace dflow {

ReadAheadSource::ReadAheadSource(std::unique_ptr<RandomAccessFile> file, std::size_t block_bytes)
    : file_(std::move(file)),
      block_bytes_(std::max<std::size_t>(block_bytes, 1)),
      current_{.bytes = FileBuffer(block_bytes_)} {
  ahead_.reserve(num_blocks + 1);
  unused_.reserve(num_blocks + 1);
  for (std::size_t i = 0; i < num_blocks; ++i) unused_.emplace_back(block_bytes_);
  try {
    reader_ = std::thread([this] { read_blocks(); });
  } catch (const std::system_error& error) {
    throw_error(Status::resource_exhausted(str_cat("no thread that reads ahead: ", error.what())));
  }
}

ReadAheadSource::~ReadAheadSource() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  for_reader_.notify_one();
  reader_.join();
}

void ReadAheadSource::read_blocks() {
  std::unique_lock lock(mutex_);
  while (true) {
    for_reader_.wait(lock, [this] { return is_ended_ || (is_reading_ && !unused_.empty()); });
    if (is_ended_) return;
    Block block{.offset = wanted_, .bytes = std::move(unused_.back())};
    unused_.pop_back();
    const std::uint64_t turn = turn_;
    lock.unlock();
    try {
      block.size = file_->read_at(block.offset, {block.bytes.at(block.offset), block_bytes_});
    } catch (...) {
      block.error = std::current_exception();
    }
    lock.lock();
    if (turn != turn_) {
      unused_.push_back(std::move(block.bytes));
      continue;
    }
    wanted_ += block.size;
    is_reading_ = block.size == block_bytes_;
    ahead_.push_back(std::move(block));
    for_asker_.notify_one();
  }
}

ReadAheadSource::Block ReadAheadSource::take_first() {
  Block first = std::move(ahead_.front());
  ahead_.erase(ahead_.begin());
  return first;
}

/// Goes on to the block that begins where the current one ends; false at the end of the file.
bool ReadAheadSource::next_block() {
  detail::may_block("reading a file");
  std::unique_lock lock(mutex_);
  if (ahead_.empty() && !is_reading_) {
    wanted_ = current_.offset + current_.size;
    is_reading_ = true;
    ++turn_;
    for_reader_.notify_one();
  }
  for_asker_.wait(lock, [this] { return !ahead_.empty(); });
  Block next = take_first();
  unused_.push_back(std::exchange(current_.bytes, std::move(next.bytes)));
  lock.unlock();
  for_reader_.notify_one();
  current_.offset = next.offset;
  current_.size = next.size;
  used_ = 0;
  if (next.error) std::rethrow_exception(next.error);
  return current_.size != 0;
}

void ReadAheadSource::seek(std::uint64_t position) {
  const auto holds = [position](const Block& block) {
    return position >= block.offset && position - block.offset <= block.size;
  };
  if (!holds(current_)) {
    const std::lock_guard lock(mutex_);
    // The blocks that were read ahead stay useful if they hold the position.
    while (!ahead_.empty() && !holds(ahead_.front())) {
      unused_.push_back(take_first().bytes);
    }
    current_.size = 0;
    if (!ahead_.empty() && !ahead_.front().error) {
      unused_.push_back(std::move(current_.bytes));
      current_ = take_first();
    } else {
      for (Block& block : ahead_) unused_.push_back(std::move(block.bytes));
      ahead_.clear();
      current_.offset = position;
      is_reading_ = false;
      ++turn_;
    }
    for_reader_.notify_one();
  }
  used_ = static_cast<std::size_t>(position - current_.offset);
}

std::span<const std::byte> ReadAheadSource::bring_to_hand(std::size_t) {
  if (used_ == current_.size) next_block();
  return at_hand();
}

std::size_t ReadAheadSource::read(std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    if (used_ == current_.size && !next_block()) break;
    const std::size_t size = std::min(into.size() - done, current_.size - used_);
    std::memcpy(into.data() + done, current_.bytes.at(current_.offset) + used_, size);
    used_ += size;
    done += size;
  }
  return done;
}

}  // namespace dflow
