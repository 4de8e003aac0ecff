#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/core/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// A file of tensors' bytes, as an index names it.
struct CheckpointShard {
  std::uint32_t number = 0;  ///< of the checkpoint's shards
  std::uint64_t size = 0;    ///< bytes of the file
  std::uint32_t crc = 0;     ///< CRC-32C of all of them
  std::string file;          ///< without directory: it lies beside the index

  friend bool operator==(const CheckpointShard&, const CheckpointShard&) = default;
};

/// One tensor, or one slice of it: elements [begin, begin + extent) of the whole.
struct CheckpointEntry {
  std::string name;
  DType dtype = DType::invalid;
  Shape shape;                      ///< of the whole tensor
  std::vector<std::int64_t> begin;  ///< one per dimension
  Shape extent;                     ///< of the stored part
  std::uint32_t shard = 0;
  std::uint64_t offset = 0;  ///< in the shard's file
  std::uint64_t length = 0;  ///< bytes there
  std::uint32_t crc = 0;     ///< CRC-32C of the bytes

  bool is_whole() const noexcept { return extent == shape; }
  friend bool operator==(const CheckpointEntry&, const CheckpointEntry&) = default;
};

/// The places of all tensors in a checkpoint (all shards listed) or in one shard of it (that one listed):
/// docs/checkpoint-format.md.
///
/// Thread safety: a value type.
struct CheckpointIndex {
  static constexpr std::string_view magic = "DFCKPTIX";
  static constexpr std::uint32_t version = 1;
  static constexpr std::size_t header_bytes = 44;
  static constexpr std::uint32_t max_shards = 99999;
  static constexpr std::size_t alignment = 64;  ///< of tensors in a shard's file

  std::uint32_t num_shards = 1;  ///< of the whole checkpoint
  std::vector<CheckpointShard> shards;
  std::vector<CheckpointEntry> entries;  ///< sorted by name, then by `begin`

  /// Errors: InvalidArgument if `parse` would reject the index.
  std::string serialize() const;
  /// Checks everything that can be checked without the shards' files. Entries lie inside their shards, and lengths fit
  /// the shapes. Listed slices of a tensor do not overlap, and no shard's file lies in another directory.
  /// Errors: DataLoss for bytes that are not an index of this kind, or are damaged; Unimplemented for another version.
  static CheckpointIndex parse(std::span<const std::byte> bytes);

  /// The entries of a tensor; none if there is no tensor of that name.
  std::span<const CheckpointEntry> find(std::string_view name) const noexcept;

  friend bool operator==(const CheckpointIndex&, const CheckpointIndex&) = default;
};

/// "PREFIX.data-00000-of-00002", "PREFIX.index-00000-of-00002" and "PREFIX.index".
std::string checkpoint_data_path(std::string_view prefix, std::uint32_t shard, std::uint32_t num_shards);
std::string checkpoint_shard_index_path(std::string_view prefix, std::uint32_t shard, std::uint32_t num_shards);
std::string checkpoint_index_path(std::string_view prefix);

namespace detail {

/// The dimension along which slices of one tensor, in their order, lie side by side, if they make up the whole; -1 if
/// they do not.
int axis_of_slices(std::span<const CheckpointEntry> slices);

}  // namespace detail

}  // namespace dflow
