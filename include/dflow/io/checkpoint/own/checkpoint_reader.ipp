#pragma once

#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/parts/missing_tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace dflow {

namespace detail {

/// `at`: how many bytes behind the beginning of the tensor.
[[noreturn]] void fail_tensor(const CheckpointEntry& entry, const CheckpointShard& shard, std::string_view what,
                              std::uint64_t at = 0) {
  throw_error(Status::data_loss(str_cat("tensor '", entry.name, "' in checkpoint file '", shard.file, "': ", what,
                                        ", at offset ", entry.offset + at)));
}

/// Elements of strings, each a length of 8 bytes and so many bytes. Errors: DataLoss.
void read_strings(std::span<const std::byte> bytes, std::span<std::string> into, const CheckpointEntry& entry,
                  const CheckpointShard& shard) {
  const std::size_t whole = bytes.size();
  for (std::string& text : into) {
    std::uint64_t size = 0;
    if (bytes.size() < sizeof(size)) fail_tensor(entry, shard, "a string is cut short", whole - bytes.size());
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes = bytes.subspan(sizeof(size));
    if (size > bytes.size()) fail_tensor(entry, shard, "a string is cut short", whole - bytes.size());
    text.assign(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size));
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
  if (!bytes.empty()) fail_tensor(entry, shard, "bytes follow its strings", whole - bytes.size());
}

/// Puts a slice into its place in the whole, along the one dimension that is smaller in the slice.
void put_slice(const CheckpointEntry& entry, const AnyTensor& part, int axis, AnyTensor& whole) {
  const std::int64_t outer = whole.shape().num_elements(0, axis);
  const std::int64_t inner = whole.shape().num_elements(axis + 1, whole.rank());
  const std::int64_t run = part.dim(axis) * inner, row = whole.dim(axis) * inner;
  const std::int64_t first = entry.begin[static_cast<std::size_t>(axis)] * inner;
  if (run == 0) return;
  for (std::int64_t i = 0; i < outer; ++i) {
    if (part.dtype() == DType::string) {
      const auto from =
          part.span<std::string>().subspan(static_cast<std::size_t>(i * run), static_cast<std::size_t>(run));
      std::copy(from.begin(), from.end(), whole.span<std::string>().begin() + i * row + first);
    } else {
      const std::size_t size = size_of(part.dtype());
      std::memcpy(static_cast<std::byte*>(whole.raw_data()) + static_cast<std::size_t>(i * row + first) * size,
                  static_cast<const std::byte*>(part.raw_data()) + static_cast<std::size_t>(i * run) * size,
                  static_cast<std::size_t>(run) * size);
    }
  }
}

}  // namespace detail

CheckpointIndex read_checkpoint_index(FileSystem& files, const std::string& path) {
  const std::string content = read_regular_file(files, path);
  try {
    return CheckpointIndex::parse(std::as_bytes(std::span(content)));
  } catch (const Error& error) {
    throw_error(with_kind_of_file(error.status(), content).with_prefix(str_cat("'", path, "': ")));
  }
}

CheckpointReader::CheckpointReader(FileSystem& files, const std::string& prefix)
    : prefix_(prefix), index_(read_checkpoint_index(files, checkpoint_index_path(prefix))) {
  if (index_.shards.size() != index_.num_shards) {
    throw_error(Status::data_loss(
        str_cat("checkpoint '", prefix, "' lists ", index_.shards.size(), " of ", index_.num_shards, " shards")));
  }
  for (const CheckpointShard& shard : index_.shards) {
    const std::string path = join_path(parent_directory(prefix), shard.file);
    shards_.push_back(files.open_for_reading(path));
    if (const std::uint64_t size = shards_.back()->size(); size != shard.size) {
      const Status damage = Status::data_loss(
          str_cat("it has ", size, " bytes instead of ", shard.size, ", at offset ", std::min(size, shard.size)));
      throw_error(with_kind_of_file(damage, *shards_.back()).with_prefix(str_cat("checkpoint file '", path, "': ")));
    }
  }
}

const CheckpointShard& CheckpointReader::shard_of(const CheckpointEntry& entry) const {
  return index_.shards[entry.shard];  // all are listed, in order
}

