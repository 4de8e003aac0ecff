#pragma once

#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/parts/missing_tensor.hpp>
#include <dflow/io/checkpoint/tensorflow/saved_slices.hpp>

#include <algorithm>
#include <complex>
#include <optional>
#include <set>
#include <utility>

namespace dflow {

namespace detail {

/// The version of the format that is read.
inline constexpr std::int32_t saved_slices_version = 1;

/// The place of an entry, for errors. The entry counts its own offsets from its beginning: in a packed block they are
/// nowhere in the file.
std::string place_in_table(const SortedTableReader& table, std::string_view key) {
  return str_cat("file '", table.path(), "', in the block at offset ", table.offset_of(key), ": ");
}

[[noreturn]] void fail_values(std::size_t count, const Shape& shape) {
  throw_error(Status::data_loss(str_cat("it has ", count, " values for a shape of ", shape.to_string())));
}

/// Values that a message holds as `Stored`, as elements.
template <Element T, class Stored>
AnyTensor tensor_of_values(const std::vector<Stored>& values, const Shape& shape) {
  const auto is_count = [&](std::size_t each) {
    return values.size() % each == 0 && values.size() / each == static_cast<std::size_t>(shape.num_elements());
  };
  constexpr bool is_pair = is_complex_element<T>;
  if (!is_count(is_pair ? 2 : 1)) fail_values(values.size(), shape);
  AnyTensor tensor(dtype_of<T>, shape);
  const std::span<T> elements = tensor.span<T>();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if constexpr (is_pair) {
      elements[i] = T(values[2 * i], values[2 * i + 1]);
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      if (static_cast<std::uint32_t>(values[i]) > 0xffff)
        throw_error(Status::data_loss("a value that its type does not hold"));
      elements[i] = T::from_bits(static_cast<std::uint16_t>(values[i]));
    } else if constexpr (std::is_same_v<T, bool>) {
      elements[i] = values[i] != 0;
    } else {
      if constexpr (std::is_integral_v<T>) {
        if (static_cast<Stored>(static_cast<T>(values[i])) != values[i]) {
          throw_error(Status::data_loss("a value that its type does not hold"));
        }
      }
      elements[i] = static_cast<T>(values[i]);
    }
  }
  return tensor;
}

/// The field of a TensorProto that holds elements of a type, and how.
template <Element T>
struct TensorProtoField;
template <std::uint32_t n, class S>
struct TensorProtoValues {
  static constexpr std::uint32_t number = n;
  using Stored = S;
};
template <>
struct TensorProtoField<Half> : TensorProtoValues<13, std::int32_t> {};
template <>
struct TensorProtoField<BFloat16> : TensorProtoValues<13, std::int32_t> {};
template <>
struct TensorProtoField<float> : TensorProtoValues<5, float> {};
template <>
struct TensorProtoField<double> : TensorProtoValues<6, double> {};
template <>
struct TensorProtoField<std::int32_t> : TensorProtoValues<7, std::int32_t> {};
template <>
struct TensorProtoField<std::int16_t> : TensorProtoValues<7, std::int32_t> {};
template <>
struct TensorProtoField<std::int8_t> : TensorProtoValues<7, std::int32_t> {};
template <>
struct TensorProtoField<std::uint16_t> : TensorProtoValues<7, std::int32_t> {};
template <>
struct TensorProtoField<std::uint8_t> : TensorProtoValues<7, std::int32_t> {};
template <>
struct TensorProtoField<std::complex<float>> : TensorProtoValues<9, float> {};
template <>
struct TensorProtoField<std::int64_t> : TensorProtoValues<10, std::int64_t> {};
template <>
struct TensorProtoField<bool> : TensorProtoValues<11, std::int64_t> {};
template <>
struct TensorProtoField<std::complex<double>> : TensorProtoValues<12, double> {};
template <>
struct TensorProtoField<std::uint32_t> : TensorProtoValues<16, std::uint32_t> {};
template <>
struct TensorProtoField<std::uint64_t> : TensorProtoValues<17, std::uint64_t> {};

/// The elements in a TensorProto, in the field of their type, all of them written out.
template <Element T>
AnyTensor tensor_of_proto(ProtoReader message, const Shape& shape) {
  std::vector<typename TensorProtoField<T>::Stored> values;
  while (message.next()) {
    if (message.number() == TensorProtoField<T>::number) message.append_to(values);
  }
  return tensor_of_values<T>(values, shape);
}

AnyTensor strings_of_proto(ProtoReader message, const Shape& shape) {
  std::vector<std::string> texts;
  while (message.next()) {
    if (message.number() == 8) texts.emplace_back(message.bytes());
  }
  if (texts.size() != static_cast<std::size_t>(shape.num_elements())) fail_values(texts.size(), shape);
  AnyTensor tensor(DType::string, shape);
  std::move(texts.begin(), texts.end(), tensor.span<std::string>().begin());
  return tensor;
}

/// The tensor in a SavedTensorSlices message of one slice.
AnyTensor parse_saved_slice(std::string_view bytes, std::string_view name, DType dtype, const Shape& shape) {
  std::optional<AnyTensor> tensor;
  ProtoReader in(bytes);
  while (in.next()) {
    if (in.number() != 2) continue;
    ProtoReader saved = in.message();
    while (saved.next()) {
      if (saved.number() == 1 && saved.bytes() != name)
        throw_error(Status::data_loss("a slice of it is of another tensor"));
      if (saved.number() != 3) continue;
      const ProtoReader data = saved.message();
      tensor = dtype == DType::string
                   ? strings_of_proto(data, shape)
                   : visit_dtype<PlainTypes>(dtype, [&]<class T>() { return tensor_of_proto<T>(data, shape); });
    }
  }
  if (!tensor) fail_values(0, shape);
  return *std::move(tensor);
}

/// Errors: DataLoss, Unimplemented.
SavedSlicesEntry parse_saved_tensor(ProtoReader in, std::string& name) {
  SavedSlicesEntry entry;
  while (in.next()) {
    if (in.number() == 1) name = in.bytes();
    if (in.number() == 2) parse_or_note(entry.problem, [&] { entry.shape = parse_tensor_shape(in.message()); });
    if (in.number() == 3) entry.dtype_number = in.uint32();
    if (in.number() == 4) {
      parse_or_note(entry.problem, [&] { entry.parts.push_back({TensorSlice::parse(in.message()), 0}); });
    }
  }
  entry.dtype = dtype_or_note(entry.problem, entry.dtype_number);
  return entry;
}

/// "00002" of "00000-of-00002"; nothing for a suffix of another form.
std::string_view total_of_shard(std::string_view suffix) {
  constexpr std::string_view form = "00000-of-00000";
  if (suffix.size() != form.size()) return {};
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool is_digit = suffix[i] >= '0' && suffix[i] <= '9';
    if (form[i] == '0' ? !is_digit : suffix[i] != form[i]) return {};
  }
  return suffix.substr(9);
}

}  // namespace detail

