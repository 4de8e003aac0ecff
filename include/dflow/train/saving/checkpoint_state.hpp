#pragma once

#include <dflow/base/files/file_system.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::train {

/// What the file "checkpoint" in a directory says of the checkpoints there, as TensorFlow writes it. Paths are relative
/// to the directory, or absolute.
///
/// Thread safety: a value type.
struct CheckpointState {
  std::string model_checkpoint_path;                    ///< the latest
  std::vector<std::string> all_model_checkpoint_paths;  ///< those that may be removed later too, the oldest first
  /// When each of these was saved, and the last one that is kept for good: seconds since 1970.
  std::vector<double> all_model_checkpoint_timestamps;
  double last_preserved_timestamp = 0;

  /// A message in protobuf's text form.
  std::string to_text() const;
  /// Fields that it does not know are passed over. Errors: DataLoss, with the line.
  static CheckpointState parse(std::string_view text);

  friend bool operator==(const CheckpointState&, const CheckpointState&) = default;
};

/// "DIRECTORY/checkpoint"
std::string checkpoint_state_path(const std::string& directory);

/// Blocks. What the directory's file says; none if there is no such file. Errors: DataLoss, those of the file system.
std::optional<CheckpointState> read_checkpoint_state(FileSystem& files, const std::string& directory);

/// Blocks. The path of the newest checkpoint that the directory's state names and that is there, of any form that
/// `Saver::restore` reads: at the path that is named, else beside the state, where a directory was moved. None without
/// a state, or with one that names nothing. Errors: NotFound if nothing that the state names is there, so that training
/// does not begin anew by mistake; DataLoss for a state that nobody can read; those of the file system.
std::optional<std::string> latest_checkpoint(FileSystem& files, const std::string& directory);
/// The same among the machine's files.
std::optional<std::string> latest_checkpoint(const std::string& directory);

}  // namespace dflow::train
