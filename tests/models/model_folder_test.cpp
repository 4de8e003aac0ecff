#include <dflow/models/model_folder.hpp>

#include "catch.hpp"
#include "models/trained.hpp"
#include "support/errors.hpp"
#include "support/held_files.hpp"

#include <algorithm>
#include <functional>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// A model that gives a number.
Model constant_model(float number) {
  Graph graph;
  Variable<float> w(graph, number, {.name = "w"});
  Session session(graph);
  session.run(initialize_variables(graph));
  return {session, {{"f", {}, {{"w", w}}}}};
}

float number_of_model(const std::shared_ptr<FileSystem>& files) {
  return models::load("/m", {.files = files}).prepare("f")({}).get<float>("w").scalar();
}

/// Calls a function before the graph of the first save is opened.
class ReplacedFiles final : public ChangedFiles {
 public:
  std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) override {
    if (path.ends_with("graph-1") && replace) std::exchange(replace, nullptr)();
    return ChangedFiles::open_for_reading(path);
  }
  std::function<void()> replace;
};

std::vector<std::string> all_files(MemoryFileSystem& files) { return files.list_directory("/m"); }

}  // namespace

TEST_CASE("a model that is saved again replaces the old one and leaves no file of it") {
  const auto files = std::make_shared<MemoryFileSystem>();
  files->create_directories("/m");
  files->write_file_atomically("/m/notes.txt", "mine");
  files->write_file_atomically("/m/graph-of-losses", "mine");
  for (const float number : {1.0f, 2.0f, 3.0f}) {
    models::save("/m", constant_model(number), files);
    CHECK(number_of_model(files) == number);
    CHECK(all_files(*files).size() == 6);
  }
  models::save("/m", models::freeze(constant_model(4)), files);
  CHECK(number_of_model(files) == 4);
  CHECK(all_files(*files) == std::vector<std::string>{"graph-4", "graph-of-losses", "model.json", "notes.txt"});
}

TEST_CASE("a save removes no files of others, and a folder never runs out of numbers for saves") {
  const auto files = std::make_shared<MemoryFileSystem>();
  const std::vector<std::string> others{"graph-007",   "graph-1.svg",       "graph-18446744073709551615",
                                        "graph-2.dot", "variables-1.notes", "variables-1a.index"};
  const std::vector<std::string> rests{"graph-1.dflow-0.tmp", "variables-7.data-00000-of-00001.dflow-1.tmp",
                                       "variables-7.index", "variables-7.index-00000-of-00001"};
  files->create_directories("/m");
  for (const std::vector<std::string>& names : {others, rests}) {
    for (const std::string& name : names) files->write_file_atomically("/m/" + name, "mine");
  }
  for (const float number : {1.0f, 2.0f}) {
    models::save("/m", constant_model(number), files);
    CHECK(number_of_model(files) == number);
    for (const std::string& name : others) CHECK(files->read_file("/m/" + name) == "mine");
    CHECK(all_files(*files).size() == others.size() + 4);
  }
  CHECK(files->exists("/m/graph-9"));
}

