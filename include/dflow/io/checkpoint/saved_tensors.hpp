#pragma once

/// Public: the tensors in a checkpoint, dflow's or TensorFlow's.

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// What a checkpoint holds, in whichever of the forms that are read: dflow's own, or version 1 or 2 of TensorFlow's.
///
/// Thread safety: const functions may be called from any thread.
/// Errors: as CheckpointReader, TensorBundleReader and SavedSlicesReader.
class SavedTensors {
 public:
  struct Description {
    DType dtype = DType::invalid;  ///< invalid: a type that dflow has not, which `read` names
    Shape shape;
  };

  virtual ~SavedTensors();
  /// Sorted.
  virtual std::vector<std::string> names() const = 0;
  /// Nothing if there is no such tensor.
  virtual std::optional<Description> find(std::string_view name) const = 0;
  /// Blocks. A tensor of its own. Errors also: NotFound.
  virtual AnyTensor read(std::string_view name) const = 0;
  /// Blocks. Parts of a tensor, each of its own. Of dflow's own checkpoints only the slices that have elements of them
  /// are read, each once and one after the other; of TensorFlow's the whole is.
  /// Errors also: NotFound; InvalidArgument, naming the tensor, for slices of another shape.
  virtual std::vector<AnyTensor> read_slices(std::string_view name, std::span<const CheckpointSlice> slices) const = 0;
};

/// Whether there is a checkpoint of that prefix, of any form that `open_saved_tensors` reads. Blocks.
/// Errors: NotFound if shards of TensorFlow's version 1 are missing; those of the file system.
bool has_saved_tensors(FileSystem& files, const std::string& prefix);

/// Opens the checkpoint of that prefix, known by its files: PREFIX.index of dflow's or of TensorFlow's version 2, else
/// PREFIX or PREFIX-00000-of-0000N of TensorFlow's version 1. Blocks.
/// Errors: NotFound if there is none; InvalidArgument for a file of a checkpoint in place of its prefix; those of its
/// reader.
std::unique_ptr<SavedTensors> open_saved_tensors(FileSystem& files, const std::string& prefix);

}  // namespace dflow
