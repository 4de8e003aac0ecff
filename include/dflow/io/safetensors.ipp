#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/parts/missing_tensor.hpp>
#include <dflow/io/json/reader.hpp>
#include <dflow/io/json/writer.hpp>
#include <dflow/io/safetensors.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace dflow {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

namespace detail {

struct SafetensorsType {
  std::string_view name;
  int bits;
  DType dtype;
};
inline constexpr std::array<SafetensorsType, 22> safetensors_types{
    {{"BOOL", 8, DType::boolean},       {"U8", 8, DType::uint8},        {"I8", 8, DType::int8},
     {"U16", 16, DType::uint16},        {"I16", 16, DType::int16},      {"F16", 16, DType::float16},
     {"BF16", 16, DType::bfloat16},     {"U32", 32, DType::uint32},     {"I32", 32, DType::int32},
     {"F32", 32, DType::float32},       {"C64", 64, DType::complex64},  {"F64", 64, DType::float64},
     {"I64", 64, DType::int64},         {"U64", 64, DType::uint64},     {"F4", 4, DType::invalid},
     {"F6_E2M3", 6, DType::invalid},    {"F6_E3M2", 6, DType::invalid}, {"F8_E5M2", 8, DType::invalid},
     {"F8_E4M3", 8, DType::invalid},    {"F8_E8M0", 8, DType::invalid}, {"F8_E4M3FNUZ", 8, DType::invalid},
     {"F8_E5M2FNUZ", 8, DType::invalid}}};

/// The type of that name; null if the format does not have it.
const SafetensorsType* safetensors_type(std::string_view name) {
  const auto type = std::find_if(safetensors_types.begin(), safetensors_types.end(),
                                 [&](const SafetensorsType& candidate) { return candidate.name == name; });
  return type == safetensors_types.end() ? nullptr : &*type;
}

inline constexpr std::string_view safetensors_metadata = "__metadata__";

inline constexpr std::uint64_t safetensors_length_bytes = 8;  ///< of the header's length, before it

Status safetensors_damage(std::string_view what, std::uint64_t offset) {
  return Status::data_loss(str_cat("the safetensors file is damaged: ", what, ", at offset ", offset));
}
[[noreturn]] void fail_safetensors(std::string_view what, std::uint64_t offset) {
  throw_error(safetensors_damage(what, offset));
}

/// The content of the header; begin and end are counted from its end.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  SafetensorsMetadata metadata;
};

/// Gives a tensor its shape and type, and checks its size. Its description ends at `offset`.
void settle_safetensors_entry(SafetensorsEntry& entry, std::span<const std::int64_t> extents, std::uint64_t offset) {
  const auto bad = [&](std::string_view what) {
    fail_safetensors(str_cat("tensor '", entry.name, "' ", what), offset);
  };
  const auto cannot_read = [&](std::string_view why) {
    entry.dtype = DType::invalid;
    entry.problem = Status::unimplemented(str_cat("tensor '", entry.name, "' ", why));
  };
  const std::optional<std::int64_t> elements = try_product(extents);
  if (!elements) bad("has extents that multiply past 2^63");
  const SafetensorsType* const type = safetensors_type(entry.type);
  if (type != nullptr) entry.dtype = type->dtype;
  if (entry.dtype == DType::invalid) {
    cannot_read(str_cat("is of type ", std::string_view(entry.type).substr(0, 80), ", which is not read"));
  }
  if (extents.size() <= static_cast<std::size_t>(max_rank)) {
    entry.shape = Shape(extents);
  } else {
    cannot_read(str_cat("has ", extents.size(), " dimensions, more than the ", max_rank, " of a tensor"));
  }
  if (type == nullptr) return;  // a future type of unknown size
  const std::optional<std::uint64_t> bits =
      try_mul(static_cast<std::uint64_t>(*elements), static_cast<std::uint64_t>(type->bits));
  if (!bits || *bits % 8 != 0 || entry.begin > entry.end || entry.end - entry.begin != *bits / 8) {
    bad("is not as long as its shape says");
  }
}