TEST_CASE("a file's graph with many nodes of one name is refused at once, and names of edges with their signature") {
  const Model model = constant_model(1);
  detail::ModelDef def = detail::ModelDef::of(model, model.signatures());
  const auto error_of_load = [&](const detail::ModelDef& written) {
    const auto files = std::make_shared<MemoryFileSystem>();
    detail::write_model(*files, "/m", written);
    return error_of([&] { return models::load("/m", {.trainable = true, .files = files}); });
  };
  for (const std::string edge : {"w:1", "w:x", "other"}) {
    detail::ModelDef with = def;
    with.signatures[0].outputs[0].second = edge;
    const auto files = std::make_shared<MemoryFileSystem>();
    detail::write_model(*files, "/m", with);
    CHECK(mentions(status_of([&] { return models::load("/m", {.files = files}); }), "model '/m': signature 'f': "));
  }
  const auto variable = std::ranges::find(def.graph.nodes, "Variable", &NodeDef::op);
  REQUIRE(variable != def.graph.nodes.end());
  def.graph.nodes.insert(def.graph.nodes.end(), 50'000, NodeDef(*variable));
  CHECK(contains(error_of_load(def), "two nodes are named 'w'"));
}

TEST_CASE("a model of very many signatures and outputs is listed and asked for by names") {
  constexpr int many = 100'000;
  const Model model = constant_model(1);
  detail::ModelDef def = detail::ModelDef::of(model, model.signatures());
  const std::string edge = def.signatures[0].outputs[0].second;
  for (int i = 0; i < many; ++i) {
    def.signatures[0].outputs.emplace_back(str_cat("o", i), edge);
    def.signatures.push_back({str_cat("f", i), {}, {{"w", edge}}});
  }
  const auto options = std::make_shared<const SessionOptions>();
  const Model large = detail::ModelDef::build(std::move(def), standard_op_table(), options);
  CHECK(large.signatures().size() == many + 1);
  CHECK(large.output(str_cat("o", many - 1)) == large.output("w"));
  CHECK(contains(error_of([&] { return large.output("o10000x"); }, Code::not_found), "and 99993 others"));
}

TEST_CASE("a save that fails or is killed at any moment leaves the old model or the new one") {
  const Model first = constant_model(1), second = constant_model(2);
  for (const bool is_killed : {false, true}) {
    for (const CrashOutcome outcome : {CrashOutcome{}, {true, false}, {false, true}, {true, true}}) {
      for (std::uint64_t at = 1;; ++at) {
        CAPTURE(is_killed, outcome.keeps_names, outcome.keeps_contents, at);
        const auto files = std::make_shared<MemoryFileSystem>();
        models::save("/m", first, files);
        const std::uint64_t before = files->changes();
        files->fail_change(at, Status::unavailable("the disk is gone"), is_killed);
        const Code code = code_of([&] {
          models::save("/m", second, files);
          return 0;
        });
        const bool is_past_end = files->changes() - before < at;
        if (is_killed) files->crash(outcome);
        files->fail_change(0, Status());
        const float number = number_of_model(files);
        CHECK((number == 1 || number == 2));
        if (code == Code::ok) CHECK(number == 2);
        if (!is_killed && number == 1) CHECK(all_files(*files).size() == 4);  // nothing of the save that failed
        models::save("/m", second, files);
        CHECK(number_of_model(files) == 2);
        CHECK(all_files(*files).size() == 4);
        if (is_past_end) break;
      }
    }
  }
}

TEST_CASE("a first save that is cut off is no model") {
  const Model model = constant_model(1);
  for (std::uint64_t at = 1;; ++at) {
    CAPTURE(at);
    const auto files = std::make_shared<MemoryFileSystem>();
    files->fail_change(at, Status::unavailable("killed"), true);
    static_cast<void>(code_of([&] {
      models::save("/m", model, files);
      return 0;
    }));
    const bool is_past_end = files->changes() < at;
    files->crash({});
    if (is_past_end) {
      CHECK(number_of_model(files) == 1);
      break;
    }
    CHECK(code_of([&] { return number_of_model(files); }) == Code::not_found);
  }
}

TEST_CASE("a damaged or incomplete folder is DataLoss or NotFound that names the file") {
  const auto files = std::make_shared<MemoryFileSystem>();
  models::save("/m", constant_model(1), files);
  for (const std::string& name : all_files(*files)) {
    CAPTURE(name);
    const std::string path = "/m/" + name, content = files->read_file(path);
    const auto expect = [&](const std::string& changed) {
      files->write_file_atomically(path, changed);
      const Status status = status_of([&] { return number_of_model(files); });
      CAPTURE(status.to_string());
      CHECK((status.code() == Code::data_loss || status.code() == Code::invalid_argument));
      CHECK(mentions(status, name.starts_with("variables") ? "/m/variables-1" : path));
    };
    for (std::size_t i = 0; i < content.size(); ++i) {
      if (content.size() > 400 && i % 7 != 0) continue;
      std::string changed = content;
      changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
      expect(changed);
      if (i % 5 == 0) expect(content.substr(0, i));
    }
    expect(content + "x");
    files->remove(path);
    const Status missing = status_of([&] { return number_of_model(files); });
    CHECK((missing.code() == Code::not_found || missing.code() == Code::data_loss));
    CHECK(mentions(missing, "/m"));
    files->write_file_atomically(path, content);
    CHECK(number_of_model(files) == 1);
  }
}

TEST_CASE("files of two models do not make one") {
  const auto files = std::make_shared<MemoryFileSystem>();
  models::save("/m", constant_model(1), files);
  models::save("/other", constant_model(2), files);
  for (const std::string& name : files->list_directory("/other")) {
    const std::string own = files->read_file("/m/" + name);
    if (own == files->read_file("/other/" + name)) continue;
    files->write_file_atomically("/m/" + name, files->read_file("/other/" + name));
    if (name == "model.json" || name.starts_with("variables")) {
      CHECK(code_of([&] { return number_of_model(files); }) == Code::data_loss);
    }
    files->write_file_atomically("/m/" + name, own);
  }
  CHECK(number_of_model(files) == 1);
}

TEST_CASE("a graph of another model is damage, though it is as long and whole") {
  const auto files = std::make_shared<MemoryFileSystem>();
  models::save("/m", models::freeze(constant_model(1)), files);
  models::save("/other", models::freeze(constant_model(2)), files);
  REQUIRE(files->file_size("/m/graph-1") == files->file_size("/other/graph-1"));
  files->write_file_atomically("/m/graph-1", files->read_file("/other/graph-1"));
  CHECK(code_of([&] { return number_of_model(files); }) == Code::data_loss);
}

TEST_CASE("what is no model, or one of a newer version, is said so") {
  const auto files = std::make_shared<MemoryFileSystem>();
  const auto text = [&] { return error_of([&] { return number_of_model(files); }, Code::not_found); };
  CHECK(contains(text(), "there is no model '/m': the folder has no model.json"));
  files->create_directories("/m");
  files->write_file_atomically("/m/x", "");
  CHECK(contains(text(), "there is no model '/m': the folder has no model.json"));
  const auto other = std::make_shared<MemoryFileSystem>();
  other->write_file_atomically("/m", "bytes");
  CHECK(contains(error_of([&] { return number_of_model(other); }, Code::not_found), "a model is a folder"));
  files->write_file_atomically("/m/model.json", "{\"dflow_model\":2,\"more\":{}}");
  CHECK(contains(error_of([&] { return number_of_model(files); }),
                 "has version 2, and this dflow reads versions up to 1"));
  for (const char* file : {"", "{}", "{\"dflow_model\":1}", "{\"dflow_model\":1,\"crc32c\":0,", "{\"dflow_model\":,"}) {
    CAPTURE(file);
    files->write_file_atomically("/m/model.json", file);
    CHECK(code_of([&] { return number_of_model(files); }) == Code::data_loss);
  }
  // A version that fits into no number is not taken for 0.
  models::save("/m", constant_model(1), files);
  std::string changed = files->read_file("/m/model.json");
  const std::string version = "\"dflow_model\":1";
  changed.replace(changed.find(version), version.size(), "\"dflow_model\":18446744073709551617");
  files->write_file_atomically("/m/model.json", changed);
  CHECK(contains(error_of([&] { return number_of_model(files); }, Code::data_loss), "a number is due"));
}

TEST_CASE("a model that is replaced while it is read is the old or the new one") {
  const auto files = std::make_shared<ReplacedFiles>();
  models::save("/m", constant_model(1), files);
  files->replace = [&] { models::save("/m", constant_model(2), files); };
  CHECK(number_of_model(files) == 2);
}
