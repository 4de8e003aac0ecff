#pragma once

/// Public: the tensors in a file of others: a checkpoint, dflow's or TensorFlow's, an npz or a safetensors file.

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/named_tensor.hpp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// The tensors in a file of any form that is read: a checkpoint, dflow's own or version 1 or 2 of TensorFlow's, an npz
/// or a safetensors file.
///
/// Thread safety: const functions may be called from any thread.
/// Errors: as CheckpointReader, TensorBundleReader, SavedSlicesReader, NpzReader and SafetensorsReader.
class SavedTensors {
 public:
  struct Description {
    DType dtype = DType::invalid;  ///< invalid: a tensor that cannot be read; `read` says why
    Shape shape;
  };

  virtual ~SavedTensors();
  /// Where they come from, for messages: the path.
  virtual std::string source() const = 0;
  /// Sorted.
  virtual std::vector<std::string> names() const = 0;
  /// Nothing if there is no such tensor.
  virtual std::optional<Description> find(std::string_view name) const = 0;
  /// Blocks. Returns a tensor with its own elements. Errors also: NotFound.
  virtual AnyTensor read(std::string_view name) const = 0;
  /// Blocks. Returns parts of a tensor, each with its own elements. For dflow's own checkpoints it reads only the
  /// slices that overlap the parts, each once and one after the other. For other files it reads the whole tensor.
  /// Errors also: NotFound; InvalidArgument, naming the tensor, for slices of another shape.
  virtual std::vector<AnyTensor> read_slices(std::string_view name, std::span<const CheckpointSlice> slices) const;
};

/// True if there is a checkpoint of that prefix, of any form that `open_saved_tensors` reads. Blocks.
/// Errors: NotFound if shards of TensorFlow's version 1 are missing; errors of the file system.
bool has_saved_tensors(FileSystem& files, const std::string& prefix);

/// Opens the checkpoint of that prefix. Its files show its form: PREFIX.index is of dflow's or of TensorFlow's version
/// 2. Otherwise PREFIX or PREFIX-00000-of-0000N is of TensorFlow's version 1, unless PREFIX is a file that ends in
/// ".npz" or ".safetensors". Blocks. `files` outlives the result.
/// Errors: NotFound if there is no checkpoint; InvalidArgument for a file of a checkpoint in place of its prefix;
/// errors of the reader of that form.
std::unique_ptr<SavedTensors> open_saved_tensors(FileSystem& files, const std::string& prefix);

/// Tensors in memory, for functions that take tensors of a file: those of several files, or of a format that dflow does
/// not read. Errors: InvalidArgument for two tensors of one name, and for uninitialised tensors.
std::unique_ptr<SavedTensors> held_tensors(std::span<const NamedTensor> tensors, std::string source = "memory");

}  // namespace dflow
