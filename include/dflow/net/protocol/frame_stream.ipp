#pragma once

#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/status.hpp>
#include <dflow/net/protocol/frame_stream.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace dflow::net {

// ---- FrameReader ----

namespace detail {
inline constexpr std::size_t read_buffer_bytes = std::size_t{64} << 10;
}  // namespace detail

FrameReader::FrameReader(FrameSink& sink, std::uint64_t max_body_bytes, std::uint64_t max_chunk_bytes)
    : sink_(sink),
      max_body_bytes_(max_body_bytes),
      max_chunk_bytes_(max_chunk_bytes),
      buffer_(detail::read_buffer_bytes) {}

std::span<std::byte> FrameReader::room() noexcept {
  // Only a chunk leaves nothing in the buffer before it is complete.
  reads_direct_ = state_ == State::chunk && !target_.empty();
  if (reads_direct_) return target_.subspan(static_cast<std::size_t>(done_));
  if (buffered() == 0) begin_ = end_ = 0;
  if (begin_ > 0 && end_ == buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, buffered());
    end_ -= begin_;
    begin_ = 0;
  }
  return std::span(buffer_).subspan(end_);
}

void FrameReader::take(std::size_t count) {
  if (reads_direct_) {
    checksum_ = crc32c_extend(checksum_, target_.subspan(static_cast<std::size_t>(done_), count));
    done_ += count;
    if (done_ == header_.length) finish_frame();
    return;
  }
  end_ += count;
  while (step()) {
  }
}

/// True if the buffered bytes may contain more.
bool FrameReader::step() {
  if (state_ == State::header) {
    if (buffered() < FrameHeader::size) return false;
    begin_frame();
    return true;
  }
  const std::size_t count = std::min<std::uint64_t>(buffered(), header_.length - done_);
  const std::span<const std::byte> bytes = std::span(buffer_).subspan(begin_, count);
  checksum_ = crc32c_extend(checksum_, bytes);
  if (state_ == State::body) {
    body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else if (!target_.empty() && count != 0) {
    std::memcpy(target_.data() + done_, bytes.data(), count);
  }
  begin_ += count;
  done_ += count;
  if (done_ < header_.length) return false;
  finish_frame();
  return true;
}

void FrameReader::begin_frame() {
  const auto bytes = std::span(buffer_).subspan(begin_).first<FrameHeader::size>();
  header_ = read_frame_header(bytes, std::max(max_body_bytes_, max_chunk_bytes_));
  begin_ += FrameHeader::size;
  done_ = 0;
  checksum_ = 0;
  const bool is_chunk = header_.type == FrameType::chunk;
  if (const std::uint64_t most = is_chunk ? max_chunk_bytes_ : max_body_bytes_; header_.length > most) {
    throw_error(Status::out_of_range(str_cat("a frame of ", header_.length, " bytes, more than ", most)));
  }
  state_ = is_chunk ? State::chunk : State::body;
  body_.clear();
  target_ = {};
  if (is_chunk) target_ = sink_.on_chunk(header_);
}

void FrameReader::finish_frame() {
  if (checksum_ != header_.checksum) throw_error(Status::data_loss("the payload of a frame has a wrong checksum"));
  const bool is_chunk = state_ == State::chunk;
  state_ = State::header;
  target_ = {};
  if (is_chunk) {
    sink_.on_chunk_end(header_);
  } else {
    sink_.on_frame(header_, std::exchange(body_, {}));
  }
}

// ---- FrameWriter ----

void FrameWriter::Batch::clear() {
  parts.clear();
  headers.clear();
  bodies.clear();
  owners.clear();
}

std::uint64_t* FrameWriter::count_of(FrameType type) noexcept {
  if (type == FrameType::reply || type == FrameType::pong || type == FrameType::credit) return &answer_bytes_;
  return type == FrameType::request ? &request_bytes_ : nullptr;
}

void FrameWriter::add(FrameHeader header, std::string body) {
  const std::uint64_t bytes = sizeof(Frame) + body.size();
  frames_.push_back({header, std::move(body)});
  if (std::uint64_t* const count = count_of(header.type)) *count += bytes;
}

void FrameWriter::add_payload(const FrameHeader& header, Payload payload) {
  // A payload has ended with its last part: an empty one would be left for a chunk of nothing.
  std::erase_if(payload.parts, [](std::span<const std::byte> part) { return part.empty(); });
  if (payload.parts.empty()) return;
  payloads_.push_back({header, std::move(payload)});
  try {
    by_request_.emplace(header.request, std::prev(payloads_.end()));
  } catch (...) {
    payloads_.pop_back();
    throw;
  }
}

bool FrameWriter::drop_payload(const FrameHeader& header) {
  const auto [begin, end] = by_request_.equal_range(header.request);
  const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second->header == header; });
  if (found == end) return false;
  payloads_.erase(found->second);
  by_request_.erase(found);
  return true;
}

