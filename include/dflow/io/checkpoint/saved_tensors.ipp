#pragma once

#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/parts/sorted_table.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/io/checkpoint/tensorflow/saved_slices.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dflow {

namespace detail {

class OwnSavedTensors final : public SavedTensors {
 public:
  OwnSavedTensors(FileSystem& files, const std::string& prefix) : reader_(files, prefix) {}
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const CheckpointEntry& entry : reader_.index().entries) {
      if (names.empty() || names.back() != entry.name) names.push_back(entry.name);
    }
    return names;
  }
  std::optional<Description> find(std::string_view name) const override {
    const auto entries = reader_.index().find(name);
    if (entries.empty()) return std::nullopt;
    return Description{entries.front().dtype, entries.front().shape};
  }
  AnyTensor read(std::string_view name) const override { return reader_.read(name); }
  std::vector<AnyTensor> read_slices(std::string_view name, std::span<const CheckpointSlice> slices) const override {
    return reader_.read_slices(name, slices);
  }

 private:
  CheckpointReader reader_;
};

/// Saved tensors from a reader that finds entries by name.
template <class Reader>
class TensorFlowSavedTensors final : public SavedTensors {
 public:
  TensorFlowSavedTensors(FileSystem& files, const std::string& prefix) : reader_(files, prefix) {}
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, entry] : reader_.entries()) names.push_back(name);
    return names;
  }
  std::optional<Description> find(std::string_view name) const override {
    const auto* entry = reader_.find(name);
    if (entry == nullptr) return std::nullopt;
    return Description{entry->dtype, entry->shape};
  }
  AnyTensor read(std::string_view name) const override { return reader_.read(name); }
  std::vector<AnyTensor> read_slices(std::string_view name, std::span<const CheckpointSlice> slices) const override {
    if (const auto* entry = reader_.find(name); entry != nullptr) require_slices_of(name, entry->shape, slices);
    const AnyTensor whole = reader_.read(name);
    std::vector<AnyTensor> parts;
    parts.reserve(slices.size());
    for (const CheckpointSlice& slice : slices) parts.push_back(slice.cut_from(whole));
    return parts;
  }

 private:
  Reader reader_;
};

/// Errors: InvalidArgument if the path is of a file beside PREFIX.index, or of the state of a directory.
void check_prefix(FileSystem& files, const std::string& path) {
  if (!files.exists(path) || files.is_directory(path)) return;
  const std::size_t name = path.find_last_of('/') + 1;
  if (path.compare(name, std::string::npos, "checkpoint") == 0 && !SortedTableReader::is_table(files, path)) {
    throw_error(Status::invalid_argument(
        str_cat("'", path, "' says which checkpoints its directory has: latest_checkpoint() reads it")));
  }
  for (const std::string_view suffix :
       {std::string_view(".index"), std::string_view(".meta"), std::string_view(".data-")}) {
    const std::size_t dot = path.rfind(suffix);
    if (dot == std::string::npos || dot <= name) continue;
    if (!suffix.ends_with('-') && dot + suffix.size() != path.size()) continue;
    const std::string prefix = path.substr(0, dot);
    if (!files.exists(checkpoint_index_path(prefix))) continue;
    throw_error(Status::invalid_argument(
        str_cat("'", path, "' is a file of the checkpoint '", prefix, "', and that is the path to give")));
  }
}

}  // namespace detail

SavedTensors::~SavedTensors() = default;

bool has_saved_tensors(FileSystem& files, const std::string& prefix) {
  return files.exists(checkpoint_index_path(prefix)) || !SavedSlicesReader::paths(files, prefix).empty();
}

std::unique_ptr<SavedTensors> open_saved_tensors(FileSystem& files, const std::string& prefix) {
  const std::string index = checkpoint_index_path(prefix);
  if (files.exists(index)) {
    if (!SortedTableReader::is_table(files, index)) return std::make_unique<detail::OwnSavedTensors>(files, prefix);
    return std::make_unique<detail::TensorFlowSavedTensors<TensorBundleReader>>(files, prefix);
  }
  detail::check_prefix(files, prefix);
  if (SavedSlicesReader::paths(files, prefix).empty()) {
    return std::make_unique<detail::OwnSavedTensors>(files, prefix);  // its error says what is missing
  }
  return std::make_unique<detail::TensorFlowSavedTensors<SavedSlicesReader>>(files, prefix);
}

}  // namespace dflow
