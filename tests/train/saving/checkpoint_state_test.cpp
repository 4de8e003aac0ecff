#include <dflow/train/saving/checkpoint_state.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/held_files.hpp"

#include <dflow/base/files/memory_file_system.hpp>

#include <string>
#include <utility>
#include <vector>

namespace df = dflow;
using df::train::CheckpointState;

TEST_CASE("the state of checkpoints is written as TensorFlow writes it, and read back") {
  CheckpointState state;
  state.model_checkpoint_path = "m-200";
  state.all_model_checkpoint_paths = {"m-100", "m-200"};
  CHECK(state.to_text() ==
        "model_checkpoint_path: \"m-200\"\n"
        "all_model_checkpoint_paths: \"m-100\"\n"
        "all_model_checkpoint_paths: \"m-200\"\n");
  state.all_model_checkpoint_timestamps = {1700000000.25, 1700000001.5};
  state.last_preserved_timestamp = 1699999999.125;
  CHECK(CheckpointState::parse(state.to_text()) == state);
  state.being_removed = {"m-98", "m-\"99\""};
  CHECK(state.to_text().ends_with("\n# dflow removes: \"m-98\"\n# dflow removes: \"m-\\\"99\\\"\"\n"));
  CHECK(CheckpointState::parse(state.to_text()) == state);
  state.model_checkpoint_path = "a \"quoted\"\\name\nin two lines\x01";
  CHECK(CheckpointState::parse(state.to_text()) == state);
}

TEST_CASE("fields that nobody knows, comments and blanks are passed over, and damage is named") {
  const CheckpointState state = CheckpointState::parse(
      "# of another program\r\n\n  model_checkpoint_path :  \"a\\tb\\101\"  \nsome_new_field: 7\n");
  CHECK(state.model_checkpoint_path == "a\tbA");
  for (const std::string line :
       {"model_checkpoint_path", "model_checkpoint_path: m", "model_checkpoint_path: \"m",
        "model_checkpoint_path: \"m\\\"", "model_checkpoint_path: \"m\" \"n\"", "model_checkpoint_path: \"\\777\"",
        "last_preserved_timestamp: soon", "# dflow removes: m-1", "all_model_checkpoint_timestamps: inf"}) {
    const df::Status status = status_of([&] { return CheckpointState::parse(line); });
    CHECK(status.code() == df::Code::data_loss);
    CHECK(mentions(status, line));
  }
}

TEST_CASE("the latest checkpoint is the newest one named that is there") {
  df::MemoryFileSystem files;
  CHECK(!df::train::latest_checkpoint(files, "/d"));
  files.create_directories("/d");
  CHECK(!df::train::latest_checkpoint(files, "/d"));
  files.write_file_atomically("/d/checkpoint",
                              "model_checkpoint_path: \"m-3\"\nall_model_checkpoint_paths: \"/e/m-1\"\n"
                              "all_model_checkpoint_paths: \"m-2\"\nall_model_checkpoint_paths: \"m-3\"\n");
  const df::Status none = status_of([&] { return df::train::latest_checkpoint(files, "/d"); });
  CHECK(none.code() == df::Code::not_found);
  CHECK(mentions(none, "'/d/checkpoint' names 'm-3', and neither that nor an earlier checkpoint is there"));
  files.create_directories("/e");
  files.write_file_atomically("/e/m-1.index", "");
  CHECK(df::train::latest_checkpoint(files, "/d").value() == "/e/m-1");
  files.write_file_atomically("/d/m-2.index", "");
  CHECK(df::train::latest_checkpoint(files, "/d").value() == "/d/m-2");
  files.write_file_atomically("/d/m-3.index", "");
  CHECK(df::train::latest_checkpoint(files, "/d").value() == "/d/m-3");
  files.write_file_atomically("/d/checkpoint", "# none yet\n");
  CHECK(!df::train::latest_checkpoint(files, "/d"));
  files.write_file_atomically("/d/checkpoint", "?");
  CHECK(code_of([&] { return df::train::latest_checkpoint(files, "/d"); }) == df::Code::data_loss);
}

TEST_CASE("the latest checkpoint of a directory that was moved is beside its state") {
  df::MemoryFileSystem files;
  files.create_directories("/moved");
  files.write_file_atomically(
      "/moved/checkpoint",
      "model_checkpoint_path: \"/data/run1/m-3\"\nall_model_checkpoint_paths: \"/data/run1/m-2\"\n"
      "all_model_checkpoint_paths: \"/data/run1/m-3\"\n");
  files.write_file_atomically("/moved/m-2.index", "");
  CHECK(df::train::latest_checkpoint(files, "/moved").value() == "/moved/m-2");
  // Version 1 of TensorFlow's format: in one file, then in shards.
  files.write_file_atomically("/moved/m-3-00000-of-00002", "");
  CHECK(df::train::latest_checkpoint(files, "/moved").value() == "/moved/m-2");
  files.remove("/moved/m-2.index");
  const df::Status half = status_of([&] { return df::train::latest_checkpoint(files, "/moved"); });
  CHECK(half.code() == df::Code::not_found);
  INFO(half.to_string());
  CHECK(mentions(half, "has 1 of 00002 shards"));
  files.write_file_atomically("/moved/m-3-00001-of-00002", "");
  CHECK(df::train::latest_checkpoint(files, "/moved").value() == "/moved/m-3");
  // The checkpoint is still at its old place: the directory is a copy.
  files.create_directories("/data/run1");
  files.write_file_atomically("/data/run1/m-3", "");
  CHECK(df::train::latest_checkpoint(files, "/moved").value() == "/data/run1/m-3");
}

namespace {
/// Files of a saver that has just been at work: another checkpoint replaces the checkpoint that is looked for first.
class BusyFiles final : public df::testing::ChangedFiles {
 public:
  bool exists(const std::string& path) override {
    if (path == "/d/m-3.index" && !std::exchange(has_saved_, true)) {
      write_file_atomically("/d/m-4.index", "");
      write_file_atomically("/d/checkpoint", "model_checkpoint_path: \"m-4\"\n");
    }
    return files.exists(path);
  }

 private:
  bool has_saved_ = false;
};
}  // namespace

TEST_CASE("a checkpoint that a saver removes meanwhile gives way to the next one") {
  BusyFiles busy;
  busy.create_directories("/d");
  busy.write_file_atomically("/d/checkpoint", "model_checkpoint_path: \"m-3\"\n");
  CHECK(df::train::latest_checkpoint(busy, "/d").value() == "/d/m-4");
}

TEST_CASE("a state that names nothing as its latest is told by what else it names") {
  df::MemoryFileSystem files;
  files.create_directories("/d");
  files.write_file_atomically("/d/checkpoint", "all_model_checkpoint_paths: \"m-1\"\n");
  const df::Status none = status_of([&] { return df::train::latest_checkpoint(files, "/d"); });
  CHECK(none.code() == df::Code::not_found);
  CHECK(mentions(none, "names 'm-1'"));
}
