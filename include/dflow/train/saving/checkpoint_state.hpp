#pragma once

#include <dflow/base/files/file_system.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::train {

/// The list of checkpoints in a directory's file "checkpoint", as TensorFlow writes it. Paths are relative to the
/// directory, or absolute.
///
/// Thread safety: a value type.
struct CheckpointState {
  std::string model_checkpoint_path;                    ///< the latest
  std::vector<std::string> all_model_checkpoint_paths;  ///< all that later saves may remove, oldest first
  /// When each listed checkpoint was saved, and the last checkpoint that is kept for good: seconds since 1970.
  std::vector<double> all_model_checkpoint_timestamps;
  double last_preserved_timestamp = 0;
  /// Checkpoints that the saver removes after it has written the state. They stand in comments of the text, so that
  /// TensorFlow passes over them, and the next saver removes them if this one was killed first.
  std::vector<std::string> being_removed;

  /// A message in protobuf's text form.
  std::string to_text() const;
  /// Unknown fields are ignored. Errors: DataLoss, with the line.
  static CheckpointState parse(std::string_view text);

  friend bool operator==(const CheckpointState&, const CheckpointState&) = default;
};

/// "DIRECTORY/checkpoint"
std::string checkpoint_state_path(const std::string& directory);

/// Blocks. Reads the state file of a directory; none if there is no file. Errors: DataLoss, and errors of the file
/// system.
std::optional<CheckpointState> read_checkpoint_state(FileSystem& files, const std::string& directory);

/// Blocks. The path of the newest existing checkpoint that the directory's state names, in any form that
/// `Saver::restore` reads. Looks at the named path, then beside the state, because the directory may have been moved.
/// None without a state, or if the state names no checkpoint. Errors: NotFound if no named checkpoint exists, so that
/// training does not begin anew by mistake; DataLoss for an unreadable state; errors of the file system.
std::optional<std::string> latest_checkpoint(FileSystem& files, const std::string& directory);
/// The same among the machine's files.
std::optional<std::string> latest_checkpoint(const std::string& directory);

}  // namespace dflow::train
