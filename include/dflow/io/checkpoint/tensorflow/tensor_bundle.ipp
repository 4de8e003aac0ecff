#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/own/checkpoint_index.hpp>
#include <dflow/io/checkpoint/parts/missing_tensor.hpp>
#include <dflow/io/checkpoint/parts/sorted_table.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>
#include <dflow/io/proto/proto_writer.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace dflow {

static_assert(std::endian::native == std::endian::little, "tensors are saved as they lie in memory");

namespace detail {

/// The version of the format that is written, and the newest that is read.
inline constexpr std::int32_t tensor_bundle_version = 1;

/// The number of shards. Errors: DataLoss, Unimplemented.
std::uint32_t parse_bundle_header(std::string_view bytes) {
  std::int64_t num_shards = 0;
  std::uint64_t endianness = 0;
  std::int32_t min_consumer = 0;
  ProtoReader in(bytes);
  while (in.next()) {
    if (in.number() == 1) num_shards = in.int32();
    if (in.number() == 2) endianness = in.uint64();
    if (in.number() != 3) continue;
    ProtoReader version = in.message();
    while (version.next()) {
      if (version.number() == 2) min_consumer = version.int32();
    }
  }
  if (endianness != 0) throw_error(Status::unimplemented("it was written on a big-endian machine"));
  if (min_consumer > tensor_bundle_version) {
    throw_error(Status::unimplemented(str_cat("it is for readers of version ", min_consumer, " and later")));
  }
  if (num_shards < 1 || num_shards > CheckpointIndex::max_shards) {
    throw_error(Status::data_loss(str_cat("it has ", num_shards, " shards")));
  }
  return static_cast<std::uint32_t>(num_shards);
}

TensorBundleEntry parse_bundle_entry(std::string_view bytes) {
  TensorBundleEntry entry;
  std::int64_t shard = 0, offset = 0, size = 0;
  ProtoReader in(bytes);
  while (in.next()) {
    if (in.number() == 1) entry.dtype_number = in.uint32();
    if (in.number() == 2) parse_or_note(entry.problem, [&] { entry.shape = parse_tensor_shape(in.message()); });
    if (in.number() == 3) shard = in.int32();
    if (in.number() == 4) offset = in.int64();
    if (in.number() == 5) size = in.int64();
    if (in.number() == 6) entry.crc = unmask_crc32c(in.fixed32());
    if (in.number() == 7) {
      parse_or_note(entry.problem, [&] { entry.slices.push_back(TensorSlice::parse(in.message())); });
    }
  }
  entry.dtype = dtype_or_note(entry.problem, entry.dtype_number);
  if (shard < 0 || offset < 0 || size < 0) throw_error(Status::data_loss("it lies nowhere"));
  entry.shard = static_cast<std::uint32_t>(shard);
  entry.offset = static_cast<std::uint64_t>(offset);
  entry.size = static_cast<std::uint64_t>(size);
  return entry;
}

/// Checks an entry that has bytes. Errors: DataLoss.
void check_bundle_entry(const TensorBundleEntry& entry, std::span<const std::uint64_t> shard_sizes) {
  const std::uint64_t whole = shard_sizes[entry.shard];
  if (entry.offset > whole || entry.size > whole - entry.offset)
    throw_error(Status::data_loss("it lies outside of its shard"));
  const auto elements = static_cast<std::uint64_t>(entry.shape.num_elements());
  if (entry.dtype == DType::string) {
    constexpr std::uint64_t checksum = 4;
    if (entry.size < checksum || entry.size - checksum < elements) throw_error(Status::data_loss("it is too short"));
  } else if (entry.dtype != DType::invalid) {
    if (try_mul(elements, std::uint64_t{size_of(entry.dtype)}) != entry.size) {
      throw_error(Status::data_loss("it is not as long as its shape says"));
    }
  }
}

}  // namespace detail

TensorBundleReader::TensorBundleReader(FileSystem& files, const std::string& prefix) : prefix_(prefix) {
  const std::string path = checkpoint_index_path(prefix);
  const SortedTableReader table(files, path);
  bool is_first = true;
  table.for_each([&](std::string_view key, std::string_view value) {
    try {
      if (is_first) {
        if (!key.empty()) throw_error(Status::data_loss("it has no header"));
        num_shards_ = detail::parse_bundle_header(value);
      } else {
        TensorBundleEntry entry = detail::parse_bundle_entry(value);
        entry.listed_at = table.offset_of(key);
        if (entry.slices.empty() && entry.shard >= num_shards_)
          throw_error(Status::data_loss("it lies in a shard that there is not"));
        (key.starts_with('\0') ? slices_ : entries_).emplace(key, std::move(entry));
      }
    } catch (const Error& error) {
      throw_error(error.status().with_prefix(is_first ? str_cat("the header of checkpoint '", prefix_, "': ")
                                                      : str_cat("the entry of tensor '", key, "': ")));
    }
    is_first = false;
  });
  if (is_first) throw_error(Status::data_loss(str_cat("'", path, "': a checkpoint without a header, at offset 0")));
  for (std::uint32_t shard = 0; shard < num_shards_; ++shard) {
    shards_.push_back(files.open_for_reading(checkpoint_data_path(prefix, shard, num_shards_)));
  }
  check_sizes();
}

