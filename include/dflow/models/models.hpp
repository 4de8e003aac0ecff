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
  /// The session of `Model::prepare`. Its ops are those that the file may hold: with a short list, a program links only
  /// these.
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

/// Writes what the signatures reach, with the session's values: one folder, whole or not at all. A model that is there
/// is replaced, and stays if anything fails, or the process is killed. Blocks. The folder holds no place in the program
/// and no device. One process at a time may write to a folder.
///
/// ```cpp
/// df::models::save("models/digits", session, {.signatures = {{"serving_default", {{"image", x}}, {{"logits", y}}}}});
/// ```
/// Errors: as the constructor of Model and `FileSystem`; InvalidArgument for names and metadata that are not UTF-8;
/// OutOfRange for a graph whose constants are larger than a file that could be read again.
void save(const std::string& path, Session& session, const SaveOptions& options);
void save(const std::string& path, const Model& model, std::shared_ptr<FileSystem> files = nullptr);

/// The model with constants in place of its variables, for programs without the ops of variables. Lookup tables stay,
/// with the operations that fill them.
///
/// Errors: InvalidArgument that names the node for a variable that a signature does not only read.
Model freeze(const Model& model);

/// The model with only these signatures, and what they reach. Errors: NotFound for a name that is no signature;
/// InvalidArgument for none.
Model prune(const Model& model, std::span<const std::string> signatures);
Model prune(const Model& model, std::initializer_list<std::string> signatures);

}  // namespace dflow::models
