#pragma once

#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>
#include <dflow/io/json/value.hpp>
#include <dflow/io/json/writer.hpp>
#include <dflow/models/model_folder.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dflow::detail {

inline constexpr std::string_view model_file = "model.json", graph_stem = "graph-", variables_stem = "variables-";
inline constexpr std::uint32_t model_version = 1;
inline constexpr std::uint64_t max_model_file_bytes = std::uint64_t{1} << 24;

/// The size and checksum of a file.
struct FileMark {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;

  static FileMark of(std::string_view content) { return {content.size(), crc32c(content)}; }
  friend bool operator==(const FileMark&, const FileMark&) = default;
};

/// The content of model.json but for the signatures and the metadata.
struct ModelFile {
  std::uint64_t save = 0;  ///< the number of the other files
  FileMark graph;
  std::optional<FileMark> variables;  ///< of the checkpoint's index; none without variables
};

std::string graph_path(const std::string& path, std::uint64_t save) {
  return join_path(path, str_cat(graph_stem, save));
}
std::string variables_path(const std::string& path, std::uint64_t save) {
  return join_path(path, str_cat(variables_stem, save));
}

// ---- model.json ----

void write_mark(json::Writer& out, std::string_view key, const FileMark& mark) {
  out.key(key);
  out.begin_object();
  out.key("bytes");
  out.number(mark.bytes);
  out.key("crc32c");
  out.number(mark.crc);
  out.end_object();
}

void write_texts(json::Writer& out, std::string_view key, const auto& texts) {
  out.key(key);
  out.begin_object();
  for (const auto& [name, text] : texts) {
    out.key(name);
    out.string(text);
  }
  out.end_object();
}

/// {"dflow_model":1,"crc32c":1234,"save":1,...}: the checksum is of all bytes behind it and its comma.
std::string to_model_file(const ModelFile& file, const ModelDef& def) {
  std::string rest;
  json::Writer out(rest);
  out.begin_object();
  out.key("save");
  out.number(file.save);
  write_mark(out, "graph", file.graph);
  if (file.variables) write_mark(out, "variables", *file.variables);
  out.key("signatures");
  out.begin_object();
  for (const ModelDef::Signature& signature : def.signatures) {
    out.key(signature.name);
    out.begin_object();
    write_texts(out, "inputs", signature.inputs);
    write_texts(out, "outputs", signature.outputs);
    out.end_object();
  }
  out.end_object();
  write_texts(out, "metadata", def.metadata);
  out.end_object();
  rest.erase(0, 1);  // its bracket
  return str_cat("{\"dflow_model\":", model_version, ",\"crc32c\":", crc32c(rest), ",", rest);
}

/// Reads model.json. Errors: DataLoss, InvalidArgument.
class ModelFileReader {
 public:
  ModelFileReader(std::string_view text, ModelDef& def) : def_(def) {
    take("{\"dflow_model\":", text);
    const std::uint64_t version = take_number(text);
    if (version > model_version) {
      throw_error(Status::invalid_argument(
          str_cat("it has version ", version, ", and this dflow reads versions up to ", model_version)));
    }
    take(",\"crc32c\":", text);
    const std::uint64_t crc = take_number(text);
    take(",", text);
    if (crc != crc32c(text)) fail("its checksum differs");
    try {
      root_ = json::parse(str_cat("{", text), {.max_bytes = max_model_file_bytes});
    } catch (const Error& error) {
      fail(error.status().message());
    }
  }

  ModelFile read() {
    ModelFile file;
    file.save = number_of<std::uint64_t>(root_, "save");
    file.graph = mark_of(member(root_, "graph"));
    if (const json::Value* variables = root_.find("variables")) file.variables = mark_of(*variables);
    for (const auto& [name, signature] : members_of(member(root_, "signatures"))) {
      ModelDef::Signature& read = def_.signatures.emplace_back();
      read.name = name;
      for (const auto& [input, edge] : members_of(member(signature, "inputs"))) {
        read.inputs.emplace_back(input, text_of(edge));
      }
      for (const auto& [output, edge] : members_of(member(signature, "outputs"))) {
        read.outputs.emplace_back(output, text_of(edge));
      }
    }
    for (const auto& [name, text] : members_of(member(root_, "metadata"))) def_.metadata[name] = text_of(text);
    return file;
  }

