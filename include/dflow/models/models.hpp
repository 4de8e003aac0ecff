#pragma once

/// Public: models in files: loading, saving, freezing and pruning.

#include <dflow/base/files/file_system.hpp>
#include <dflow/models/model.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow::models {

struct LoadOptions {
  /// True: variables stay variables, to be trained on. False: they become constants, but for those that a signature
  /// writes to.
  bool trainable = false;
  /// The session of `Model::prepare`. The file may hold the ops of this session. With a short list of ops, a program
  /// links no others.
  SessionOptions session = {};
  /// Null: those of `session`, else the machine's.
  std::shared_ptr<FileSystem> files = nullptr;
};

struct SaveOptions {
  std::vector<Signature> signatures = {};
  ModelMetadata metadata = {};
  std::shared_ptr<FileSystem> files = nullptr;  ///< null: the machine's
};

/// Reads a model from the folder that `save` has written. Blocks. If another process replaces the model meanwhile, it
/// is the old one or the new one.
///
/// ```cpp
/// df::Model model = df::models::load("models/digits", {.trainable = true});
/// auto logits = model.output<float>("logits");  // build a loss on it
/// ```
/// Errors: NotFound if there is no model; DataLoss for a damaged one; InvalidArgument for a model of a newer dflow, an
/// op that `options.session.ops` lacks, and a graph with another fault. Messages name the folder, file and node. Memory
/// is bounded by the sizes of the files. The ops of a graph may read and write files: load a model of others with a
/// list of ops that does not name them.
Model load(const std::string& path, const LoadOptions& options = {});

/// Writes the nodes that the signatures reach, with the session's values, to one folder. The folder is written whole or
/// not at all: an old model in it stays if anything fails, or the process is killed. The folder names no source lines
/// and no devices. Blocks. One process at a time may write to a folder.
///
/// ```cpp
/// df::models::save("models/digits", session, {.signatures = {{"serving_default", {{"image", x}}, {{"logits", y}}}}});
/// ```
/// Errors: the errors of Model's constructor and of the file system. InvalidArgument for names and metadata that are
/// not UTF-8. OutOfRange if the constants of the graph are larger than a file that `load` can read.
void save(const std::string& path, Session& session, const SaveOptions& options);
void save(const std::string& path, const Model& model, std::shared_ptr<FileSystem> files = nullptr);

/// The model with constants in place of its variables, for programs without the ops of variables. Lookup tables stay,
/// with the operations that fill them.
///
/// Errors: InvalidArgument that names the node for a variable that a signature does not only read.
Model freeze(const Model& model);

/// The model with these signatures alone, and the nodes that they reach. Errors: NotFound for a name that is no
/// signature; InvalidArgument for an empty list.
Model prune(const Model& model, std::span<const std::string> signatures);
Model prune(const Model& model, std::initializer_list<std::string> signatures);

}  // namespace dflow::models
