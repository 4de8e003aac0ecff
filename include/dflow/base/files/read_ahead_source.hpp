#pragma once

#include <dflow/base/files/byte_source.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace dflow {

/// A file read in order by a thread of its own, which is up to `num_blocks` blocks ahead of the caller. The thread
/// begins to read at the first call that asks for bytes, and sleeps at the end of the file. If the file is longer
/// later, the thread reads on.
///
/// Thread safety: one thread at a time. The destructor waits for a read that is under way.
/// Errors: the errors of the file, when the caller asks for bytes that could not be read; the next call tries again.
/// ResourceExhausted from the constructor if there can be no other thread.
class ReadAheadSource final : public ByteSource {
 public:
  static constexpr std::size_t num_blocks = 4;

  /// `block_bytes` of 0 is taken as 1.
  explicit ReadAheadSource(std::unique_ptr<RandomAccessFile> file,
                           std::size_t block_bytes = FileSource::default_buffer_bytes);
  ~ReadAheadSource() override;

  std::size_t read(std::span<std::byte> into) override;
  std::span<const std::byte> at_hand() const override {
    return {current_.bytes.at(current_.offset) + used_, current_.size - used_};
  }
  std::span<const std::byte> bring_to_hand(std::size_t size) override;
  std::uint64_t position() const override { return current_.offset + used_; }
  void seek(std::uint64_t position) override;

 private:
  struct Block {
    std::uint64_t offset = 0;
    std::size_t size = 0;  ///< of `bytes`, fewer than all at the end of the file and before an error
    FileBuffer bytes;
    std::exception_ptr error = nullptr;
  };

  void read_blocks();
  bool next_block();
  Block take_first();

  const std::unique_ptr<RandomAccessFile> file_;
  const std::size_t block_bytes_;
  Block current_;         ///< the asking thread's
  std::size_t used_ = 0;  ///< of it

  std::mutex mutex_;
  std::condition_variable for_reader_, for_asker_;
  std::vector<Block> ahead_;        ///< the blocks after `current_`; both have room for all buffers
  std::vector<FileBuffer> unused_;  ///< to read into
  std::uint64_t wanted_ = 0;        ///< where the next block begins
  std::uint64_t turn_ = 0;          ///< counts changes of position: blocks read before one are of no use
  bool is_reading_ = false;         ///< there is more to read, as far as is known
  bool is_ended_ = false;
  std::thread reader_;
};

}  // namespace dflow