 private:
  [[noreturn]] static void fail(std::string_view what) {
    throw_error(Status::data_loss(str_cat("it is damaged: ", what)));
  }
  static void take(std::string_view expected, std::string_view& text) {
    if (!text.starts_with(expected)) fail("it is no file of a model");
    text.remove_prefix(expected.size());
  }
  static std::uint64_t take_number(std::string_view& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) fail("a number is due");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
  }
  static const json::Value& member(const json::Value& of, std::string_view name) {
    const json::Value* found = of.find(name);
    if (found == nullptr) fail(str_cat("it has no \"", name, "\""));
    return *found;
  }
  static const json::Value::Object& members_of(const json::Value& value) {
    if (!value.is_object()) fail(str_cat("an object is due, not ", value.kind_name()));
    return value.members();
  }
  static const std::string& text_of(const json::Value& value) {
    if (!value.is_string()) fail(str_cat("a text is due, not ", value.kind_name()));
    return value.string();
  }
  template <class T>
  static T number_of(const json::Value& of, std::string_view name) {
    const std::optional<T> number = member(of, name).as_int<T>();
    if (!number) fail(str_cat("\"", name, "\" is no such number"));
    return *number;
  }
  static FileMark mark_of(const json::Value& value) {
    return {number_of<std::uint64_t>(value, "bytes"), number_of<std::uint32_t>(value, "crc32c")};
  }

  ModelDef& def_;
  json::Value root_;
};

// ---- the folder ----

/// The number of the save that wrote a file of the folder; nothing for a file of others, and model.json itself. A file
/// of a save is "graph-1", "variables-1.index" or "variables-1.data-...", or what a killed writer left of one.
std::optional<std::uint64_t> save_of_file(std::string_view name) {
  constexpr std::uint64_t most = 1'000'000'000'000'000'000;  // a folder never has more saves, and may have such a file
  for (const std::string_view stem : {graph_stem, variables_stem}) {
    if (!name.starts_with(stem)) continue;
    const std::string_view rest = name.substr(stem.size());
    std::uint64_t save = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), save);
    if (error != std::errc() || rest.starts_with('0') || save > most) continue;
    const std::string_view kind = rest.substr(static_cast<std::size_t>(end - rest.data()));
    const bool is_one = stem == graph_stem
                            ? kind.empty()
                            : kind == ".index" || kind.starts_with(".index-") || kind.starts_with(".data-");
    if (is_one || (kind.starts_with('.') && kind.ends_with(".tmp"))) return save;
  }
  return std::nullopt;
}

/// Removes the files of all saves but one, and the temporary files of killed writers.
void remove_other_saves(FileSystem& files, const std::string& path, std::uint64_t kept) {
  for (const std::string& name : files.list_directory(path)) {
    const std::optional<std::uint64_t> save = save_of_file(name);
    const bool is_rest = name.starts_with(str_cat(model_file, ".")) && name.ends_with(".tmp");
    if ((!save || save == kept) && !is_rest) continue;
    try {
      files.remove(join_path(path, name));
    } catch (const Error&) {  // a file that is left harms nobody, and the next save tries again
    }
  }
}

/// Removes the files of a save that failed, unless model.json names them: it may be in place although writing it ended
/// with an error.
void remove_failed_save(FileSystem& files, const std::string& path, std::uint64_t save,
                        std::string_view text) noexcept {
  try {
    const std::string model = join_path(path, model_file);
    if (!text.empty() && files.exists(model) && files.read_file(model) == text) return;
    for (const std::string& name : files.list_directory(path)) {
      if (save_of_file(name) == save) files.remove(join_path(path, name));
    }
  } catch (...) {  // the next save removes it
  }
}

