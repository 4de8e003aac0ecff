#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/parts/sorted_table.hpp>
#include <dflow/io/compression/snappy.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace dflow {

namespace detail {

inline constexpr std::size_t table_trailer_bytes = 5;  ///< of a block: how it is packed, and its checksum
inline constexpr std::uint8_t table_plain = 0, table_snappy = 1;

/// The bytes of a block's entries, without the list of places at which keys stand in full.
std::string_view entries_of_block(std::string_view block) {
  if (block.size() < sizeof(std::uint32_t)) throw_error(Status::data_loss("a block without an end"));
  ByteReader end(block.substr(block.size() - sizeof(std::uint32_t)));
  const std::uint64_t restarts = end.u32();
  const std::uint64_t list = sizeof(std::uint32_t) * (restarts + 1);
  if (list > block.size()) throw_error(Status::data_loss("a block with too long an end"));
  return block.substr(0, block.size() - static_cast<std::size_t>(list));
}

void each_entry_of_block(std::string_view block, FunctionRef<void(std::string_view key, std::string_view value)> take) {
  ByteReader in(entries_of_block(block));
  std::string key;
  while (!in.at_end()) {
    const bool is_first = in.position() == 0;
    const std::uint64_t shared = in.varint(), more = in.varint(), value_size = in.varint();
    if (shared > key.size() || more > in.remaining() || value_size > in.remaining()) {
      throw_error(
          Status::data_loss(str_cat("an entry that reaches past its block, before byte ", in.position(), " of it")));
    }
    const std::span<const std::byte> rest = in.bytes(static_cast<std::size_t>(more));
    const std::string_view added(reinterpret_cast<const char*>(rest.data()), rest.size());
    if (!is_first && added <= std::string_view(key).substr(static_cast<std::size_t>(shared))) {
      throw_error(Status::data_loss(str_cat("keys out of order, before byte ", in.position(), " of their block")));
    }
    key.resize(static_cast<std::size_t>(shared));
    key += added;
    const std::span<const std::byte> value = in.bytes(static_cast<std::size_t>(value_size));
    take(key, {reinterpret_cast<const char*>(value.data()), value.size()});
  }
}

}  // namespace detail

bool SortedTableReader::is_table(FileSystem& files, const std::string& path) {
  const std::unique_ptr<RandomAccessFile> file = files.open_for_reading(path);
  std::uint64_t end = 0;
  if (file->size() < footer_bytes) return false;
  file->read_exactly_at(file->size() - sizeof(end), std::as_writable_bytes(std::span(&end, 1)));
  return end == magic;
}

SortedTableReader::SortedTableReader(FileSystem& files, std::string path)
    : path_(std::move(path)), file_(files.open_for_reading(path_)) {
  read_index();
}

void SortedTableReader::fail(std::string_view what, std::uint64_t offset) const {
  throw_error(Status::data_loss(str_cat("'", path_, "': ", what, ", at offset ", offset)));
}

void SortedTableReader::fail_without_end(std::string_view what, std::uint64_t offset) const {
  const Status damage = Status::data_loss(str_cat(what, ", at offset ", offset));
  throw_error(with_kind_of_file(damage, *file_).with_prefix(str_cat("'", path_, "': ")));
}

std::string SortedTableReader::read_block(std::uint64_t offset, std::uint64_t size) const {
  const auto bad = [](std::string_view what) { throw_error(Status::data_loss(std::string(what))); };
  const std::uint64_t end = file_->size() - footer_bytes;
  if (offset > end || size > end - offset || end - offset - size < detail::table_trailer_bytes) {
    bad("a block that reaches past the end");
  }
  std::string bytes(static_cast<std::size_t>(size + detail::table_trailer_bytes), '\0');
  file_->read_exactly_at(offset, std::as_writable_bytes(std::span(bytes)));
  const std::string_view checked = std::string_view(bytes).substr(0, static_cast<std::size_t>(size + 1));
  ByteReader trailer(std::string_view(bytes).substr(static_cast<std::size_t>(size)));
  const std::uint8_t packing = trailer.u8();
  if (unmask_crc32c(trailer.u32()) != crc32c(checked)) bad("a block whose checksum is wrong");
  if (packing != detail::table_plain && packing != detail::table_snappy) {
    bad(str_cat("a block that is packed in way ", packing));
  }
  bytes.resize(static_cast<std::size_t>(size));
  if (packing == detail::table_plain) return bytes;
  return unsnappy(std::as_bytes(std::span(bytes)), std::numeric_limits<std::size_t>::max());
}

void SortedTableReader::each_entry(const Block& block,
                                   FunctionRef<void(std::string_view, std::string_view)> take) const {
  try {
    detail::each_entry_of_block(read_block(block.offset, block.size), take);
  } catch (const Error& error) {
    if (error.code() != Code::data_loss) throw;
    fail(error.status().message(), block.offset);
  }
}