/// Takes a header piece by piece as the reader comes upon it, so that only the entries are kept.
class SafetensorsEvents final : public json::Events {
 public:
  /// `at`: the number of bytes that the reader has taken.
  SafetensorsEvents(SafetensorsHeader& header, const std::size_t& at) : header_(header), at_(at) {}

  void null() override {
    const bool is_no_metadata = depth_ == 1 && name_ == safetensors_metadata;
    if (!is_unknown() && !is_no_metadata) unexpected();
  }
  void boolean(bool) override {
    if (!is_unknown()) unexpected();
  }
  void number(std::string_view spelling) override {
    if (is_unknown()) return;
    if (depth_ != 3) unexpected();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(spelling.data(), spelling.data() + spelling.size(), value);
    if (error != std::errc() || end != spelling.data() + spelling.size()) unexpected();
    if (field_ == shape) {
      if (value > std::uint64_t{0x7fffffffffffffff}) unexpected();
      if (extents_.size() > 64) fail(str_cat("tensor '", name_, "' has too many dimensions"));
      extents_.push_back(static_cast<std::int64_t>(value));
    } else {
      if (offsets_ == 2) unexpected();
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
    }
  }
  void string(std::string_view text) override {
    if (is_unknown()) return;
    if (depth_ != 2 || (!is_metadata_ && field_ != dtype)) unexpected();
    (is_metadata_ ? header_.metadata[key_] : entry_.type) = text;
  }
  void begin_object() override {
    if (is_unknown()) return void(++depth_);
    if (depth_++ > 1) unexpected();
    if (depth_ != 2) return;
    is_metadata_ = name_ == safetensors_metadata;
    fields_ = 0;
    offsets_ = 0;
    extents_.clear();
    entry_ = {};
  }
  void end_object() override {
    if (depth_-- != 2 || is_metadata_) return;
    if (fields_ != (dtype | shape | data_offsets) || offsets_ != 2) {
      fail(str_cat("tensor '", name_, "' is not described in full"));
    }
    entry_.name = name_;
    settle_safetensors_entry(entry_, extents_, offset());
    header_.entries.push_back(std::move(entry_));
  }
  void begin_array() override {
    const bool is_list = depth_ == 2 && !is_metadata_ && field_ != dtype;
    if (!is_unknown() && !is_list) unexpected();
    ++depth_;
  }
  void end_array() override { --depth_; }
  void key(std::string_view text) override {
    if (depth_ > 2) return;  // of a member that is not known
    if (depth_ == 1) return void(name_ = text);
    key_ = text;
    if (is_metadata_) return;
    field_ = key_ == "dtype" ? dtype : key_ == "shape" ? shape : key_ == "data_offsets" ? data_offsets : unknown;
    fields_ |= field_;
  }

 private:
  enum Field : unsigned { unknown = 0, dtype = 1, shape = 2, data_offsets = 4 };

  /// In a member of a tensor's description that the format does not have, which is passed over.
  bool is_unknown() const noexcept { return depth_ >= 2 && !is_metadata_ && field_ == unknown; }
  /// The position in the file after the last byte that the reader has seen.
  std::uint64_t offset() const noexcept { return safetensors_length_bytes + at_; }
  [[noreturn]] void fail(std::string_view what) const { fail_safetensors(what, offset()); }
  [[noreturn]] void unexpected() const {
    fail(depth_ == 0 ? "the header is no object"
                     : str_cat("the header, at '", std::string_view(name_).substr(0, 200), "'"));
  }

  SafetensorsHeader& header_;
  const std::size_t& at_;
  std::string name_, key_;
  SafetensorsEntry entry_;
  std::vector<std::int64_t> extents_;
  int depth_ = 0, offsets_ = 0;
  unsigned field_ = unknown, fields_ = 0;
  bool is_metadata_ = false;
};

