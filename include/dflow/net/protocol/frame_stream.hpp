#pragma once

#include <dflow/net/protocol/frame.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow::net {

/// Bytes that are sent from where they are.
struct Payload {
  std::vector<std::span<const std::byte>> parts;
  std::shared_ptr<const void> owner;  ///< keeps them

  std::uint64_t size() const noexcept {
    std::uint64_t bytes = 0;
    for (const std::span<const std::byte> part : parts) bytes += part.size();
    return bytes;
  }
};

/// Receives the frames that a FrameReader reads.
///
/// Thread safety: called by the thread that reads.
class FrameSink {
 public:
  /// A frame that is no chunk. Exceptions pass to the caller that reads.
  virtual void on_frame(const FrameHeader& header, std::string payload) = 0;
  /// A chunk begins: where its bytes go, as many as the header says; none: nobody wants them.
  virtual std::span<std::byte> on_chunk(const FrameHeader& header) = 0;
  virtual void on_chunk_end(const FrameHeader& header) = 0;

 protected:
  ~FrameSink() = default;
};

/// Takes a stream of bytes apart into frames. Small reads come through one buffer; the bytes of a large chunk are read
/// to where they are wanted. A body is believed as its bytes arrive.
///
/// Thread safety: one thread at a time.
class FrameReader {
 public:
  FrameReader(FrameSink& sink, std::uint64_t max_body_bytes, std::uint64_t max_chunk_bytes);

  /// The limit for the frames after the present or last frame.
  void set_max_body_bytes(std::uint64_t bytes) noexcept { max_body_bytes_ = bytes; }

  /// The memory for the next bytes.
  std::span<std::byte> room() noexcept;
  /// Takes the next `count` bytes, which were read into `room`. Errors: the errors of read_frame_header(); DataLoss
  /// for a wrong checksum; the sink's errors.
  void take(std::size_t count);

 private:
  enum class State : std::uint8_t { header, body, chunk };
  std::size_t buffered() const noexcept { return end_ - begin_; }
  bool step();
  void begin_frame();
  void finish_frame();

  FrameSink& sink_;
  std::uint64_t max_body_bytes_;
  const std::uint64_t max_chunk_bytes_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  State state_ = State::header;
  FrameHeader header_;
  std::string body_;
  std::span<std::byte> target_;  ///< of a chunk; empty: it is skipped
  std::uint64_t done_ = 0;       ///< bytes of the payload that have come
  std::uint32_t checksum_ = 0;
  bool reads_direct_ = false;  ///< room() was in the target
};

/// Puts frames in the order of sending: first the frames that are not chunks, then chunks of all payloads by turns,
/// as far as there is credit.
///
/// Thread safety: one thread at a time.
class FrameWriter {
 public:
  /// The parts of one write, and the owners of their memory.
  struct Batch {
    std::vector<std::span<const std::byte>> parts;
    std::deque<FrameHeaderBytes> headers;
    std::vector<std::string> bodies;
    std::vector<std::shared_ptr<const void>> owners;

    void clear();
  };

  /// `chunk_bytes` is at least 1.
  explicit FrameWriter(std::uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  void add(FrameHeader header, std::string body);
  /// `header` is the header of its chunks, without length and checksum.
  void add_payload(const FrameHeader& header, Payload payload);
  /// Forgets the rest of that payload that has not been sent. True if there was something.
  bool drop_payload(const FrameHeader& header);
  void add_credit(std::uint64_t bytes) noexcept { credit_ += bytes; }
  std::uint64_t credit() const noexcept { return credit_; }

  /// Fills an empty batch; the parts point into the batch, so it must not move. False if there is nothing that can go
  /// now.
  bool next(Batch& batch);
  std::size_t num_queued() const noexcept { return frames_.size() + payloads_.size(); }
  std::size_t num_payloads() const noexcept { return payloads_.size(); }
  /// The bytes of waiting frames that the peer has asked for (replies, pongs, credit).
  std::uint64_t answer_bytes() const noexcept { return answer_bytes_; }
  /// The bytes of waiting requests.
  std::uint64_t request_bytes() const noexcept { return request_bytes_; }
  void clear();

 private:
  static constexpr std::uint64_t max_batch_bytes = std::uint64_t{1} << 20;
  struct Frame {
    FrameHeader header;
    std::string body;
  };
  struct Sending {
    FrameHeader header;
    Payload payload;
    std::size_t part = 0;
    std::size_t offset = 0;  ///< in that part
  };
  /// The counter of waiting frames of that type; null if they are not counted.
  std::uint64_t* count_of(FrameType type) noexcept;
  std::uint64_t add_chunk(Sending& sending, Batch& batch);
  void forget(std::list<Sending>::iterator sending);

  const std::uint64_t chunk_bytes_;
  std::uint64_t credit_ = 0;
  std::uint64_t answer_bytes_ = 0;
  std::uint64_t request_bytes_ = 0;
  std::deque<Frame> frames_;
  std::list<Sending> payloads_;
  std::multimap<std::uint64_t, std::list<Sending>::iterator> by_request_;  ///< the payloads
};

}  // namespace dflow::net