AnyTensor CheckpointReader::read_entry(const CheckpointEntry& entry) const {
  const CheckpointShard& shard = shard_of(entry);
  const RandomAccessFile& file = *shards_[entry.shard];
  if (entry.length > std::numeric_limits<std::size_t>::max()) detail::fail_tensor(entry, shard, "too long");
  const auto length = static_cast<std::size_t>(entry.length);
  AnyTensor tensor;
  std::string bytes;
  std::span<std::byte> into;
  if (is_plain(entry.dtype)) {
    tensor = AnyTensor(entry.dtype, entry.extent);
    into = {static_cast<std::byte*>(tensor.raw_data()), length};
  } else {
    bytes.resize(length);
    into = std::as_writable_bytes(std::span(bytes));
  }
  if (length != 0) file.read_exactly_at(entry.offset, into);
  if (crc32c(into) != entry.crc) detail::fail_tensor(entry, shard, "its checksum is wrong");
  if (entry.dtype == DType::string) {
    tensor = AnyTensor(entry.dtype, entry.extent);
    detail::read_strings(into, tensor.span<std::string>(), entry, shard);
  }
  if (entry.dtype == DType::boolean) {
    const std::size_t wrong = detail::first_no_truth_value(into);
    if (wrong < into.size()) detail::fail_tensor(entry, shard, "a truth value is neither 0 nor 1", wrong);
  }
  return tensor;
}

std::span<const CheckpointEntry> CheckpointReader::entries_of(std::string_view name) const {
  const std::span<const CheckpointEntry> entries = index_.find(name);
  if (entries.empty()) {
    std::vector<std::string> names;
    for (const CheckpointEntry& entry : index_.entries) {
      if (names.empty() || names.back() != entry.name) names.push_back(entry.name);
    }
    detail::reject_missing_tensor(str_cat("checkpoint '", prefix_, "'"), name, names);
  }
  const bool is_one = entries.size() == 1 && entries.front().is_whole();
  if (!is_one && detail::axis_of_slices(entries) < 0) {
    detail::fail_tensor(entries.front(), shard_of(entries.front()), "its slices do not make up the whole");
  }
  return entries;
}

AnyTensor CheckpointReader::read(std::string_view name) const {
  const std::span<const CheckpointEntry> entries = entries_of(name);
  if (entries.size() == 1) return read_entry(entries.front());
  const int axis = detail::axis_of_slices(entries);
  AnyTensor whole(entries.front().dtype, entries.front().shape);
  for (const CheckpointEntry& entry : entries) detail::put_slice(entry, read_entry(entry), axis, whole);
  return whole;
}

std::vector<AnyTensor> CheckpointReader::read_slices(std::string_view name,
                                                     std::span<const CheckpointSlice> slices) const {
  const std::span<const CheckpointEntry> entries = entries_of(name);
  detail::require_slices_of(name, entries.front().shape, slices);
  std::vector<AnyTensor> parts;
  parts.reserve(slices.size());
  for (const CheckpointSlice& slice : slices) parts.emplace_back(entries.front().dtype, slice.extent);
  for (const CheckpointEntry& entry : entries) {
    AnyTensor stored;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (!slices[i].meets(entry.begin, entry.extent)) continue;
      if (stored.dtype() == DType::invalid) stored = read_entry(entry);
      slices[i].copy_common(entry.begin, stored, parts[i]);
    }
  }
  return parts;
}

AnyTensor CheckpointReader::read(std::string_view name, DType dtype, const Shape& shape) const {
  const std::span<const CheckpointEntry> entries = index_.find(name);
  if (!entries.empty() && (entries.front().dtype != dtype || entries.front().shape != shape)) {
    throw_error(Status::invalid_argument(str_cat("tensor '", name, "' is ", dtype_name(entries.front().dtype),
                                                 entries.front().shape.to_string(), " in checkpoint '", prefix_,
                                                 "', not ", dtype_name(dtype), shape.to_string())));
  }
  return read(name);
}

void CheckpointReader::verify() const {
  std::vector<std::byte> chunk(std::size_t{1} << 16);
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const CheckpointShard& shard = index_.shards[i];
    std::uint32_t crc = 0;
    for (std::uint64_t at = 0; at < shard.size;) {
      const auto part =
          std::span(chunk).first(static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), shard.size - at)));
      shards_[i]->read_exactly_at(at, part);
      crc = crc32c_extend(crc, part);
      at += part.size();
    }
    if (crc != shard.crc) {
      throw_error(Status::data_loss(str_cat("checkpoint file '", shard.file, "': its checksum is wrong, of ",
                                            shard.size, " bytes, at offset 0")));
    }
  }
}

}  // namespace dflow