void SortedTableReader::read_index() {
  const std::uint64_t size = file_->size();
  if (size < footer_bytes) fail_without_end("a table that is shorter than its end", size);
  std::string bytes(footer_bytes, '\0');
  const std::uint64_t footer_offset = size - footer_bytes;
  file_->read_exactly_at(footer_offset, std::as_writable_bytes(std::span(bytes)));
  if (ByteReader(std::string_view(bytes).substr(footer_bytes - 8)).u64() != magic) {
    fail_without_end("no end of a table: it is no checkpoint, or cut short", footer_offset);
  }
  const auto handle = [](ByteReader& in) {
    const std::uint64_t offset = in.varint();
    return std::pair(offset, in.varint());
  };
  std::uint64_t index_offset = 0, end = 0;
  try {
    ByteReader footer(bytes);
    handle(footer);  // of what tables may say of themselves
    const auto [offset, index_size] = handle(footer);
    index_offset = offset;
    const std::string index = read_block(index_offset, index_size);
    detail::each_entry_of_block(index, [&](std::string_view key, std::string_view value) {
      ByteReader in(value);
      const auto [block_offset, block_size] = handle(in);
      in.expect_end();
      if (block_offset < end || block_size > size) throw_error(Status::data_loss("blocks out of order"));
      end = block_offset + block_size;
      blocks_.push_back({std::string(key), block_offset, block_size});
    });
  } catch (const Error& error) {
    if (error.code() != Code::data_loss) throw;
    fail(str_cat("the index of its blocks: ", error.status().message()), index_offset);
  }
}

void SortedTableReader::for_each(FunctionRef<void(std::string_view key, std::string_view value)> take) const {
  std::string_view before;  // the index key of the block before
  bool is_first = true;
  for (const Block& block : blocks_) {
    each_entry(block, [&](std::string_view key, std::string_view value) {
      if ((!is_first && key <= before) || key > block.last_key)
        throw_error(Status::data_loss("a key in the wrong block"));
      take(key, value);
    });
    before = block.last_key;
    is_first = false;
  }
}

auto SortedTableReader::block_of(std::string_view key) const noexcept -> std::vector<Block>::const_iterator {
  return std::lower_bound(blocks_.begin(), blocks_.end(), key,
                          [](const Block& candidate, std::string_view wanted) { return candidate.last_key < wanted; });
}

std::uint64_t SortedTableReader::offset_of(std::string_view key) const noexcept {
  const auto block = block_of(key);
  return block == blocks_.end() ? file_->size() : block->offset;
}

std::optional<std::string> SortedTableReader::find(std::string_view key) const {
  const auto block = block_of(key);
  std::optional<std::string> found;
  if (block == blocks_.end()) return found;
  each_entry(*block, [&](std::string_view candidate, std::string_view value) {
    if (candidate == key) found.emplace(value);
  });
  return found;
}

void SortedTableWriter::Entries::add(std::string_view key, std::string_view value, int restart_interval) {
  if (restarts.empty() || since_restart == restart_interval) {
    restarts.push_back(static_cast<std::uint32_t>(bytes.size()));
    since_restart = 0;
    last_key.clear();
  }
  ++since_restart;
  const auto shared = static_cast<std::size_t>(
      std::mismatch(key.begin(), key.end(), last_key.begin(), last_key.end()).first - key.begin());
  ByteWriter out(bytes);
  out.varint(shared);
  out.varint(key.size() - shared);
  out.varint(value.size());
  bytes += key.substr(shared);
  bytes += value;
  last_key = key;
}

SortedTableWriter::Handle SortedTableWriter::write_block(Entries& entries) {
  if (entries.restarts.empty()) entries.restarts.push_back(0);
  ByteWriter block(entries.bytes);
  for (const std::uint32_t restart : entries.restarts) block.u32(restart);
  block.u32(static_cast<std::uint32_t>(entries.restarts.size()));
  const Handle handle{out_.size(), entries.bytes.size()};
  block.u8(detail::table_plain);
  out_ += entries.bytes;
  ByteWriter(out_).u32(mask_crc32c(crc32c(entries.bytes)));
  return handle;
}

void SortedTableWriter::finish_block() {
  const Handle handle = write_block(entries_);
  std::string value;
  ByteWriter out(value);
  out.varint(handle.offset);
  out.varint(handle.size);
  constexpr int every = 1;
  index_.add(last_key_, value, every);
  entries_ = {};
}

void SortedTableWriter::add(std::string_view key, std::string_view value) {
  constexpr int restart_interval = 16;
  if (!is_first_ && key <= last_key_) throw_error(Status::invalid_argument("the keys of a table are not in order"));
  if (entries_.bytes.size() + key.size() + value.size() > std::numeric_limits<std::uint32_t>::max() / 2) {
    throw_error(Status::out_of_range("an entry of a table of more than 2^31 bytes"));
  }
  entries_.add(key, value, restart_interval);
  is_first_ = false;
  last_key_ = key;
  if (entries_.bytes.size() >= block_bytes_) finish_block();
}

void SortedTableWriter::finish() {
  if (!entries_.restarts.empty()) finish_block();
  Entries nothing;
  const Handle about = write_block(nothing), index = write_block(index_);
  std::string footer;
  ByteWriter out(footer);
  for (const std::uint64_t number : {about.offset, about.size, index.offset, index.size}) out.varint(number);
  footer.resize(SortedTableReader::footer_bytes - 8);
  out.u64(SortedTableReader::magic);
  out_ += footer;
}

}  // namespace dflow
