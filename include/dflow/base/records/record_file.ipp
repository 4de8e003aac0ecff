#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/records/record_file.hpp>
#include <dflow/base/records/zlib_stream.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

namespace dflow {

namespace detail {

inline constexpr std::size_t record_header_bytes = 12;  ///< length and its checksum
inline constexpr std::size_t record_footer_bytes = 4;   ///< the content's checksum

DFLOW_INLINE ZlibFormat zlib_format(RecordCompression compression) {
  return compression == RecordCompression::gzip ? ZlibFormat::gzip : ZlibFormat::zlib;
}

}  // namespace detail

DFLOW_INLINE RecordWriter::RecordWriter(FileSystem& files, std::string path, const RecordWriterOptions& options)
    : path_(std::move(path)), buffer_bytes_(options.buffer_bytes) {
  if (options.append && options.compression == RecordCompression::zlib) {
    throw_error(invalid_argument(str_cat("cannot append to '", path_, "': a zlib stream has one end")));
  }
  const bool is_replaced = !options.append && !options.is_new;
  if (is_replaced && files.exists(path_) && !files.is_directory(path_)) files.remove(path_);
  file_ = options.is_new ? files.create_file(path_) : files.open_for_appending(path_);
  if (options.compression == RecordCompression::none) {
    if (options.append) offset_ = files.file_size(path_);
    return;
  }
  auto deflating = std::make_unique<DeflatingFile>(std::move(file_), detail::zlib_format(options.compression),
                                                   options.compression_level);
  deflating_ = deflating.get();
  file_ = std::move(deflating);
}

DFLOW_INLINE RecordWriter::~RecordWriter() {
  try {
    close();
  } catch (const std::exception&) {  // who wants to know calls close
  }
}

template <class Change>
void RecordWriter::change(Change change) {
  throw_if_error(failed_);
  if (file_ == nullptr) throw_error(failed_precondition(str_cat("'", path_, "' has been closed")));
  try {
    change();
  } catch (...) {
    failed_ = status_of_current_exception();
    throw;
  }
}

DFLOW_INLINE void RecordWriter::write_buffer() {
  file_->append(buffer_);
  buffer_.clear();
}

DFLOW_INLINE void RecordWriter::write(std::string_view record) {
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

DFLOW_INLINE void RecordWriter::flush() {
  change([&] {
    write_buffer();
    if (deflating_ != nullptr) deflating_->flush();
  });
}

DFLOW_INLINE void RecordWriter::sync() {
  change([&] {
    write_buffer();
    file_->sync();
  });
}

DFLOW_INLINE void RecordWriter::close() {
  if (file_ == nullptr) return throw_if_error(failed_);
  change([&] {
    write_buffer();
    if (deflating_ != nullptr) deflating_->finish();
  });
  deflating_ = nullptr;
  file_.reset();
}

DFLOW_INLINE std::unique_ptr<ByteSource> open_record_source(FileSystem& files, const std::string& path,
                                                            RecordCompression compression, std::size_t buffer_bytes) {
  auto source = std::make_unique<FileSource>(files.open_for_reading(path), buffer_bytes);
  if (compression == RecordCompression::none) return source;
  return inflating_source(std::move(source), detail::zlib_format(compression));
}

DFLOW_INLINE RecordReader::RecordReader(FileSystem& files, std::string path, const RecordReaderOptions& options)
    : path_(std::move(path)),
      max_record_bytes_(options.max_record_bytes),
      source_(open_record_source(files, path_, options.compression, options.buffer_bytes)) {}

DFLOW_INLINE RecordReader::~RecordReader() = default;

DFLOW_INLINE bool RecordReader::next(std::string& record) {
  try {
    return read_record(record);
  } catch (const Error& error) {
    record.clear();
    throw_error(error.status().with_prefix(str_cat("record of '", path_, "' at offset ", offset_, ": ")));
  }
}

DFLOW_INLINE std::string RecordReader::read() {
  std::string record;
  if (!next(record)) {
    throw_error(out_of_range(str_cat("'", path_, "' has no more records: it ends at offset ", offset_)));
  }
  return record;
}

DFLOW_INLINE bool RecordReader::read_record(std::string& record) {
  record.clear();
  source_->seek(offset_);
  std::array<std::byte, detail::record_header_bytes> header;
  const std::size_t got = source_->read(header);
  if (got == 0) return false;
  if (got < header.size()) throw_error(data_loss("it is cut short in its header"));
  ByteReader in(header);
  const std::uint64_t length = in.u64();
  if (mask_crc32c(crc32c(std::span<const std::byte>(header).first(8))) != in.u32()) {
    throw_error(data_loss("the checksum of its length is wrong"));
  }
  constexpr std::uint64_t addressable = std::numeric_limits<std::uint64_t>::max() / 2;
  if (length > std::min(max_record_bytes_, addressable)) {
    throw_error(resource_exhausted(str_cat("it has ", length, " bytes, more than the limit of ", max_record_bytes_)));
  }
  fill_to(*source_, length, record);
  if (record.size() < length) throw_error(data_loss(str_cat("it has fewer than its ", length, " bytes")));
  std::array<std::byte, detail::record_footer_bytes> footer;
  if (source_->read(footer) < footer.size()) throw_error(data_loss("it is cut short"));
  if (mask_crc32c(crc32c(record)) != ByteReader(footer).u32()) throw_error(data_loss("the checksum is wrong"));
  offset_ += header.size() + length + footer.size();
  return true;
}

DFLOW_INLINE bool RecordReader::has_next_at_hand() const {
  const std::span<const std::byte> bytes = source_->at_hand();
  if (source_->position() != offset_ || bytes.size() < detail::record_header_bytes) return false;
  const std::size_t rest = bytes.size() - detail::record_header_bytes;
  return rest >= detail::record_footer_bytes && ByteReader(bytes).u64() <= rest - detail::record_footer_bytes;
}

}  // namespace dflow