FileMark write_variables(FileSystem& files, const std::string& prefix, std::span<const NamedTensor> values) {
  CheckpointShardWriter writer(files, prefix);
  for (const auto& [name, tensor] : values) writer.add(name, tensor);
  writer.finish();
  merge_checkpoint(files, std::span(&prefix, 1), prefix);
  return FileMark::of(files.read_file(checkpoint_index_path(prefix)));
}

void write_model(FileSystem& files, const std::string& path, const ModelDef& def) {
  ModelFile file;
  file.save = 1;
  static_cast<void>(to_model_file(file, def));  // its errors come before any file
  const std::string graph = to_binary(def.graph);
  if (graph.size() > FileSystem::default_max_bytes) {
    throw_error(Status::out_of_range(str_cat("model '", path, "': the graph takes ", graph.size(),
                                             " bytes with its constants, more than a file that is read back")));
  }
  files.create_directories(path);
  for (const std::string& name : files.list_directory(path)) {
    file.save = std::max(file.save, save_of_file(name).value_or(0) + 1);
  }
  std::string text;
  try {
    files.write_file_atomically(graph_path(path, file.save), graph);
    file.graph = FileMark::of(graph);
    if (!def.values.empty()) file.variables = write_variables(files, variables_path(path, file.save), def.values);
    text = to_model_file(file, def);
    files.write_file_atomically(join_path(path, model_file), text);
  } catch (...) {
    remove_failed_save(files, path, file.save, text);
    throw;
  }
  remove_other_saves(files, path, file.save);
}

/// Errors: DataLoss for content of another size or checksum than the model's file says.
std::string read_marked(FileSystem& files, const std::string& path, const FileMark& mark) {
  const std::uint64_t size = files.file_size(path);
  if (size != mark.bytes) {
    throw_error(Status::data_loss(str_cat("'", path, "' has ", size, " bytes, and was written with ", mark.bytes)));
  }
  std::string content = read_regular_file(files, path);
  if (FileMark::of(content) != mark) throw_error(Status::data_loss(str_cat("'", path, "' is damaged")));
  return content;
}

void read_values(FileSystem& files, const std::string& prefix, ModelDef& def) {
  const CheckpointReader values(files, prefix);
  for (const CheckpointEntry& entry : values.index().entries) {
    if (!def.values.empty() && def.values.back().name == entry.name) continue;  // a slice of the same tensor
    def.values.push_back({entry.name, values.read(entry.name)});
  }
}

/// Errors of `read` name the file.
template <class Read>
auto naming(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("'", path, "': ")));
  }
}

ModelDef read_model_files(FileSystem& files, const std::string& path, std::string_view text) {
  ModelDef def;
  const ModelFile file = naming(join_path(path, model_file), [&] { return ModelFileReader(text, def).read(); });
  const std::string graph = graph_path(path, file.save);
  const std::string content = read_marked(files, graph, file.graph);
  def.graph = naming(graph, [&] { return from_binary(content); });
  if (!file.variables) return def;
  const std::string prefix = variables_path(path, file.save);
  static_cast<void>(read_marked(files, checkpoint_index_path(prefix), *file.variables));
  naming(prefix, [&] { read_values(files, prefix, def); });
  return def;
}

ModelDef read_model(FileSystem& files, const std::string& path) {
  const std::string model = join_path(path, model_file);
  constexpr int most_attempts = 10;
  for (int attempt = 1;; ++attempt) {
    if (!files.exists(model)) {
      const bool is_file = files.exists(path) && !files.is_directory(path);
      throw_error(Status::not_found(str_cat(
          "there is no model '", path,
          "': ", is_file ? "it is a file, and a model is a folder" : str_cat("the folder has no ", model_file))));
    }
    const std::string text = read_regular_file(files, model, max_model_file_bytes);
    try {
      return read_model_files(files, path, text);
    } catch (const Error&) {
      // Another process may have replaced the model meanwhile.
      if (attempt == most_attempts || !files.exists(model)) throw;
      if (read_regular_file(files, model, max_model_file_bytes) == text) throw;
    }
  }
}

}  // namespace dflow::detail
