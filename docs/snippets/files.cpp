// The snippets of docs/files.md, one function per section.

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/trace/events/event_file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

/// Stands for a file system of the reader's.
class MyFiles final : public df::FileSystem {
 public:
  using FileSystem::write_file_atomically;
  std::string read_file(const std::string& path, std::uint64_t most) override { return memory_.read_file(path, most); }
  std::unique_ptr<df::RandomAccessFile> open_for_reading(const std::string& path) override {
    return memory_.open_for_reading(path);
  }
  std::unique_ptr<df::WritableFile> open_for_appending(const std::string& path) override {
    return memory_.open_for_appending(path);
  }
  void write_file_atomically(const std::string& path, std::span<const std::byte> content) override {
    memory_.create_directories(df::parent_directory(path));
    memory_.write_file_atomically(path, content);
  }
  bool exists(const std::string& path) override { return memory_.exists(path); }
  bool is_directory(const std::string& path) override { return memory_.is_directory(path); }
  std::uint64_t file_size(const std::string& path) override { return memory_.file_size(path); }
  std::vector<std::string> list_directory(const std::string& path) override { return memory_.list_directory(path); }
  void create_directories(const std::string& path) override { memory_.create_directories(path); }
  void remove(const std::string& path) override { memory_.remove(path); }
  void rename(const std::string& from, const std::string& to) override { memory_.rename(from, to); }
  void sync_directory(const std::string& path) override { memory_.sync_directory(path); }
  std::unique_ptr<df::WritableFile> create_file(const std::string& path) override { return memory_.create_file(path); }

 private:
  df::MemoryFileSystem memory_;
};

void file_systems() {
  // [file_systems]
  auto files = std::make_shared<df::FileSystems>(df::FileSystems::Schemes{{"xyz", std::make_shared<MyFiles>()}});
  files->write_file_atomically("xyz://notes/a.txt", "kept by MyFiles as notes/a.txt");
  files->write_file_atomically("mem://a.txt", "kept in the memory of `files`");
  files->read_file("/etc/os-release");         // without a scheme: a file of the machine
  files->read_file("file:///etc/os-release");  // the same file
  // [file_systems]
  require(files->list_directory("xyz://notes").size() == 1 && files->exists("mem://a.txt"), "file systems");

  df::Graph graph;
  df::Variable<std::int64_t> step(graph, 0, {.name = "global_step", .trainable = false});
  df::RecordWriter(*files, "xyz://train.tfrecord").write("one");
  // [files_for_all]
  df::data::Dataset<std::string> records = df::data::from_records(files, {"xyz://train.tfrecord"});
  df::EventWriter events(files, "mem://logs");
  df::train::Supervisor supervisor(
      graph, {.session = {.files = files}, .checkpoint_dir = "xyz://models", .global_step = step});
  // [files_for_all]
  supervisor.run([&](df::Session& session) { session.run(step.assign_add(1)); });
  require(records.iterate().next() == "one", "records");
  require(df::train::latest_checkpoint(*files, "xyz://models").has_value(), "supervisor");
}

void numpy(df::FileSystem& files) {
  const df::Tensor<float> weights({2, 2}, {1, 2, 3, 4}), bias({2}, {5, 6});
  // [npy]
  df::write_npy(files, "weights.npy", weights);            // numpy.load("weights.npy")
  df::AnyTensor any = df::read_npy(files, "weights.npy");  // its element type is in the file
  df::Tensor<float> again = any.as<float>();               // throws if it is another one
  df::write_npy(files, "for_fortran.npy", weights, {.is_fortran_order = true});
  // [npy]
  require(again(1, 0) == 3 && bitwise_equal(df::read_npy(files, "for_fortran.npy"), weights), "npy");

  // [npz]
  df::write_npz(files, "model.npz", std::vector<df::NamedTensor>{{"weights", weights}, {"bias", bias}});
  for (const auto& [name, tensor] : df::read_npz(files, "model.npz")) {  // in the archive's order
    std::printf("%s: %s\n", name.c_str(), tensor.shape().to_string().c_str());
  }
  df::AnyTensor one = df::read_npz(files, "model.npz", "bias");  // the others are not read
  // [npz]
  require(bitwise_equal(one, bias), "npz");

  // [npz_reader]
  df::NpzReader file(files, "model.npz");  // reads the headers alone
  for (const df::NpzEntry& entry : file.entries()) {
    std::printf("%s: %s\n", entry.name.c_str(), entry.shape.to_string().c_str());
  }
  df::Tensor<float> read = file.read("bias").as<float>();
  // [npz_reader]
  require(bitwise_equal(read, bias), "npz reader");
}

void safetensors(df::FileSystem& files) {
  const df::Tensor<float> weights({2, 2}, {1, 2, 3, 4});
  const df::Tensor<df::BFloat16> scale({1}, {df::BFloat16(0.5f)});
  // [safetensors]
  std::vector<df::NamedTensor> model{{"layer1.weight", weights}, {"layer1.scale", scale}};
  df::write_safetensors(files, "model.safetensors", model, {{"format", "pt"}});

  df::SafetensorsReader file(files, "model.safetensors");  // reads the header alone
  for (const df::SafetensorsEntry& entry : file.entries()) {
    std::printf("%s: %s %s\n", entry.name.c_str(), entry.type.c_str(), entry.shape.to_string().c_str());
  }
  df::Tensor<float> read = file.read("layer1.weight").as<float>();  // reads its 16 bytes
  // [safetensors]
  require(read(1, 1) == 4 && file.metadata().at("format") == "pt", "safetensors");
}

void tensorflow(df::FileSystem& files) {
  const df::Tensor<float> kernel({2, 1}, {1, 2});
  // [bundle]
  df::write_tensor_bundle(files, "export/model", std::vector<df::NamedTensor>{{"dense/kernel", kernel}});
  // Python: tf.train.load_checkpoint("export/model").get_tensor("dense/kernel")

  auto saved = df::open_saved_tensors(files, "export/model");  // version 1 or 2, or dflow's own
  for (const std::string& name : saved->names()) {
    std::printf("%s: %s\n", name.c_str(), saved->read(name).to_string().c_str());
  }
  // [bundle]
  require(bitwise_equal(saved->read("dense/kernel"), kernel), "bundle");
}

void restore() {
  df::PosixFileSystem files;
  df::write_tensor_bundle(files, "files_snippet/model",
                          std::vector<df::NamedTensor>{{"dense/kernel", df::Tensor<float>({2, 1}, {1, 2})}});
  // [restore]
  df::Graph graph;
  df::Variable<float> weights(graph, df::Tensor<float>(df::Shape{2, 1}), {.name = "weights"});
  df::train::Saver saver(graph, {{"dense/kernel", weights.any_variable()}});  // under the names that the checkpoint has
  df::Session session(graph);
  saver.restore(session, "files_snippet/model");
  // [restore]
  require(session.run(weights)(1, 0) == 2, "restore");
  for (const char* file : {"model.index", "model.data-00000-of-00001", ""}) {
    files.remove(df::join_path("files_snippet", file));
  }
}

void convert(df::FileSystem& files) {
  // [convert]
  auto from = df::open_saved_tensors(files, "export/model");
  std::vector<df::NamedTensor> tensors;
  for (const std::string& name : from->names()) tensors.push_back({name, from->read(name)});
  df::write_safetensors(files, "converted.safetensors", tensors);
  // [convert]
  require(files.exists("converted.safetensors"), "convert");
}

}  // namespace

int main() {
  file_systems();
  df::MemoryFileSystem files;
  numpy(files);
  safetensors(files);
  tensorflow(files);
  restore();
  convert(files);
}