std::vector<std::string> SavedSlicesReader::paths(FileSystem& files, const std::string& prefix) {
  if (files.exists(prefix) && !files.is_directory(prefix)) return {prefix};
  const std::string directory = parent_directory(prefix);
  if (!files.is_directory(directory)) return {};
  const std::string start = prefix.substr(prefix.find_last_of('/') + 1) + '-';
  std::vector<std::string> found;
  std::string total;
  for (const std::string& file : files.list_directory(directory)) {
    if (!file.starts_with(start)) continue;
    const std::string_view of_total = detail::total_of_shard(std::string_view(file).substr(start.size()));
    if (of_total.empty()) continue;
    if (!total.empty() && of_total != total) {
      throw_error(Status::data_loss(str_cat("the shards of checkpoint '", prefix, "' are of two numbers")));
    }
    total = of_total;
    found.push_back(join_path(directory, file));
  }
  if (!found.empty() && found.size() != std::stoul(total)) {
    throw_error(Status::not_found(str_cat("checkpoint '", prefix, "' has ", found.size(), " of ", total, " shards")));
  }
  return found;
}

SavedSlicesReader::SavedSlicesReader(FileSystem& files, const std::string& prefix)
    : prefix_(prefix), paths_(paths(files, prefix)) {
  if (paths_.empty()) throw_error(Status::not_found(str_cat("there is no checkpoint '", prefix, "'")));
  for (std::size_t file = 0; file < paths_.size(); ++file) {
    tables_.push_back(std::make_unique<SortedTableReader>(files, paths_[file]));
    try {
      const std::optional<std::string> meta = tables_.back()->find("");
      if (!meta) throw_error(Status::data_loss("no list of its tensors"));
      add_tensors(file, *meta);
    } catch (const Error& error) {
      throw_error(error.status().with_prefix(detail::place_in_table(*tables_.back(), "")));
    }
  }
}