void TensorBundleReader::check_sizes() const {
  std::vector<std::uint64_t> sizes, unclaimed;
  for (const auto& shard : shards_) sizes.push_back(shard->size());
  unclaimed = sizes;
  for (const auto* entries : {&entries_, &slices_}) {
    for (const auto& [name, entry] : *entries) {
      if (!entry.slices.empty()) continue;
      try {
        detail::check_bundle_entry(entry, sizes);
        // Tensors that shared bytes could take far more memory than the files that hold them.
        if (entry.size > unclaimed[entry.shard]) throw_error(Status::data_loss("it shares bytes with others"));
      } catch (const Error& error) {
        const Status damage = with_kind_of_file(error.status(), *shards_[entry.shard]);
        throw_error(damage.with_prefix(str_cat("tensor '", name, "' of checkpoint '", prefix_, "': file '",
                                               data_path(entry), "' of ", sizes[entry.shard], " bytes, ", entry.size,
                                               " bytes at offset ", entry.offset, ": ")));
      }
      unclaimed[entry.shard] -= entry.size;
    }
  }
}

const TensorBundleEntry* TensorBundleReader::find(std::string_view name) const noexcept {
  const auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : &at->second;
}

AnyTensor TensorBundleReader::read(std::string_view name) const {
  const TensorBundleEntry* entry = find(name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    names.reserve(entries_.size());
    for (const auto& [each, unused] : entries_) names.push_back(each);
    detail::reject_missing_tensor(str_cat("checkpoint '", prefix_, "'"), name, names);
  }
  try {
    throw_if_error(entry->problem);
    if (entry->slices.empty()) return read_entry(*entry);
    std::vector<detail::TensorPart> parts;
    parts.reserve(entry->slices.size());
    std::set<std::string> seen;
    for (const TensorSlice& slice : entry->slices) {
      const auto part = slices_.find(slice.key(name));
      if (part == slices_.end()) fail_index("a slice of it is not there", entry->listed_at);
      if (part->second.dtype != entry->dtype || part->second.shape != slice.shape_in(entry->shape) ||
          !part->second.slices.empty()) {
        fail_index("a slice of it is another one", part->second.listed_at);
      }
      if (!seen.insert(part->first).second) fail_index("a slice of it stands twice", entry->listed_at);
      parts.push_back({slice.begin, read_entry(part->second)});
    }
    return detail::assembled(entry->dtype, entry->shape, parts);
  } catch (const Error& error) {
    throw_error(
        error.status().with_prefix(str_cat("tensor '", name, "' of checkpoint '", prefix_, "', listed in '",
                                           checkpoint_index_path(prefix_), "' at offset ", entry->listed_at, ": ")));
  }
}

void TensorBundleReader::fail_index(std::string_view what, std::uint64_t offset) const {
  throw_error(
      Status::data_loss(str_cat("file '", checkpoint_index_path(prefix_), "': ", what, ", at offset ", offset)));
}

std::string TensorBundleReader::data_path(const TensorBundleEntry& entry) const {
  return checkpoint_data_path(prefix_, entry.shard, num_shards_);
}

void TensorBundleReader::fail(const TensorBundleEntry& entry, std::string_view what, std::uint64_t at) const {
  throw_error(Status::data_loss(str_cat("file '", data_path(entry), "': ", what, ", at offset ", entry.offset + at)));
}

AnyTensor TensorBundleReader::read_entry(const TensorBundleEntry& entry) const {
  if (entry.dtype == DType::string) return read_strings(entry);
  AnyTensor tensor(entry.dtype, entry.shape);
  const std::span<std::byte> bytes(static_cast<std::byte*>(tensor.raw_data()), tensor.bytes());
  if (!bytes.empty()) shards_[entry.shard]->read_exactly_at(entry.offset, bytes);
  if (crc32c(bytes) != entry.crc) fail(entry, "its checksum is wrong", 0);
  if (entry.dtype == DType::boolean) {
    const std::size_t wrong = detail::first_no_truth_value(bytes);
    if (wrong < bytes.size()) fail(entry, "a truth value is neither 0 nor 1", wrong);
  }
  return tensor;
}

namespace detail {

/// Extends a checksum by a string's length: four bytes, or eight if it needs them.
std::uint32_t extend_by_length(std::uint32_t crc, std::uint64_t length) {
  const auto bytes = std::as_bytes(std::span(&length, 1));
  return crc32c_extend(crc, length <= std::numeric_limits<std::uint32_t>::max() ? bytes.first(4) : bytes);
}

}  // namespace detail