SafetensorsHeader parse_safetensors_header(std::string_view text) {
  if (!text.starts_with('{')) fail_safetensors("the header is no object", safetensors_length_bytes);
  SafetensorsHeader header;
  std::size_t at = 0;
  SafetensorsEvents events(header, at);
  constexpr json::Limits limits{.max_depth = 128, .max_bytes = SafetensorsReader::max_header_bytes};
  if (const std::optional<json::Problem> problem = json::try_read(text, events, limits, at)) {
    fail_safetensors(str_cat("the header: ", problem->what), safetensors_length_bytes + problem->offset);
  }
  return header;
}

/// Errors: DataLoss unless the tensors lie side by side from 0 to `size`, which is counted from `start` in the file.
void require_side_by_side(const std::vector<SafetensorsEntry>& entries, std::uint64_t size, std::uint64_t start) {
  std::vector<const SafetensorsEntry*> by_offset;
  by_offset.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::uint64_t end = 0;
  for (const SafetensorsEntry* entry : by_offset) {
    if (entry->begin != end || entry->end < end) {
      fail_safetensors(
          str_cat("tensor '", entry->name, "' lies ", entry->begin, " bytes behind the header, and not ", end),
          start + end);
    }
    end = entry->end;
  }
  if (end != size) {
    fail_safetensors(str_cat("its tensors have ", end, " of ", size, " bytes"), start + std::min(end, size));
  }
}

}  // namespace detail

SafetensorsReader::SafetensorsReader(FileSystem& files, std::string path)
    : path_(std::move(path)), file_(files.open_for_reading(path_)) {
  try {
    const std::uint64_t size = file_->size();
    std::string length(sizeof(std::uint64_t), '\0');
    if (size < length.size()) {
      detail::fail_safetensors("it is shorter than the length of its header", size);
    }
    file_->read_exactly_at(0, std::as_writable_bytes(std::span(length)));
    const std::uint64_t header_size = ByteReader(length).u64();
    if (header_size > max_header_bytes) {
      const Status damage = detail::safetensors_damage(str_cat("a header of ", header_size, " bytes"), 0);
      throw_error(with_kind_of_file(damage, *file_));
    }
    const std::uint64_t start = length.size() + header_size;
    if (start > size) {
      detail::fail_safetensors(str_cat("a header of ", header_size, " bytes in a file of ", size), size);
    }
    std::string text(static_cast<std::size_t>(header_size), '\0');
    if (!text.empty()) file_->read_exactly_at(length.size(), std::as_writable_bytes(std::span(text)));
    detail::SafetensorsHeader header = detail::parse_safetensors_header(text);
    detail::require_side_by_side(header.entries, size - start, start);
    entries_ = std::move(header.entries);
    metadata_ = std::move(header.metadata);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      entries_[i].begin += start;
      entries_[i].end += start;
      entries_[i].problem = entries_[i].problem.with_prefix(str_cat(path_, ": "));
      by_name_.emplace(entries_[i].name, i);
    }
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat(path_, ": ")));
  }
}

const SafetensorsEntry* SafetensorsReader::find(std::string_view name) const noexcept {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &entries_[at->second];
}

AnyTensor SafetensorsReader::read(std::string_view name) const {
  if (file_ == nullptr) throw_error(Status::failed_precondition("the safetensors reader was moved from"));
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    names.reserve(entries_.size());
    for (const SafetensorsEntry& each : entries_) names.push_back(each.name);
    detail::reject_missing_tensor(path_, name, names);
  }
  return read(*entry);
}

