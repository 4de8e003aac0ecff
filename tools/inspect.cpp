// dflow-inspect: asks the tasks of a running cluster about their current work and their waits, or shows the content of
// a file.
#include <dflow/net/client/inspect.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/cluster_spec.hpp>

#include <CLI/CLI.hpp>
#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/models/models.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using dflow::printable;
using dflow::str_cat;

std::string line_of(const std::string& name, dflow::DType dtype, const auto& shape) {
  return str_cat("  ", printable(name), ": ", dflow::dtype_name(dtype), " ", shape.to_string(), "\n");
}

/// Its ops by name, each with the number of its nodes.
std::string text_of(const dflow::GraphDef& graph) {
  std::map<std::string, int> ops;
  for (const dflow::NodeDef& node : graph.nodes) ++ops[node.op];
  std::string text = str_cat("graph: ", graph.nodes.size(), " nodes\n");
  for (const auto& [op, count] : ops) text += str_cat("  ", printable(op), ": ", count, "\n");
  return text;
}

std::string text_of(const dflow::Model& model) {
  std::string text;
  for (const dflow::Signature& signature : model.signatures()) {
    for (const auto& [edges, what] : {std::pair(&signature.inputs, "takes"), std::pair(&signature.outputs, "gives")}) {
      text += str_cat("signature ", printable(signature.name), " ", what, "\n");
      for (const auto& [name, edge] : *edges) text += line_of(name, edge.dtype(), edge.shape());
    }
  }
  for (const auto& [key, value] : model.metadata())
    text += str_cat("metadata ", printable(key), ": ", printable(value), "\n");
  if (!model.values().empty()) text += "variables\n";
  for (const auto& [name, value] : model.values()) text += line_of(name, value.dtype(), value.shape());
  return text + text_of(dflow::to_graph_def(model.graph()));
}

std::string text_of(const dflow::SavedTensors& tensors) {
  std::string text = "tensors\n";
  for (const std::string& name : tensors.names()) {
    const dflow::SavedTensors::Description tensor = tensors.find(name).value();
    text += tensor.dtype == dflow::DType::invalid
                ? str_cat("  ", printable(name), ": of a type that dflow does not read\n")
                : line_of(name, tensor.dtype, tensor.shape);
  }
  return text;
}

/// The content of a saved model, a checkpoint, an npz or safetensors file, or a graph.
std::string text_of_file(const std::string& path) {
  dflow::PosixFileSystem files;
  if (files.exists(path) && files.is_directory(path)) return text_of(dflow::models::load(path, {.trainable = true}));
  const bool has_tensors = path.ends_with(".npz") || path.ends_with(".safetensors") || !files.exists(path);
  if (has_tensors) return text_of(*dflow::open_saved_tensors(files, path));
  return text_of(dflow::load_graph(files, path));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Shows the tasks of a running cluster: sessions, steps that run and their age, and who waits for which tensor "
      "from whom. Ends with 1 if a task did not answer. With FILE, it shows the content of a saved model, a checkpoint "
      "(its prefix), a graph, or an npz or safetensors file.");
  std::string file;
  app.add_option("FILE", file, "a file, a folder, or the prefix of a checkpoint");
  app.footer(
      "The cluster is named as its tasks are told: --dflow_cluster \"ps=host:port;worker=host:port,host:port\" or "
      "--cluster_file FILE, with --secret_file FILE; or by the environment.");
  bool as_json = false;
  double timeout = 5;
  std::vector<std::string> reset;
  std::string log;
  std::vector<std::uint64_t> steps;
  // ClusterSpec reads the flags that name the cluster. They stand here to make an unknown flag an error.
  std::string read_elsewhere;
  for (const char* flags :
       {"--dflow_cluster", "--cluster_file,--dflow_cluster_file", "--secret_file,--dflow_secret_file",
        "--job,--dflow_job", "--task,--dflow_task", "--bind,--dflow_bind"}) {
    app.add_option(flags, read_elsewhere)->group("");
  }
  bool is_insecure = false;
  app.add_flag("--insecure,--dflow_insecure", is_insecure)->group("");
  app.add_flag("--json", as_json, "print JSON");
  app.add_option("--timeout", timeout, "seconds after which a task counts as silent (5)")
      ->check(CLI::Range(0.001, 1e6));
  auto* shows_log =
      app.add_option("--log", log,
                     "on, off: switch the tasks' logs of what they run, send and receive; show, clear them")
          ->check(CLI::IsMember({"on", "off", "show", "clear"}));
  app.add_option("--steps", steps, "whose records --log show prints; else those of all steps")
      ->needs(shows_log)
      ->delimiter(',');
  app.add_option("--reset", reset,
                 "drop the variables, queues and other resources in this container on all tasks, first")
      ->allow_extra_args(false);
  CLI11_PARSE(app, argc, argv);
  try {
    if (!file.empty()) {
      std::cout << text_of_file(file);
      return 0;
    }
    const dflow::net::ClusterSpec cluster = dflow::net::ClusterSpec::from_flags(argc, argv);
    if (cluster.is_local() || cluster.is_empty()) {
      throw dflow::Error(dflow::Status::invalid_argument(
          "no cluster is named: neither by --dflow_cluster or --cluster_file nor by the environment"));
    }
    const auto limit =
        std::chrono::duration_cast<dflow::Duration>(std::chrono::duration<double>(std::min(timeout, 1e6)));
    if (!reset.empty()) dflow::net::reset(cluster, reset, {}, {.startup_timeout = limit});
    for (const std::string& container : reset) {
      std::cerr << "dflow-inspect: what container '" << container << "' held is dropped on all tasks\n";
    }
    const auto show = [&](const auto& reports) {
      std::cout << (as_json ? to_json(reports) : to_text(reports)) << std::flush;
      const bool all_answer = std::all_of(reports.begin(), reports.end(), [](const auto& r) { return r.status.ok(); });
      return all_answer ? 0 : 1;
    };
    if (log.empty()) return show(dflow::net::inspect(cluster, {.timeout = limit}));
    using dflow::net::LogRequest;
    LogRequest request{.clear = log == "clear", .fetch = log == "show", .steps = steps};
    if (log == "on") request.turn = LogRequest::Switch::on;
    if (log == "off") request.turn = LogRequest::Switch::off;
    return show(dflow::net::inspect_logs(cluster, request, {.timeout = limit}));
  } catch (const std::exception&) {  // also for want of memory: a file may be large
    std::cerr << "dflow-inspect: " << dflow::status_of_current_exception() << "\n";
    return 2;
  }
}
