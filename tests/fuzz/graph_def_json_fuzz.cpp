// Reads text as a JSON graph and imports the graph.
#include <dflow/graph/graph_def_json.hpp>

#include "graph_def_fuzz.hpp"

#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text;
  if (size != 0) text.assign(reinterpret_cast<const char*>(data), size);
  dflow::GraphDef def;
  try {
    def = dflow::from_json(text);
  } catch (const dflow::Error& error) {
    dflow::fuzz::require(error.code() == dflow::Code::invalid_argument);
    return 0;
  }
  def.version = dflow::written_version(def);
  dflow::fuzz::require(dflow::from_json(dflow::to_json(def)) == def);
  dflow::fuzz::import(def);
  return 0;
}
