// Reads bytes as the file model.json of a folder with a graph and variables, once as they are and once with a right
// checksum. Also reads them as a graph whose variables become constants, or get values.
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/models/model_folder.hpp>
#include <dflow/ops/ops.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

using dflow::detail::ModelDef;

/// A model with a variable, a table and a loop, and the folder that it is saved to.
struct Folder {
  Folder() {
    dflow::Graph graph;
    auto x = dflow::placeholder<float>(graph, {dflow::dynamic}, {.name = "x"});
    dflow::Variable<float> w(graph, 2.0f, {.name = "w"});
    dflow::MutableHashTable<std::int64_t, float> table(graph, {.name = "table"});
    auto found = table.find(dflow::constant(graph, std::int64_t{1}), 0.5f);
    auto y = dflow::while_loop([](auto v) { return v < 9.0f; }, [&](auto v) { return v * w; }, found);
    dflow::Session session(graph);
    session.run(dflow::initialize_variables(graph));
    def = ModelDef::of(session, std::vector<dflow::Signature>{{"f", {{"x", x}}, {{"y", x + y}}}}, {});
    dflow::detail::write_model(files, "/m", def);
  }

  dflow::MemoryFileSystem files;
  ModelDef def;
};

/// A model that can be built is written and read back.
void build(ModelDef def) {
  const auto options = std::make_shared<const dflow::SessionOptions>();
  try {
    const dflow::Model model = ModelDef::build(std::move(def), dflow::standard_op_table(), options);
    const ModelDef again = ModelDef::of(model, model.signatures());
    dflow::MemoryFileSystem files;
    dflow::detail::write_model(files, "/again", again);
    if (dflow::detail::read_model(files, "/again").graph != again.graph) std::abort();
  } catch (const dflow::Error&) {  // of a graph, or of names that are no UTF-8
  }
}

void build_both(const ModelDef& def) {
  build(def);
  ModelDef frozen = def;
  try {
    dflow::detail::freeze_variables(frozen, dflow::detail::WrittenVariables::keep);
  } catch (const dflow::Error&) {
    return;
  }
  build(std::move(frozen));
}

void read(Folder& folder, const std::string& text) {
  folder.files.write_file_atomically("/m/model.json", text);
  try {
    build_both(dflow::detail::read_model(folder.files, "/m"));
  } catch (const dflow::Error& error) {
    if (error.code() == dflow::Code::internal) std::abort();
  }
}

void read_graph(const Folder& folder, std::string_view bytes) {
  ModelDef def = folder.def;
  try {
    def.graph = dflow::from_binary(bytes);
  } catch (const dflow::Error&) {
    return;
  }
  if (def.graph.nodes.empty()) return;
  def.signatures = {{"f", {}, {{"last", def.graph.nodes.back().name}}}};
  build_both(def);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Folder folder;
  std::string bytes;
  if (size != 0) bytes.assign(reinterpret_cast<const char*>(data), size);
  read(folder, bytes);
  read(folder, "{\"dflow_model\":1,\"crc32c\":" + std::to_string(dflow::crc32c(bytes)) + "," + bytes);
  read_graph(folder, bytes);
  return 0;
}
