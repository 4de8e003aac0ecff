#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/io/records/fixed_record_file.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace dflow {

FixedRecordReader::FixedRecordReader(FileSystem& files, std::string path, const FixedRecordFormat& format)
    : path_(std::move(path)), format_(format) {
  if (format_.record_bytes == 0) throw_error(Status::invalid_argument("records of no bytes cannot be counted"));
  if (format_.hop_bytes == 0) format_.hop_bytes = format_.record_bytes;
  static_cast<void>(checked_add(format_.record_bytes, format_.footer_bytes));
  source_ = open_record_source(files, path_, {.compression = format_.compression});
}
FixedRecordReader::~FixedRecordReader() = default;

std::uint64_t FixedRecordReader::offset_of(std::uint64_t number) const {
  return checked_add(format_.header_bytes, checked_mul(number, format_.hop_bytes));
}

void FixedRecordReader::seek(std::uint64_t number) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  if (offset_of(number) > most)
    throw_error(Status::invalid_argument(str_cat("no file has a record ", number, " of this length")));
  if (number != number_) clear_window();
  number_ = number;
}

void FixedRecordReader::clear_window() {
  window_.clear();
  window_begin_ = 0;
}

bool FixedRecordReader::has_next_at_hand() const {
  const std::uint64_t wanted = format_.record_bytes + format_.footer_bytes;
  const std::uint64_t held = window_.size() - window_begin_;
  if (held >= wanted) return true;
  return source_->position() == offset_of(number_) + held && source_->at_hand().size() >= wanted - held &&
         (number_ != 0 || held != 0);
}

bool FixedRecordReader::next(std::string& record) {
  try {
    return read_record(record);
  } catch (const Error& error) {
    record.clear();
    clear_window();  // where the source is now is unknown
    Status status = error.status();
    if (number_ == 0 && status.code() == Code::data_loss) status = with_kind_of_file(status, *source_);
    throw_error(
        status.with_prefix(str_cat("record ", number_, " of '", path_, "' at offset ", offset_of(number_), ": ")));
  }
}

bool FixedRecordReader::read_record(std::string& record) {
  record.clear();
  const std::uint64_t offset = offset_of(number_);
  const std::uint64_t record_bytes = format_.record_bytes, hop_bytes = format_.hop_bytes;
  const std::uint64_t footer_bytes = format_.footer_bytes;
  const std::uint64_t wanted = record_bytes + footer_bytes;
  if (window_.size() == window_begin_) {
    clear_window();
    if (number_ == 0 && offset > 0) {
      std::array<std::byte, 1> last_of_header;
      source_->seek(offset - 1);
      if (source_->read(last_of_header) == 0) throw_error(Status::data_loss("the file is cut short in its header"));
    }
    source_->seek(offset);
  }
  fill_to(*source_, window_begin_ + wanted, window_);
  const std::uint64_t held = window_.size() - window_begin_;
  if (held == wanted) {
    record.assign(window_, window_begin_, static_cast<std::size_t>(record_bytes));
    ++number_;
    if (hop_bytes >= held) {
      clear_window();
      return true;
    }
    window_begin_ += static_cast<std::size_t>(hop_bytes);
    // Read bytes are dropped only if they are at least as many as the bytes moved, so a record costs no more than its
    // hop.
    if (window_begin_ >= window_.size() - window_begin_) window_.erase(0, std::exchange(window_begin_, 0));
    return true;
  }
  // The end: before the footer there are only the bytes that the hop has left of the last record, if any.
  const std::uint64_t overlap = number_ != 0 && hop_bytes < record_bytes ? record_bytes - hop_bytes : 0;
  if (number_ == 0 && held < footer_bytes) throw_error(Status::data_loss("the file is cut short in its footer"));
  if (held > footer_bytes + overlap) {
    throw_error(Status::data_loss(str_cat("the file is cut short: there are ", held - footer_bytes, " of ",
                                          record_bytes, " bytes before its footer")));
  }
  return false;
}

}  // namespace dflow
