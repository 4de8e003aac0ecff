#pragma once

#include <dflow/base/files/file_systems.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/models/model_def.hpp>
#include <dflow/models/model_folder.hpp>
#include <dflow/models/models.hpp>

#include <utility>

namespace dflow::models {

namespace detail {

std::shared_ptr<FileSystem> files_or_machine(const std::shared_ptr<FileSystem>& files) {
  return files != nullptr ? files : machine_files();
}

}  // namespace detail

using dflow::detail::ModelDef;

Model load(const std::string& path, const LoadOptions& options) {
  ModelDef def = dflow::detail::read_model(
      *detail::files_or_machine(options.files != nullptr ? options.files : options.session.files), path);
  try {
    using dflow::detail::WrittenVariables;
    if (!options.trainable) dflow::detail::freeze_variables(def, WrittenVariables::keep);
    return ModelDef::build(std::move(def), options.session.ops.ops(),
                           std::make_shared<const SessionOptions>(options.session));
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("model '", path, "': ")));
  }
}

void save(const std::string& path, Session& session, const SaveOptions& options) {
  dflow::detail::write_model(*detail::files_or_machine(options.files), path,
                             ModelDef::of(session, options.signatures, options.metadata));
}

void save(const std::string& path, const Model& model, std::shared_ptr<FileSystem> files) {
  dflow::detail::write_model(*detail::files_or_machine(files), path, ModelDef::of(model, model.signatures()));
}

Model freeze(const Model& model) {
  ModelDef def = ModelDef::of(model, model.signatures());
  dflow::detail::freeze_variables(def, dflow::detail::WrittenVariables::refuse);
  return ModelDef::build_like(model, std::move(def));
}

Model prune(const Model& model, std::span<const std::string> signatures) {
  std::vector<Signature> kept;
  for (const std::string& name : signatures) kept.push_back(model.signature(name));
  return ModelDef::build_like(model, ModelDef::of(model, kept));
}

Model prune(const Model& model, std::initializer_list<std::string> signatures) {
  return prune(model, std::span(signatures.begin(), signatures.size()));
}

}  // namespace dflow::models
