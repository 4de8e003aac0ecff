#pragma once

#include <dflow/base/files/scratch_file.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/core/resource.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace dflow {

class KeptMemory;

/// A tensor for later, in memory or in a file.
///
/// Thread safety: safe.
class KeptTensor final : public Resource, public std::enable_shared_from_this<KeptTensor> {
 public:
  ~KeptTensor() override;

  std::string debug_string() const override;
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  /// The tensor that was kept, or a copy of it from the file. Blocks to read the file. Errors: as FileSystem; DataLoss
  /// if the file is shorter than it was; the errors of the allocator.
  AnyTensor value(Allocator& allocator) const;

 private:
  friend class KeptMemory;
  KeptTensor(std::shared_ptr<KeptMemory> memory, const AnyTensor& tensor);
  KeptTensor(std::shared_ptr<const KeptTensor> viewed, const Shape& shape);

  const DType dtype_;
  const Shape shape_;
  const std::shared_ptr<const KeptTensor> viewed_;  ///< that has the elements, in another shape
  const std::shared_ptr<KeptMemory> memory_;
  AnyTensor tensor_;          ///< guarded by the memory's mutex; uninitialised: in the file
  std::uint64_t offset_ = 0;  ///< in the file
  bool is_counted_ = false;   ///< in memory, at `position_`
  std::list<KeptTensor*>::iterator position_;
};

/// Keeps tensors for later in `max_bytes` of memory. Above the limit, the tensors that have been there for longest go
/// to a ScratchFile. A tensor that others hold too counts, and stays until they let go of it: it would take the memory
/// all the same.
///
/// Thread safety: safe. A call may block while a tensor is written.
class KeptMemory : public std::enable_shared_from_this<KeptMemory> {
 public:
  /// Smaller tensors are not worth a place in a file.
  static constexpr std::size_t min_bytes = 512;

  KeptMemory(std::size_t max_bytes, std::shared_ptr<FileSystem> files, std::string directory = scratch_directory());
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  /// Null for a tensor that stays in memory and does not count: strings, handles and lists, tensors of less than
  /// `min_bytes`, lent memory, and a small part of a buffer. A tensor that is kept in memory already gives the same
  /// KeptTensor, or a view of it.
  /// Errors: the errors of the file system, for the file of others; this tensor is not kept then.
  std::shared_ptr<KeptTensor> keep(const AnyTensor& tensor);

  /// The bytes of tensors in memory.
  std::size_t bytes() const;
  /// The bytes that were written so far.
  std::uint64_t bytes_in_file() const;

 private:
  friend class KeptTensor;
  /// Moves tensors to the file; the caller frees their memory, `freed`, without the lock.
  void make_room(std::vector<AnyTensor>& freed);
  void forget(KeptTensor& kept) noexcept;

  const std::size_t max_bytes_;
  const std::shared_ptr<FileSystem> files_;
  const std::string directory_;
  mutable std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::list<KeptTensor*> in_memory_;  ///< the oldest first
  std::unordered_map<const void*, KeptTensor*> by_data_;
  std::unique_ptr<ScratchFile> file_;  ///< null until something goes there
};

}  // namespace dflow
