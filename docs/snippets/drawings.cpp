// The snippets of docs/drawings.md, one function per section.

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/trace/dot.hpp>

#include <string>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

void drawings(df::FileSystem& files) {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 784}, {.name = "x"});
  auto y = df::dense(x, 10);

  // [graph]
  df::Drawing drawing = df::drawing_of(graph, {.title = "the model"});
  files.write_file_atomically("model.dot", df::to_dot(drawing));
  // [graph]
  require(drawing.title == "the model" && files.exists("model.dot"), "a drawing");

  // [placement]
  df::Session session(graph, {.num_cpu_devices = 2});
  df::Drawing placed = df::drawing_of(graph, session);  // each node in the colour of the device that it was placed on
  std::string device = session.device_of(y.operation());
  // [placement]
  require(!placed.devices.empty() && !device.empty(), "devices");

  // [step]
  auto step = session.prepare(df::feeds(x), df::fetches(y));
  df::Drawing plan = df::drawing_of(step.device_graphs());  // what each device runs, after all passes
  // [step]
  require(plan.boxes.size() > 0, "a box for the device");

  // [limits]
  df::Drawing overview = df::drawing_of(graph, {.max_nodes = 50, .max_depth = 1});
  // [limits]
  require(overview.nodes.size() <= 50, "limits");
}

}  // namespace

int main() {
  df::MemoryFileSystem files;
  drawings(files);
}
