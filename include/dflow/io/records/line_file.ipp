#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/io/records/line_file.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace dflow {

LineReader::LineReader(FileSystem& files, std::string path, std::uint64_t max_line_bytes)
    : path_(std::move(path)), max_line_bytes_(max_line_bytes), file_(files.open_for_reading(path_)) {}
LineReader::LineReader(std::unique_ptr<ByteSource> source, std::string path, std::uint64_t max_line_bytes)
    : path_(std::move(path)), max_line_bytes_(max_line_bytes), source_(std::move(source)) {}
LineReader::~LineReader() = default;

bool LineReader::next(std::string_view& line) {
  const auto require_short = [&](std::size_t length) {
    if (length <= max_line_bytes_) return;
    throw_error(Status::resource_exhausted(
        str_cat("the line of '", path_, "' at offset ", tell(), " is longer than the limit of ", max_line_bytes_)));
  };
  std::size_t searched = 0;
  std::size_t end = 0, after = 0;
  for (;;) {
    end = text_.find('\n', begin_ + searched);
    after = end + 1;
    if (end != std::string::npos) break;
    searched = text_.size() - begin_;
    if (searched > 0) require_short(searched - 1);  // the last one may be the carriage return
    if (read_more()) continue;
    if (begin_ == text_.size()) return false;
    end = after = text_.size();
    break;
  }
  std::string_view found = std::string_view(text_).substr(begin_, end - begin_);
  if (found.ends_with('\r')) found.remove_suffix(1);
  require_short(found.size());
  line = found;
  begin_ = after;
  return true;
}

bool LineReader::has_next_at_hand() const { return text_.find('\n', begin_) != std::string::npos; }

void LineReader::seek(std::uint64_t offset) noexcept {
  if (offset >= start_ && offset - start_ <= text_.size()) {
    begin_ = static_cast<std::size_t>(offset - start_);
    return;
  }
  text_.clear();
  start_ = offset;
  begin_ = 0;
}

bool LineReader::read_more() {
  constexpr std::size_t least = std::size_t{1} << 16;
  text_.erase(0, begin_);
  start_ += std::exchange(begin_, 0);
  // A long line is read in parts that grow with it, so that it costs no more than twice its length.
  const std::size_t held = text_.size();
  const std::uint64_t next = start_ + held;
  std::size_t wanted = std::max(least, held);
  if (file_ != nullptr) {
    const std::uint64_t left = file_->size() - std::min<std::uint64_t>(next, file_->size());
    wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, wanted));
  }
  text_.resize(held + wanted);
  std::size_t got = 0;
  try {
    got = read_at(next, std::as_writable_bytes(std::span(text_)).subspan(held));
  } catch (...) {
    text_.resize(held);
    throw;
  }
  text_.resize(held + got);
  return got > 0;
}

std::size_t LineReader::read_at(std::uint64_t offset, std::span<std::byte> into) {
  if (file_ != nullptr) return file_->read_at(offset, into);
  try {
    source_->seek(offset);
    return source_->position() < offset ? 0 : source_->read(into);
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("'", path_, "': ")));
  }
}

}  // namespace dflow