void SavedSlicesReader::add_tensors(std::size_t file, std::string_view meta) {
  const auto add = [&](ProtoReader message) {
    std::string name;
    SavedSlicesEntry entry = detail::parse_saved_tensor(message, name);
    if (name.empty()) throw_error(Status::data_loss("a tensor without a name"));
    for (SavedSlicesEntry::Part& part : entry.parts) part.file = file;
    const auto [at, is_new] = entries_.try_emplace(name, entry);
    if (is_new) return;
    if (at->second.dtype_number != entry.dtype_number || at->second.shape != entry.shape) {
      throw_error(Status::data_loss(str_cat("tensor '", name, "' is another one in another file")));
    }
    at->second.parts.insert(at->second.parts.end(), entry.parts.begin(), entry.parts.end());
  };
  ProtoReader in(meta);
  while (in.next()) {
    if (in.number() != 1) continue;
    ProtoReader said = in.message();
    while (said.next()) {
      if (said.number() == 1) add(said.message());
      if (said.number() != 2) continue;
      ProtoReader version = said.message();
      while (version.next()) {
        if (version.number() != 2) continue;
        const std::int32_t min_consumer = version.int32();
        if (min_consumer > detail::saved_slices_version) {
          throw_error(Status::unimplemented(str_cat("it is for readers of version ", min_consumer, " and later")));
        }
      }
    }
  }
}

const SavedSlicesEntry* SavedSlicesReader::find(std::string_view name) const noexcept {
  const auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : &at->second;
}

AnyTensor SavedSlicesReader::read(std::string_view name) const {
  const SavedSlicesEntry* entry = find(name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    names.reserve(entries_.size());
    for (const auto& [each, unused] : entries_) names.push_back(each);
    detail::reject_missing_tensor(str_cat("checkpoint '", prefix_, "'"), name, names);
  }
  try {
    throw_if_error(entry->problem);
    std::vector<detail::TensorPart> parts;
    parts.reserve(entry->parts.size());
    std::set<std::string> seen;
    for (const auto& [slice, file] : entry->parts) {
      const std::string key = slice.key(name);
      if (!seen.insert(key).second) {
        throw_error(
            Status::data_loss(str_cat(detail::place_in_table(*tables_[file], ""), "a slice of it stands twice")));
      }
      const std::optional<std::string> value = tables_[file]->find(key);
      try {
        if (!value) throw_error(Status::data_loss("a slice of it is not there"));
        parts.push_back(
            {slice.begin, detail::parse_saved_slice(*value, name, entry->dtype, slice.shape_in(entry->shape))});
      } catch (const Error& error) {
        throw_error(error.status().with_prefix(detail::place_in_table(*tables_[file], key)));
      }
    }
    if (parts.size() == 1 && parts.front().tensor.shape() == entry->shape) return std::move(parts.front().tensor);
    return detail::assembled(entry->dtype, entry->shape, parts);
  } catch (const Error& error) {
    const std::size_t file = entry->parts.empty() ? 0 : entry->parts.front().file;
    throw_error(error.status().with_prefix(str_cat("tensor '", name, "' of checkpoint '", prefix_, "', listed in '",
                                                   paths_[file], "' at offset ", tables_[file]->offset_of(""), ": ")));
  }
}

}  // namespace dflow
