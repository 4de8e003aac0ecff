// Keeps records and checkpoints on a file system of its own, under paths that begin with "store://":
//   own_files
// The program trains twice. The second training goes on from the checkpoint of the first.

#include <dflow/dflow.hpp>
#include <dflow/io/records/record_file.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

struct Object {
  std::mutex mutex;
  std::string bytes;
};
using ObjectPtr = std::shared_ptr<Object>;

/// A file that is open: it keeps its object, whatever becomes of the name.
struct OpenObject final : df::RandomAccessFile, df::WritableFile {
  explicit OpenObject(ObjectPtr opened) : object(std::move(opened)) {}
  std::uint64_t size() const override { return std::lock_guard(object->mutex), object->bytes.size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    const std::lock_guard lock(object->mutex);
    const std::size_t begin = std::min<std::uint64_t>(offset, object->bytes.size());
    return object->bytes.copy(reinterpret_cast<char*>(into.data()), into.size(), begin);
  }
  void append(std::span<const std::byte> more) override {
    const std::lock_guard lock(object->mutex);
    object->bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
  }
  void sync() override {}  // memory is all that there is
  ObjectPtr object;
};

/// Objects under keys, as in a cloud's store. It has no directories: "a" is one if a key begins with "a/".
class ObjectStore final : public df::FileSystem {
 public:
  std::string read_file(const std::string& path, std::uint64_t max_bytes) override {
    const OpenObject file(find(path));
    if (file.size() > max_bytes) throw df::Error(df::Status::resource_exhausted("'" + path + "' is too large"));
    std::string content(file.size(), '\0');
    file.read_exactly_at(0, std::as_writable_bytes(std::span(content)));
    return content;
  }
  std::unique_ptr<df::RandomAccessFile> open_for_reading(const std::string& path) override {
    return std::make_unique<OpenObject>(find(path));
  }
  std::unique_ptr<df::WritableFile> open_for_appending(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return std::make_unique<OpenObject>(objects_.try_emplace(path, std::make_shared<Object>()).first->second);
  }
  std::unique_ptr<df::WritableFile> create_file(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = objects_.try_emplace(path, std::make_shared<Object>());
    if (!is_new) throw df::Error(df::Status::already_exists("'" + path + "' exists"));
    return std::make_unique<OpenObject>(at->second);
  }
  void write_file_atomically(const std::string& path, std::span<const std::byte> content) override {
    auto object = std::make_shared<Object>();
    OpenObject(object).append(content);
    const std::lock_guard lock(mutex_);
    objects_[path] = object;
  }
  bool exists(const std::string& path) override {
    return is_directory(path) || (std::lock_guard(mutex_), objects_.contains(path));
  }
  bool is_directory(const std::string& path) override { return path == "." || !list_directory(path).empty(); }
  std::uint64_t file_size(const std::string& path) override { return OpenObject(find(path)).size(); }
  std::vector<std::string> list_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const std::string start = path == "." ? "" : path + "/";
    std::set<std::string> names;
    for (auto at = objects_.lower_bound(start); at != objects_.end() && at->first.starts_with(start); ++at) {
      names.insert(at->first.substr(start.size(), at->first.find('/', start.size()) - start.size()));
    }
    return {names.begin(), names.end()};
  }
  void create_directories(const std::string&) override {}
  void sync_directory(const std::string&) override {}
  void remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (objects_.erase(path) == 0) throw df::Error(df::Status::not_found("there is no '" + path + "'"));
  }
  void rename(const std::string& from, const std::string& to) override {
    const ObjectPtr object = find(from);
    const std::lock_guard lock(mutex_);
    objects_[to] = object;
    objects_.erase(from);
  }

 private:
  ObjectPtr find(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(path);
    if (found == objects_.end()) throw df::Error(df::Status::not_found("there is no '" + path + "'"));
    return found->second;
  }

  mutable std::mutex mutex_;
  std::map<std::string, ObjectPtr> objects_;
};

/// Fits the slope of the records' points for a number of steps, from the latest checkpoint on.
float train(const std::shared_ptr<df::FileSystem>& files, int num_steps) {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}), y = df::placeholder<float>(graph, {});
  df::Variable<float> slope(graph, 0.0f, {.name = "slope"});
  df::Variable<std::int64_t> step(graph, 0, {.name = "global_step", .trainable = false});
  auto update = df::train::GradientDescent(0.1f).minimize(df::square(x * slope - y), {.global_step = step});
  auto points = df::data::from_records(files, {"store://points.tfrecord"}).repeat().iterate();
  df::train::Supervisor supervisor(
      graph,
      {.session = {.files = files}, .checkpoint_dir = "store://models", .global_step = step, .save_every_steps = 10});
  std::printf("begins at step %lld\n", static_cast<long long>(supervisor.session().run(step).scalar()));
  for (int i = 0; i < num_steps; ++i) {
    const float at = std::stof(*points.next());
    supervisor.run([&](df::Session& session) { session.run({{x, at}, {y, 3 * at}}, update); });
  }
  return supervisor.session().run(slope).scalar();
}

}  // namespace

int main() {
  auto files = std::make_shared<df::FileSystems>(df::FileSystems::Schemes{{"store", std::make_shared<ObjectStore>()}});
  df::RecordWriter records(*files, "store://points.tfrecord");
  for (int i = 1; i <= 10; ++i) records.write(std::to_string(0.1 * i));
  records.close();
  train(files, 20);
  const float slope = train(files, 80);
  for (const auto& name : files->list_directory("store://models")) std::printf("store://models/%s\n", name.c_str());
  std::printf("slope %.3f\n", static_cast<double>(slope));
  return std::abs(slope - 3) < 0.01f ? 0 : 1;
}