AnyTensor SafetensorsReader::read(const SafetensorsEntry& entry) const {
  if (file_ == nullptr) throw_error(Status::failed_precondition("the safetensors reader was moved from"));
  throw_if_error(entry.problem);
  AnyTensor tensor(entry.dtype, entry.shape);
  const std::span<std::byte> bytes(static_cast<std::byte*>(tensor.raw_data()), tensor.bytes());
  if (!bytes.empty()) {
    try {
      file_->read_exactly_at(entry.begin, bytes);
    } catch (const Error& error) {
      throw Error(error.status().with_prefix(str_cat(path_, ": tensor '", entry.name, "': ")));
    }
  }
  if (entry.dtype == DType::boolean) {
    const std::size_t wrong = detail::first_no_truth_value(bytes);
    if (wrong < bytes.size()) {
      throw_error(Status::data_loss(str_cat(path_, ": a truth value of tensor '", entry.name,
                                            "' is neither 0 nor 1, at offset ", entry.begin + wrong)));
    }
  }
  return tensor;
}

std::vector<NamedTensor> read_safetensors(FileSystem& files, const std::string& path) {
  const SafetensorsReader reader(files, path);
  std::vector<NamedTensor> tensors;
  tensors.reserve(reader.entries().size());
  for (const SafetensorsEntry& entry : reader.entries()) {
    const bool is_left_out = !entry.problem.ok() && detail::safetensors_type(entry.type) != nullptr;
    if (!is_left_out) tensors.push_back({entry.name, reader.read(entry)});
  }
  return tensors;
}

AnyTensor read_safetensors(FileSystem& files, const std::string& path, std::string_view name) {
  return SafetensorsReader(files, path).read(name);
}

namespace detail {

/// The header's text for tensors that lie in this order, padded so that the first one is aligned to 8 bytes.
std::string safetensors_header(std::span<const NamedTensor* const> tensors, const SafetensorsMetadata& metadata) {
  std::string text;
  json::Writer out(text);
  out.begin_object();
  if (!metadata.empty()) {
    out.key(safetensors_metadata);
    out.begin_object();
    for (const auto& [key, value] : metadata) {
      out.key(key);
      out.string(value);
    }
    out.end_object();
  }
  std::uint64_t offset = 0;
  for (const NamedTensor* one : tensors) {
    const AnyTensor& tensor = one->tensor;
    const auto type = std::find_if(safetensors_types.begin(), safetensors_types.end(),
                                   [&](const SafetensorsType& candidate) { return candidate.dtype == tensor.dtype(); });
    if (type == safetensors_types.end() || !tensor.is_initialized()) {
      throw_error(Status::invalid_argument(
          str_cat("tensor '", one->name, "': a safetensors file has no element type ", dtype_name(tensor.dtype()))));
    }
    out.key(one->name);
    out.begin_object();
    out.key("dtype");
    out.string(type->name);
    out.key("shape");
    out.begin_array();
    for (int i = 0; i < tensor.rank(); ++i) out.number(tensor.dim(i));
    out.end_array();
    out.key("data_offsets");
    out.begin_array();
    out.number(offset);
    offset += tensor.bytes();
    out.number(offset);
    out.end_array();
    out.end_object();
  }
  out.end_object();
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > SafetensorsReader::max_header_bytes) {
    throw_error(Status::invalid_argument(str_cat("a safetensors file with a header of ", text.size(), " bytes")));
  }
  return text;
}

}  // namespace detail

void write_safetensors(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors,
                       const SafetensorsMetadata& metadata) {
  std::unordered_set<std::string_view> names{detail::safetensors_metadata};
  std::vector<const NamedTensor*> ordered;
  ordered.reserve(tensors.size());
  for (const NamedTensor& one : tensors) {
    if (!names.insert(one.name).second) {
      throw_error(Status::invalid_argument(str_cat("a safetensors file has no room for another '", one.name, "'")));
    }
    ordered.push_back(&one);
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return size_of(a->tensor.dtype()) > size_of(b->tensor.dtype());
  });
  const std::string header = detail::safetensors_header(ordered, metadata);
  std::string length;
  ByteWriter(length).u64(header.size());
  AtomicFile file(files, path);
  file.append(length);
  file.append(header);
  for (const NamedTensor* one : ordered) {
    file.append({static_cast<const std::byte*>(one->tensor.raw_data()), one->tensor.bytes()});
  }
  file.finish();
}

}  // namespace dflow