/// The lengths as varints, a masked checksum of them as fixed numbers, then the strings one behind the other. The
/// checksum of it all is of the lengths as fixed numbers, their checksum, and the strings.
AnyTensor TensorBundleReader::read_strings(const TensorBundleEntry& entry) const {
  std::string bytes(static_cast<std::size_t>(entry.size), '\0');
  shards_[entry.shard]->read_exactly_at(entry.offset, std::as_writable_bytes(std::span(bytes)));
  ByteReader in(bytes);
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(entry.shape.num_elements()));
  std::uint32_t crc = 0;
  std::uint64_t total = 0;
  for (std::uint64_t& length : lengths) {
    const std::size_t at = in.position();
    try {
      length = in.varint();
    } catch (const Error&) {
      fail(entry, "the length of a string is no number", at);
    }
    if (length > bytes.size() - total) fail(entry, "a string that is too long", at);
    total += length;
    crc = detail::extend_by_length(crc, length);
  }
  const std::size_t at_checksum = in.position();
  if (in.remaining() < sizeof(std::uint32_t)) fail(entry, "the lengths of its strings are too long", at_checksum);
  const std::uint32_t of_lengths = in.u32();
  if (unmask_crc32c(of_lengths) != crc) fail(entry, "the checksum of its strings' lengths is wrong", at_checksum);
  crc = crc32c_extend(crc, std::as_bytes(std::span(&of_lengths, 1)));
  crc = crc32c_extend(crc, std::as_bytes(std::span(bytes)).subspan(in.position()));
  if (crc != entry.crc) fail(entry, "its checksum is wrong", in.position());
  if (total != in.remaining()) fail(entry, "its strings are not as long as it is", in.position());
  AnyTensor tensor(entry.dtype, entry.shape);
  auto length = lengths.begin();
  for (std::string& text : tensor.span<std::string>()) {
    const std::span<const std::byte> content = in.bytes(static_cast<std::size_t>(*length++));
    text.assign(reinterpret_cast<const char*>(content.data()), content.size());
  }
  return tensor;
}

namespace detail {

/// Appends a tensor to the file of a shard and returns its place there.
TensorBundleEntry append_to_bundle(AtomicFile& data, const AnyTensor& tensor) {
  TensorBundleEntry entry;
  entry.dtype = tensor.dtype();
  entry.shape = tensor.shape();
  entry.offset = data.size();
  if (is_plain(tensor.dtype())) {
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(tensor.raw_data()), tensor.bytes());
    data.append(bytes);
    entry.crc = crc32c(bytes);
  } else {
    std::string lengths;
    ByteWriter out(lengths);
    for (const std::string& text : tensor.span<std::string>()) {
      out.varint(text.size());
      entry.crc = extend_by_length(entry.crc, text.size());
    }
    const std::uint32_t of_lengths = mask_crc32c(entry.crc);
    out.u32(of_lengths);
    data.append(lengths);
    entry.crc = crc32c_extend(entry.crc, std::as_bytes(std::span(&of_lengths, 1)));
    for (const std::string& text : tensor.span<std::string>()) {
      data.append(text);
      entry.crc = crc32c_extend(entry.crc, std::as_bytes(std::span(text)));
    }
  }
  entry.size = data.size() - entry.offset;
  return entry;
}

std::string bundle_entry_bytes(const TensorBundleEntry& entry) {
  std::string bytes;
  ProtoWriter out(bytes);
  out.uint64(1, static_cast<std::uint64_t>(entry.dtype));
  out.message(2, [&](ProtoWriter& shape) {
    for (const std::int64_t extent : entry.shape) {
      shape.message(2, [&](ProtoWriter& dim) { dim.int64(1, extent); });
    }
  });
  if (entry.offset != 0) out.uint64(4, entry.offset);
  if (entry.size != 0) out.uint64(5, entry.size);
  out.fixed32(6, mask_crc32c(entry.crc));
  return bytes;
}

std::string bundle_header_bytes() {
  std::string bytes;
  ProtoWriter out(bytes);
  out.uint64(1, 1);
  out.message(3, [](ProtoWriter& version) { version.uint64(1, tensor_bundle_version); });
  return bytes;
}

}  // namespace detail

void write_tensor_bundle(FileSystem& files, const std::string& prefix, std::span<const NamedTensor> tensors) {
  std::map<std::string_view, const AnyTensor*> sorted;
  for (const auto& [name, tensor] : tensors) {
    const auto bad = [&](std::string_view what) {
      throw_error(Status::invalid_argument(str_cat("cannot save tensor '", name, "': ", what)));
    };
    if (name.empty() || name.front() == '\0') bad("its name");
    if (!is_element(tensor.dtype())) bad(str_cat("its element type is ", dtype_name(tensor.dtype())));
    if (!sorted.emplace(name, &tensor).second) bad("there are two of that name");
  }
  AtomicFile data(files, checkpoint_data_path(prefix, 0, 1));
  std::string index;
  SortedTableWriter table(index);
  table.add("", detail::bundle_header_bytes());
  for (const auto& [name, tensor] : sorted) {
    table.add(name, detail::bundle_entry_bytes(detail::append_to_bundle(data, *tensor)));
  }
  table.finish();
  AtomicFile index_file(files, checkpoint_index_path(prefix));
  index_file.append(index);
  data.finish();  // with the index of the old data, its checksums are wrong
  index_file.finish();
}

}  // namespace dflow
