#pragma once

#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

static_assert(std::endian::native == std::endian::little, "tensors are saved as they lie in memory");

namespace detail {

void remove_quietly(FileSystem& files, const std::string& path) noexcept {
  try {
    if (files.exists(path)) files.remove(path);
  } catch (...) {  // a file left behind is in nobody's way
  }
}

std::string file_name_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

void require_no_checkpoint(FileSystem& files, const std::string& prefix) {
  if (files.exists(checkpoint_index_path(prefix))) {
    throw_error(Status::already_exists(str_cat("there is a checkpoint '", prefix, "', which is not overwritten")));
  }
}

/// The data files of a checkpoint that is to be replaced; none if there is no checkpoint, or its index is unreadable.
std::vector<std::string> shard_files_of(FileSystem& files, const std::string& index_path) {
  std::vector<std::string> names;
  if (!files.exists(index_path)) return names;
  try {
    const CheckpointIndex index = read_checkpoint_index(files, index_path);
    names.reserve(index.shards.size());
    for (const CheckpointShard& shard : index.shards) names.push_back(shard.file);
  } catch (const Error&) {  // an unreadable file is replaced as well
  }
  return names;
}

void sort_entries(std::vector<CheckpointEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const CheckpointEntry& a, const CheckpointEntry& b) {
    return std::tie(a.name, a.begin) < std::tie(b.name, b.begin);
  });
}

/// Errors: InvalidArgument if the slices of a tensor, in order, do not make up the whole.
void require_whole_tensors(std::span<const CheckpointEntry> entries) {
  for (std::size_t first = 0, end = 0; first < entries.size(); first = end) {
    while (end < entries.size() && entries[end].name == entries[first].name) ++end;
    const bool is_one = end == first + 1 && entries[first].extent == entries[first].shape;
    if (is_one || axis_of_slices(entries.subspan(first, end - first)) >= 0) continue;
    throw_error(
        Status::invalid_argument(str_cat("the slices of tensor '", entries[first].name, "' are not all of it")));
  }
}

}  // namespace detail

CheckpointShardWriter::CheckpointShardWriter(FileSystem& files, std::string prefix, std::uint32_t shard,
                                             std::uint32_t num_shards)
    : files_(files), prefix_(std::move(prefix)) {
  if (detail::file_name_of(prefix_).empty()) throw_error(Status::invalid_argument("a checkpoint needs a name"));
  if (num_shards > CheckpointIndex::max_shards || shard >= num_shards) {
    throw_error(Status::invalid_argument(str_cat("there is no shard ", shard, " of ", num_shards)));
  }
  detail::require_no_checkpoint(files_, prefix_);
  data_path_ = checkpoint_data_path(prefix_, shard, num_shards);
  index_path_ = checkpoint_shard_index_path(prefix_, shard, num_shards);
  index_.num_shards = num_shards;
  index_.shards.push_back({shard, 0, 0, detail::file_name_of(data_path_)});
  files_.create_directories(parent_directory(prefix_));
  data_ = files_.begin_replacing(data_path_);
}

CheckpointShardWriter::~CheckpointShardWriter() {
  if (is_finished_) return;
  if (data_.closes_first) data_.file.reset();
  detail::remove_quietly(files_, data_.temporary);
}

void CheckpointShardWriter::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  CheckpointShard& shard = index_.shards.front();
  data_.file->append(bytes);
  shard.crc = crc32c_extend(shard.crc, bytes);
  shard.size += bytes.size();
}

void CheckpointShardWriter::add(std::string_view name, const AnyTensor& tensor) {
  const std::array<std::int64_t, max_rank> zeros{};
  add_slice(name, tensor, tensor.shape(),
            std::span<const std::int64_t>(zeros.data(), static_cast<std::size_t>(tensor.rank())));
}

void CheckpointShardWriter::add_slice(std::string_view name, const AnyTensor& part, const Shape& whole,
                                      std::span<const std::int64_t> begin) {
  const auto bad = [&](std::string_view what) {
    throw_error(Status::invalid_argument(str_cat("cannot save tensor '", name, "': ", what)));
  };
  if (name.empty()) bad("it has no name");
  if (!is_element(part.dtype())) bad(str_cat("its element type is ", dtype_name(part.dtype())));
  if (part.rank() != whole.rank() || begin.size() != static_cast<std::size_t>(whole.rank())) bad("ranks differ");
  for (int i = 0; i < whole.rank(); ++i) {
    const std::int64_t first = begin[static_cast<std::size_t>(i)];
    if (first < 0 || first > whole[i] || part.dim(i) > whole[i] - first) bad("the part reaches past the whole");
  }
  constexpr std::array<std::byte, CheckpointIndex::alignment> zeros{};
  const CheckpointShard& shard = index_.shards.front();
  const std::uint64_t over = shard.size % CheckpointIndex::alignment;
  if (over != 0) append(std::span(zeros).first(static_cast<std::size_t>(CheckpointIndex::alignment - over)));

  CheckpointEntry entry{std::string(name),
                        part.dtype(),
                        whole,
                        {begin.begin(), begin.end()},
                        part.shape(),
                        shard.number,
                        shard.size,
                        0,
                        0};
  const auto append_counted = [&](std::span<const std::byte> bytes) {
    append(bytes);
    entry.crc = crc32c_extend(entry.crc, bytes);
    entry.length += bytes.size();
  };
  if (is_plain(part.dtype())) {
    append_counted({static_cast<const std::byte*>(part.raw_data()), part.bytes()});
  } else {
    for (const std::string& text : part.span<std::string>()) {
      const std::uint64_t size = text.size();
      append_counted(std::as_bytes(std::span(&size, 1)));
      append_counted(std::as_bytes(std::span(text)));
    }
  }
  index_.entries.push_back(std::move(entry));
}

