#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/own/checkpoint_index.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace dflow {

namespace detail {

[[noreturn]] void fail_index(std::string_view what, std::size_t offset) {
  throw_error(Status::data_loss(str_cat("damaged checkpoint index: ", what, ", at offset ", offset)));
}

/// The offsets in the file of the index's shards and entries; all 0 for an index that was not read.
struct CheckpointIndexPlaces {
  std::vector<std::size_t> shards, entries;
  std::size_t shard(std::size_t i) const noexcept { return i < shards.size() ? shards[i] : 0; }
  std::size_t entry(std::size_t i) const noexcept { return i < entries.size() ? entries[i] : 0; }
};

std::string shard_path(std::string_view prefix, std::string_view kind, std::uint32_t shard, std::uint32_t num_shards) {
  const auto five = [](std::uint32_t number) {
    const std::string digits = str_cat(number);
    return digits.size() < 5 ? std::string(5 - digits.size(), '0') + digits : digits;
  };
  return str_cat(prefix, ".", kind, "-", five(shard), "-of-", five(num_shards));
}

bool same_tensor(const CheckpointEntry& a, const CheckpointEntry& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

/// Whether `next` can follow `previous` as a slice of the same tensor: they are apart along one dimension, and alike in
/// all others.
bool is_next_slice(const CheckpointEntry& previous, const CheckpointEntry& next) {
  int different = 0;
  for (int i = 0; i < next.shape.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (previous.begin[at] == next.begin[at] && previous.extent[i] == next.extent[i]) continue;
    if (next.begin[at] < previous.begin[at] + previous.extent[i]) return false;
    ++different;
  }
  return different == 1;
}

void check_entry(const CheckpointIndex& index, const CheckpointEntry& entry, std::size_t place) {
  if (entry.name.empty()) fail_index("a tensor has no name", place);
  const auto bad = [&](std::string_view what) { fail_index(str_cat("tensor '", entry.name, "' ", what), place); };
  if (!is_element(entry.dtype)) bad("has no element type");
  for (int i = 0; i < entry.shape.rank(); ++i) {
    const std::int64_t begin = entry.begin[static_cast<std::size_t>(i)];
    if (begin < 0 || begin > entry.shape[i] || entry.extent[i] > entry.shape[i] - begin) bad("has a slice outside it");
  }
  const auto shard = std::lower_bound(index.shards.begin(), index.shards.end(), entry.shard,
                                      [](const CheckpointShard& a, std::uint32_t number) { return a.number < number; });
  if (shard == index.shards.end() || shard->number != entry.shard) bad("lies in a shard that is not listed");
  if (entry.offset % CheckpointIndex::alignment != 0) bad("is not aligned");
  if (entry.offset > shard->size || entry.length > shard->size - entry.offset) bad("lies outside of its shard");
  const auto elements = static_cast<std::uint64_t>(entry.extent.num_elements());
  const std::uint64_t least = is_plain(entry.dtype) ? size_of(entry.dtype) : sizeof(std::uint64_t);
  const std::optional<std::uint64_t> bytes = try_mul(elements, least);
  if (!bytes || (is_plain(entry.dtype) ? *bytes != entry.length : *bytes > entry.length)) {
    bad("is not as long as its shape says");
  }
}

/// Errors: DataLoss.
void check_index(const CheckpointIndex& index, const CheckpointIndexPlaces& places = {}) {
  const std::size_t at_number = CheckpointIndex::magic.size() + sizeof(std::uint32_t);
  if (index.num_shards == 0 || index.num_shards > CheckpointIndex::max_shards) {
    fail_index("number of shards", at_number);
  }
  if (index.shards.size() != 1 && index.shards.size() != index.num_shards) {
    fail_index("shards are missing", at_number + sizeof(std::uint32_t));
  }
  for (std::size_t i = 0; i < index.shards.size(); ++i) {
    const CheckpointShard& shard = index.shards[i];
    if (shard.number >= index.num_shards || (i > 0 && shard.number <= index.shards[i - 1].number)) {
      fail_index("shards are out of order", places.shard(i));
    }
    if (shard.file.empty() || shard.file == "." || shard.file == ".." ||
        shard.file.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      fail_index("a shard's file has no plain name", places.shard(i));
    }
  }
  // Tensors that shared bytes could take far more memory than the files that hold them.
  std::vector<std::uint64_t> unclaimed;
  unclaimed.reserve(index.shards.size());
  for (const CheckpointShard& shard : index.shards) unclaimed.push_back(shard.size);
  for (std::size_t i = 0; i < index.entries.size(); ++i) {
    const CheckpointEntry& entry = index.entries[i];
    check_entry(index, entry, places.entry(i));
    std::uint64_t& left = unclaimed[index.shards.size() == 1 ? 0 : entry.shard];
    if (entry.length > left) {
      fail_index(str_cat("tensor '", entry.name, "' shares bytes with others"), places.entry(i));
    }
    left -= entry.length;
    if (i == 0) continue;
    const CheckpointEntry& previous = index.entries[i - 1];
    if (entry.name < previous.name) fail_index("tensors are out of order", places.entry(i));
    if (entry.name == previous.name && (!same_tensor(previous, entry) || !is_next_slice(previous, entry))) {
      fail_index(str_cat("tensor '", entry.name, "' has slices that do not fit together"), places.entry(i));
    }
  }
}

Shape read_shape(ByteReader& in, int rank) {
  const std::size_t place = in.position();
  std::array<std::int64_t, max_rank> dims{};
  for (int i = 0; i < rank; ++i) dims[static_cast<std::size_t>(i)] = in.i64();
  try {
    return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
  } catch (const Error&) {
    fail_index("a shape has no size", place);
  }
}

int axis_of_slices(std::span<const CheckpointEntry> slices) {
  const Shape& whole = slices.front().shape;
  int axis = -1;
  for (int i = 0; i < whole.rank(); ++i) {
    if (slices.front().extent[i] == whole[i]) continue;
    if (axis >= 0) return -1;
    axis = i;
  }
  if (axis < 0) return -1;
  std::int64_t next = 0;
  for (const CheckpointEntry& slice : slices) {
    for (int i = 0; i < whole.rank(); ++i) {
      if (i != axis && slice.extent[i] != whole[i]) return -1;
    }
    if (slice.begin[static_cast<std::size_t>(axis)] != next) return -1;
    next += slice.extent[axis];
  }
  return next == whole[axis] ? axis : -1;
}

}  // namespace detail

std::string CheckpointIndex::serialize() const {
  try {
    detail::check_index(*this);
  } catch (const Error& error) {
    throw_error(Status::invalid_argument(std::string(error.status().message())));
  }
  std::string body;
  ByteWriter out(body);
  for (const CheckpointShard& shard : shards) {
    out.u32(shard.number);
    out.u64(shard.size);
    out.u32(shard.crc);
    out.string(shard.file);
  }
  for (const CheckpointEntry& entry : entries) {
    out.string(entry.name);
    out.u8(static_cast<std::uint8_t>(entry.dtype));
    out.u8(static_cast<std::uint8_t>(entry.shape.rank()));
    for (const std::int64_t dim : entry.shape.dims()) out.i64(dim);
    for (const std::int64_t begin : entry.begin) out.i64(begin);
    for (const std::int64_t dim : entry.extent.dims()) out.i64(dim);
    out.u32(entry.shard);
    out.u64(entry.offset);
    out.u64(entry.length);
    out.u32(entry.crc);
  }
  std::string file(magic);
  ByteWriter header(file);
  header.u32(version);
  header.u32(num_shards);
  header.u32(static_cast<std::uint32_t>(shards.size()));
  header.u32(0);
  header.u64(entries.size());
  header.u64(body.size());
  header.u32(crc32c(file));
  file += body;
  ByteWriter(file).u32(crc32c(body));
  return file;
}

namespace detail {

/// The first bytes of an index.
struct CheckpointIndexHeader {
  std::uint32_t num_shards = 0, listed = 0;
  std::uint64_t entries = 0;
  std::size_t at_listed = 0;  ///< where in the file that is
  std::span<const std::byte> body;
};

CheckpointIndexHeader parse_index_header(std::span<const std::byte> bytes) {
  constexpr std::size_t header_bytes = CheckpointIndex::header_bytes;
  constexpr std::string_view magic = CheckpointIndex::magic;
  if (bytes.size() < header_bytes + sizeof(std::uint32_t)) fail_index("it is cut short", bytes.size());
  ByteReader in(bytes.first(header_bytes));
  const auto found_magic = in.bytes(magic.size());
  if (!std::equal(found_magic.begin(), found_magic.end(), std::as_bytes(std::span(magic)).begin())) {
    fail_index("it does not begin as one", 0);
  }
  const std::uint32_t found_version = in.u32();
  CheckpointIndexHeader header;
  header.num_shards = in.u32();
  header.at_listed = in.position();
  header.listed = in.u32();
  const std::size_t at_reserved = in.position();
  const std::uint32_t reserved = in.u32();
  header.entries = in.u64();
  const std::size_t at_length = in.position();
  const std::uint64_t body_bytes = in.u64();
  if (in.u32() != crc32c(bytes.first(header_bytes - sizeof(std::uint32_t)))) fail_index("checksum of the header", 0);
  if (found_version != CheckpointIndex::version) {
    throw_error(Status::unimplemented(
        str_cat("checkpoint index of version ", found_version, "; known is ", CheckpointIndex::version)));
  }
  if (reserved != 0) fail_index("reserved bytes are not zero", at_reserved);
  if (body_bytes != bytes.size() - header_bytes - sizeof(std::uint32_t)) {
    fail_index(str_cat("its length is said to be ", body_bytes, " bytes"), at_length);
  }
  header.body = bytes.subspan(header_bytes, static_cast<std::size_t>(body_bytes));
  if (ByteReader(bytes.subspan(header_bytes + header.body.size())).u32() != crc32c(header.body)) {
    fail_index("its checksum is wrong", header_bytes);
  }
  constexpr std::size_t least_shard = 17, least_entry = 27;
  if (header.listed > header.body.size() / least_shard || header.entries > header.body.size() / least_entry) {
    fail_index("more is listed than there is room for", header.at_listed);
  }
  return header;
}

CheckpointShard parse_shard(ByteReader& in) {
  CheckpointShard shard;
  shard.number = in.u32();
  shard.size = in.u64();
  shard.crc = in.u32();
  shard.file = in.string();
  return shard;
}

CheckpointEntry parse_entry(ByteReader& in) {
  CheckpointEntry entry;
  entry.name = in.string();
  entry.dtype = dtype_from_number(in.u8()).value_or(DType::invalid);
  const std::size_t at_rank = in.position();
  const int rank = in.u8();
  if (rank > max_rank) fail_index(str_cat("a rank of ", rank), at_rank);
  entry.shape = read_shape(in, rank);
  for (int d = 0; d < rank; ++d) entry.begin.push_back(in.i64());
  entry.extent = read_shape(in, rank);
  entry.shard = in.u32();
  entry.offset = in.u64();
  entry.length = in.u64();
  entry.crc = in.u32();
  return entry;
}

}  // namespace detail

CheckpointIndex CheckpointIndex::parse(std::span<const std::byte> bytes) {
  const detail::CheckpointIndexHeader header = detail::parse_index_header(bytes);
  ByteReader in(bytes.first(header_bytes + header.body.size()));  // so that positions are the file's
  in.skip(header_bytes);
  CheckpointIndex index;
  index.num_shards = header.num_shards;
  detail::CheckpointIndexPlaces places;
  index.shards.reserve(header.listed);
  for (std::uint32_t i = 0; i < header.listed; ++i) {
    places.shards.push_back(in.position());
    index.shards.push_back(detail::parse_shard(in));
  }
  index.entries.reserve(static_cast<std::size_t>(header.entries));
  for (std::uint64_t i = 0; i < header.entries; ++i) {
    places.entries.push_back(in.position());
    index.entries.push_back(detail::parse_entry(in));
  }
  in.expect_end();
  detail::check_index(index, places);
  return index;
}

std::span<const CheckpointEntry> CheckpointIndex::find(std::string_view name) const noexcept {
  const auto first = std::lower_bound(entries.begin(), entries.end(), name,
                                      [](const CheckpointEntry& entry, std::string_view n) { return entry.name < n; });
  auto last = first;
  while (last != entries.end() && last->name == name) ++last;
  return {first, last};
}

std::string checkpoint_data_path(std::string_view prefix, std::uint32_t shard, std::uint32_t num_shards) {
  return detail::shard_path(prefix, "data", shard, num_shards);
}

std::string checkpoint_shard_index_path(std::string_view prefix, std::uint32_t shard, std::uint32_t num_shards) {
  return detail::shard_path(prefix, "index", shard, num_shards);
}

std::string checkpoint_index_path(std::string_view prefix) { return str_cat(prefix, ".index"); }

}  // namespace dflow