void FrameWriter::forget(std::list<Sending>::iterator sending) {
  const auto [begin, end] = by_request_.equal_range(sending->header.request);
  by_request_.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second == sending; }));
  payloads_.erase(sending);
}

void FrameWriter::clear() {
  frames_.clear();
  payloads_.clear();
  by_request_.clear();
  answer_bytes_ = request_bytes_ = 0;
}

bool FrameWriter::next(Batch& batch) {
  std::uint64_t bytes = 0;
  batch.bodies.reserve(frames_.size());  // bodies do not move: parts point into short ones
  for (; !frames_.empty() && bytes < max_batch_bytes; frames_.pop_front()) {
    Frame& frame = frames_.front();
    if (std::uint64_t* const count = count_of(frame.header.type)) *count -= sizeof(Frame) + frame.body.size();
    batch.bodies.push_back(std::move(frame.body));
    const std::span<const std::byte> body = std::as_bytes(std::span(batch.bodies.back()));
    describe_payload(frame.header, {&body, 1});
    batch.parts.emplace_back(batch.headers.emplace_back(to_bytes(frame.header)));
    if (!body.empty()) batch.parts.push_back(body);
    bytes += FrameHeader::size + body.size();
  }
  while (!payloads_.empty() && credit_ > 0 && bytes < max_batch_bytes) {
    Sending& sending = payloads_.front();
    bytes += add_chunk(sending, batch);
    if (sending.part == sending.payload.parts.size()) {
      batch.owners.push_back(std::move(sending.payload.owner));
      forget(payloads_.begin());
    } else {
      if (batch.owners.empty() || batch.owners.back() != sending.payload.owner) {
        batch.owners.push_back(sending.payload.owner);
      }
      payloads_.splice(payloads_.end(), payloads_, payloads_.begin());
    }
  }
  return !batch.parts.empty();
}

/// Adds a chunk of as many bytes as the chunk size, and the credit, allow.
std::uint64_t FrameWriter::add_chunk(Sending& sending, Batch& batch) {
  std::uint64_t room = std::min(chunk_bytes_, credit_);
  const std::size_t at = batch.parts.size();
  batch.parts.emplace_back();
  for (; room > 0 && sending.part < sending.payload.parts.size();) {
    const std::span<const std::byte> part = sending.payload.parts[sending.part].subspan(sending.offset);
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(room, part.size()));
    if (count != 0) batch.parts.push_back(part.first(count));
    room -= count;
    sending.offset += count;
    if (count == part.size()) {
      ++sending.part;
      sending.offset = 0;
    }
  }
  FrameHeader header = sending.header;
  describe_payload(header, std::span(batch.parts).subspan(at + 1));
  credit_ -= header.length;
  batch.parts[at] = batch.headers.emplace_back(to_bytes(header));
  return FrameHeader::size + header.length;
}

}  // namespace dflow::net