void CheckpointShardWriter::finish() {
  detail::sort_entries(index_.entries);
  const std::string index = index_.serialize();
  data_.file->sync();
  AtomicFile index_file(files_, index_path_);
  index_file.append(index);
  if (data_.closes_first) data_.file.reset();
  files_.rename(data_.temporary, data_.target);
  is_finished_ = true;
  data_.file.reset();
  index_file.finish();
}

void merge_checkpoint(FileSystem& files, std::span<const std::string> shard_prefixes, const std::string& prefix,
                      const MergeOptions& options) {
  if (!options.replace) detail::require_no_checkpoint(files, prefix);
  std::vector<std::string> prefixes(shard_prefixes.begin(), shard_prefixes.end());
  std::sort(prefixes.begin(), prefixes.end());
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  const std::string directory = parent_directory(prefix);

  CheckpointIndex merged;
  merged.num_shards = 0;
  std::vector<std::string> merged_paths;
  for (const std::string& from : prefixes) {
    if (parent_directory(from) != directory) {
      throw_error(
          Status::invalid_argument(str_cat("shards '", from, "' lie in another directory than '", prefix, "'")));
    }
    const std::string start = str_cat(detail::file_name_of(from), ".index-");
    for (const std::string& file : files.list_directory(directory)) {
      if (!file.starts_with(start) || file.ends_with(".tmp")) continue;
      const std::string path = join_path(directory, file);
      CheckpointIndex shard = read_checkpoint_index(files, path);
      if (shard.shards.size() != 1 ||
          path != join_path(directory, detail::file_name_of(checkpoint_shard_index_path(from, shard.shards[0].number,
                                                                                        shard.num_shards))) ||
          (merged.num_shards != 0 && merged.num_shards != shard.num_shards)) {
        throw_error(
            Status::invalid_argument(str_cat("shard '", path, "' does not belong to checkpoint '", prefix, "'")));
      }
      const std::uint64_t size = files.file_size(join_path(directory, shard.shards[0].file));
      if (size != shard.shards[0].size) {
        throw_error(Status::data_loss(
            str_cat("shard '", shard.shards[0].file, "' has ", size, " bytes instead of ", shard.shards[0].size)));
      }
      merged.num_shards = shard.num_shards;
      merged.shards.push_back(std::move(shard.shards[0]));
      std::move(shard.entries.begin(), shard.entries.end(), std::back_inserter(merged.entries));
      merged_paths.push_back(path);
    }
  }
  if (merged.shards.empty() || merged.shards.size() != merged.num_shards) {
    throw_error(Status::not_found(
        str_cat("checkpoint '", prefix, "' has ", merged.shards.size(), " of ", merged.num_shards, " shards")));
  }
  std::sort(merged.shards.begin(), merged.shards.end(),
            [](const CheckpointShard& a, const CheckpointShard& b) { return a.number < b.number; });
  detail::sort_entries(merged.entries);
  const std::string content = merged.serialize();
  detail::require_whole_tensors(merged.entries);
  const std::string path = checkpoint_index_path(prefix);
  const std::vector<std::string> replaced = detail::shard_files_of(files, path);
  AtomicFile file(files, path);
  file.append(content);
  file.finish();
  for (const std::string& shard_index : merged_paths) detail::remove_quietly(files, shard_index);
  for (const std::string& old : replaced) {
    const bool is_used = std::any_of(merged.shards.begin(), merged.shards.end(),
                                     [&](const CheckpointShard& shard) { return shard.file == old; });
    if (!is_used) detail::remove_quietly(files, join_path(directory, old));
  }
}

void remove_checkpoint(FileSystem& files, const std::string& prefix) {
  const std::string path = checkpoint_index_path(prefix), directory = parent_directory(prefix);
  if (!files.exists(path)) return;
  const CheckpointIndex index = read_checkpoint_index(files, path);
  files.remove(path);
  files.sync_directory(directory);
  for (const CheckpointShard& shard : index.shards) {
    const std::string file = join_path(directory, shard.file);
    if (files.exists(file)) files.remove(file);
  }
}

}  // namespace dflow
