#pragma once

#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/parts/missing_tensor.hpp>
#include <dflow/io/checkpoint/parts/sorted_table.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/io/checkpoint/tensorflow/saved_slices.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/safetensors.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>

namespace dflow {

namespace detail {

class OwnSavedTensors final : public SavedTensors {
 public:
  OwnSavedTensors(FileSystem& files, const std::string& prefix) : prefix_(prefix), reader_(files, prefix) {}
  std::string source() const override { return prefix_; }
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
  std::string prefix_;
  CheckpointReader reader_;
};

/// Saved tensors from a reader that finds entries by name.
template <class Reader>
class TensorFlowSavedTensors final : public SavedTensors {
 public:
  TensorFlowSavedTensors(FileSystem& files, const std::string& prefix) : prefix_(prefix), reader_(files, prefix) {}
  std::string source() const override { return prefix_; }
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

 private:
  std::string prefix_;
  Reader reader_;
};

/// Tensors from a reader that lists its entries.
template <class Reader>
class ListedSavedTensors final : public SavedTensors {
 public:
  ListedSavedTensors(FileSystem& files, const std::string& path) : path_(path), reader_(files, path) {
    for (const auto& entry : reader_.entries()) {
      descriptions_.try_emplace(entry.name, Description{entry.dtype, entry.shape});
    }
  }
  std::string source() const override { return path_; }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    names.reserve(descriptions_.size());
    for (const auto& [name, description] : descriptions_) names.push_back(name);
    return names;
  }
  std::optional<Description> find(std::string_view name) const override {
    const auto found = descriptions_.find(name);
    return found == descriptions_.end() ? std::nullopt : std::optional(found->second);
  }
  AnyTensor read(std::string_view name) const override { return reader_.read(name); }

 private:
  std::string path_;
  Reader reader_;
  std::map<std::string, Description, std::less<>> descriptions_;
};

class HeldSavedTensors final : public SavedTensors {
 public:
  HeldSavedTensors(std::span<const NamedTensor> tensors, std::string source) : source_(std::move(source)) {
    for (const auto& [name, tensor] : tensors) {
      if (!tensor.is_initialized() || !tensors_.try_emplace(name, tensor).second) {
        throw_error(Status::invalid_argument(
            str_cat(source_, ": tensor '", name, tensor.is_initialized() ? "' is there twice" : "' has no elements")));
      }
    }
  }
  std::string source() const override { return source_; }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    names.reserve(tensors_.size());
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }
  std::optional<Description> find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return std::nullopt;
    return Description{found->second.dtype(), found->second.shape()};
  }
  AnyTensor read(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) reject_missing_tensor(source_, name, names());
    return found->second.deep_copy();
  }

 private:
  std::string source_;
  std::map<std::string, AnyTensor, std::less<>> tensors_;
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

std::vector<AnyTensor> SavedTensors::read_slices(std::string_view name, std::span<const CheckpointSlice> slices) const {
  if (const auto found = find(name)) detail::require_slices_of(name, found->shape, slices);
  const AnyTensor whole = read(name);
  std::vector<AnyTensor> parts;
  parts.reserve(slices.size());
  for (const CheckpointSlice& slice : slices) parts.push_back(slice.cut_from(whole));
  return parts;
}

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
  const bool is_npz = prefix.ends_with(".npz"), is_safetensors = prefix.ends_with(".safetensors");
  const bool is_file = (is_npz || is_safetensors) && files.exists(prefix) && !files.is_directory(prefix);
  if (is_file && !SortedTableReader::is_table(files, prefix)) {
    if (is_npz) return std::make_unique<detail::ListedSavedTensors<NpzReader>>(files, prefix);
    return std::make_unique<detail::ListedSavedTensors<SafetensorsReader>>(files, prefix);
  }
  return std::make_unique<detail::TensorFlowSavedTensors<SavedSlicesReader>>(files, prefix);
}

std::unique_ptr<SavedTensors> held_tensors(std::span<const NamedTensor> tensors, std::string source) {
  return std::make_unique<detail::HeldSavedTensors>(tensors, std::move(source));
}

}  // namespace dflow
