#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/models/model_def.hpp>

#include <string>

namespace dflow::detail {

/// Writes a model to a folder: "graph-N" and the checkpoint "variables-N" first, then "model.json", which names N and
/// replaces the one of the save before. So the folder has the old model or the new one at any moment. Files of other
/// saves are removed at the end. Blocks. Errors: as `models::save`.
void write_model(FileSystem& files, const std::string& path, const ModelDef& def);

/// Blocks. Errors: as `models::load`, for the files.
ModelDef read_model(FileSystem& files, const std::string& path);

}  // namespace dflow::detail
