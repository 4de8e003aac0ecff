#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/files/read_ahead_source.hpp>
#include <dflow/io/compression/compressed_file.hpp>
#include <dflow/io/records/record_file.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

namespace dflow {

namespace detail {

inline constexpr std::size_t record_header_bytes = 12;  ///< length and its checksum
inline constexpr std::size_t record_footer_bytes = 4;   ///< the content's checksum

CompressionFormat compression_format(RecordCompression compression) {
  return compression == RecordCompression::gzip ? CompressionFormat::gzip : CompressionFormat::zlib;
}

}  // namespace detail

RecordWriter::RecordWriter(FileSystem& files, std::string path, const RecordWriterOptions& options)
    : path_(std::move(path)), buffer_bytes_(options.buffer_bytes) {
  if (options.append && options.compression == RecordCompression::zlib) {
    throw_error(Status::invalid_argument(str_cat("cannot append to '", path_, "': a zlib stream has one end")));
  }
  const bool is_replaced = !options.append && !options.is_new;
  // Empty at first, and with the permissions and the place of the file that is there.
  if (is_replaced && files.exists(path_)) files.write_file_atomically(path_, std::string_view());
  file_ = options.is_new ? files.create_file(path_) : files.open_for_appending(path_);
  if (options.compression == RecordCompression::none) {
    if (options.append) offset_ = files.file_size(path_);
    return;
  }
  auto deflating = std::make_unique<DeflatingFile>(std::move(file_), detail::compression_format(options.compression),
                                                   options.compression_level);
  deflating_ = deflating.get();
  file_ = std::move(deflating);
}

RecordWriter::~RecordWriter() {
  try {
    close();
  } catch (...) {  // a caller that wants the error calls close
  }
}

template <class Change>
void RecordWriter::change(Change change) {
  throw_if_error(failed_);
  if (file_ == nullptr) throw_error(Status::failed_precondition(str_cat("'", path_, "' has been closed")));
  try {
    change();
  } catch (...) {
    failed_ = status_of_current_exception();
    throw;
  }
}

void RecordWriter::write_buffer() {
  file_->append(buffer_);
  buffer_.clear();
}

void RecordWriter::write(std::string_view record) {
  change([&] {
    ByteWriter out(buffer_);
    const std::size_t start = buffer_.size();
    out.u64(record.size());
    out.u32(mask_crc32c(crc32c(std::string_view(buffer_).substr(start))));
    out.bytes(std::as_bytes(std::span(record.data(), record.size())));
    out.u32(mask_crc32c(crc32c(record)));
    offset_ += buffer_.size() - start;
    if (buffer_.size() >= buffer_bytes_) write_buffer();
  });
}

void RecordWriter::flush() {
  change([&] {
    write_buffer();
    if (deflating_ != nullptr) deflating_->flush();
  });
}

void RecordWriter::sync() {
  change([&] {
    write_buffer();
    file_->sync();
  });
}

void RecordWriter::close() {
  if (file_ == nullptr) return throw_if_error(failed_);
  change([&] {
    write_buffer();
    if (deflating_ != nullptr) deflating_->finish();
  });
  deflating_ = nullptr;
  file_.reset();
}

std::unique_ptr<ByteSource> open_record_source(FileSystem& files, const std::string& path,
                                               const RecordReaderOptions& options) {
  auto file = files.open_for_reading(path);
  std::unique_ptr<ByteSource> source;
  if (options.reads_ahead) {
    source = std::make_unique<ReadAheadSource>(std::move(file), options.buffer_bytes);
  } else {
    source = std::make_unique<FileSource>(std::move(file), options.buffer_bytes);
  }
  if (options.compression == RecordCompression::none) return source;
  return inflating_source(std::move(source), detail::compression_format(options.compression));
}

RecordReader::RecordReader(FileSystem& files, std::string path, const RecordReaderOptions& options)
    : path_(std::move(path)),
      max_record_bytes_(options.max_record_bytes),
      source_(open_record_source(files, path_, options)) {}

RecordReader::~RecordReader() = default;

/// Errors name the record.
template <class Read>
bool RecordReader::read_with_place(Read read) {
  try {
    return read();
  } catch (const Error& error) {
    window_ = {};
    Status status = error.status();
    if (offset_ == 0 && status.code() == Code::data_loss) status = with_kind_of_file(status, *source_);
    throw_error(status.with_prefix(str_cat("record of '", path_, "' at offset ", offset_, ": ")));
  }
}

bool RecordReader::next(std::string& record) {
  const std::uint64_t began = offset_;
  bool is_read = false;
  try {
    is_read = read_with_place([&] {
      std::span<const std::byte> content;
      if (!find_record(content)) return read_record(record);
      record.assign(reinterpret_cast<const char*>(content.data()), content.size());
      return true;
    });
  } catch (...) {
    record.clear();
    seek(began);
    throw;
  }
  if (!is_read) record.clear();
  return is_read;
}

bool RecordReader::next_view(std::string_view& record) {
  record = {};
  return read_with_place([&] {
    std::span<const std::byte> content;
    if (find_record(content)) {
      record = {reinterpret_cast<const char*>(content.data()), content.size()};
      return true;
    }
    if (!read_record(held_)) return false;
    record = held_;
    return true;
  });
}

std::string RecordReader::read() {
  std::string record;
  if (!next(record)) {
    throw_error(Status::out_of_range(str_cat("'", path_, "' has no more records: it ends at offset ", offset_)));
  }
  return record;
}

/// The length that a complete header gives. Throws if its checksum is wrong or the length is over the limit.
std::uint64_t RecordReader::checked_length(std::span<const std::byte> header) const {
  ByteReader in(header);
  const std::uint64_t length = in.u64();
  if (mask_crc32c(crc32c(header.first(8))) != in.u32()) {
    throw_error(Status::data_loss("the checksum of its length is wrong"));
  }
  constexpr std::uint64_t addressable = std::numeric_limits<std::uint64_t>::max() / 2;
  if (length > std::min(max_record_bytes_, addressable)) {
    throw_error(
        Status::resource_exhausted(str_cat("it has ", length, " bytes, more than the limit of ", max_record_bytes_)));
  }
  return length;
}

/// Goes past the next record if the source holds all of it together, in memory that stays until the next call.
bool RecordReader::find_record(std::span<const std::byte>& content) {
  constexpr std::size_t around = detail::record_header_bytes + detail::record_footer_bytes;
  const auto has = [this](std::size_t size) {
    if (window_.size() >= size) return true;
    window_ = {};  // if the source throws, its buffers may have changed
    source_->seek(offset_);
    window_ = source_->bring_to_hand(size);
    return window_.size() >= size;
  };
  if (!has(around)) return false;
  const std::uint64_t length = checked_length(window_.first(detail::record_header_bytes));
  if (length > std::numeric_limits<std::size_t>::max() - around) return false;
  const std::size_t size = around + static_cast<std::size_t>(length);
  if (!has(size)) return false;
  content = window_.subspan(detail::record_header_bytes, static_cast<std::size_t>(length));
  if (mask_crc32c(crc32c(content)) != ByteReader(window_.subspan(size - detail::record_footer_bytes)).u32()) {
    throw_error(Status::data_loss("the checksum is wrong"));
  }
  window_ = window_.subspan(size);
  offset_ += size;
  return true;
}

/// Reads a record that the source does not hold as a whole; false at the end.
bool RecordReader::read_record(std::string& record) {
  window_ = {};
  source_->seek(offset_);
  std::array<std::byte, detail::record_header_bytes> header;
  const std::size_t got = source_->read(header);
  if (got == 0) return false;
  if (got < header.size()) throw_error(Status::data_loss("it is cut short in its header"));
  const std::uint64_t length = checked_length(header);
  read_parts(length, record);
  offset_ += header.size() + length + detail::record_footer_bytes;
  return true;
}

/// Reads the content and its checksum in parts that are checked while they are in the processor's cache. The length is
/// trusted only as far as there are bytes: memory is at most twice the bytes that are there, and a megabyte.
void RecordReader::read_parts(std::uint64_t length, std::string& record) {
  constexpr std::size_t part_bytes = FileSource::default_buffer_bytes, first_step = std::size_t{1} << 20;
  if (record.size() > length) record.resize(static_cast<std::size_t>(length));
  std::uint32_t crc = 0;
  for (std::size_t held = 0; held < length;) {
    if (held == record.size()) {
      const std::uint64_t wanted = std::max<std::uint64_t>(first_step, 2 * std::uint64_t{held});
      record.resize(static_cast<std::size_t>(std::min(length, wanted)));
    }
    // Bytes at hand are read apart from the rest, so that the rest may bypass the source's buffer.
    const std::size_t at_hand = source_->at_hand().size(), most = at_hand != 0 ? at_hand : part_bytes;
    const auto part =
        std::as_writable_bytes(std::span(record)).subspan(held).first(std::min(most, record.size() - held));
    const std::size_t got = source_->read(part);
    if (got < part.size()) throw_error(Status::data_loss(str_cat("it has fewer than its ", length, " bytes")));
    crc = crc32c_extend(crc, part);
    held += got;
  }
  std::array<std::byte, detail::record_footer_bytes> footer;
  if (source_->read(footer) < footer.size()) throw_error(Status::data_loss("it is cut short"));
  if (mask_crc32c(crc) != ByteReader(footer).u32()) throw_error(Status::data_loss("the checksum is wrong"));
}

bool RecordReader::pass_over() {
  constexpr std::uint64_t around = detail::record_header_bytes + detail::record_footer_bytes;
  window_ = {};
  return read_with_place([&] {
    source_->seek(offset_);
    std::array<std::byte, detail::record_header_bytes> header;
    if (source_->read(header) < header.size()) return false;
    ByteReader in(header);
    const std::uint64_t length = in.u64();
    if (mask_crc32c(crc32c(std::span<const std::byte>(header).first(8))) != in.u32()) return false;
    if (length > std::numeric_limits<std::uint64_t>::max() - around - offset_) return false;
    offset_ += around + length;
    return true;
  });
}

bool RecordReader::has_next_at_hand() const {
  std::span<const std::byte> bytes = window_;
  if (bytes.empty() && source_->position() == offset_) bytes = source_->at_hand();
  if (bytes.size() < detail::record_header_bytes) return false;
  const std::size_t rest = bytes.size() - detail::record_header_bytes;
  return rest >= detail::record_footer_bytes && ByteReader(bytes).u64() <= rest - detail::record_footer_bytes;
}

}  // namespace dflow
