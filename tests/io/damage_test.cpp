// Damage anywhere in a file is DataLoss, and the message names the file and the offset.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>
#include <dflow/io/npy.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/safetensors.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;

namespace {

using ReadAll = std::function<void(FileSystem&)>;

std::vector<NamedTensor> damaged_tensors() {
  return {{"flags", Tensor<bool>({3}, {true, false, true})}, {"w", Tensor<float>({2, 2}, {1, 2, 3, 4})}};
}

/// The status of a read after the file's content was changed; Ok if the read succeeds all the same.
Status status_with(FileSystem& files, const std::string& path, const std::string& content, const ReadAll& read) {
  const std::string whole = files.read_file(path);
  files.write_file_atomically(path, std::string_view(content));
  const Status status = status_of([&] {
    read(files);
    return 0;
  });
  files.write_file_atomically(path, std::string_view(whole));
  return status;
}

/// Changes each byte in turn, and cuts the file at each place.
void check_damage(FileSystem& files, const std::string& path, const ReadAll& read) {
  const std::string whole = files.read_file(path);
  std::size_t num_lost = 0;
  const auto check = [&](const std::string& content, std::size_t at) {
    const Status status = status_with(files, path, content, read);
    if (status.code() != Code::data_loss) return;
    ++num_lost;
    const std::string name = path.substr(path.find_last_of('/') + 1);
    INFO(path << ", byte " << at << ": " << status.to_string());
    CHECK((mentions(status, name) && mentions(status, " offset ")));
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int bits : {1, 0x80, 0xff}) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ bits);
      check(flipped, at);
    }
    check(whole.substr(0, at), at);
  }
  CHECK(num_lost > whole.size());
}

}  // namespace

TEST_CASE("damage of npy and npz files is named with its place") {
  MemoryFileSystem files;
  const ReadAll read_one = [](FileSystem& from) { static_cast<void>(read_npy(from, "/a.npy")); };
  const ReadAll read_both = [](FileSystem& from) { static_cast<void>(read_npz(from, "/a.npz")); };
  write_npy(files, "/a.npy", damaged_tensors()[0].tensor);
  write_npz(files, "/a.npz", damaged_tensors());
  check_damage(files, "/a.npy", read_one);
  check_damage(files, "/a.npz", read_both);

  std::string npy = files.read_file("/a.npy");
  CHECK(mentions(status_with(files, "/a.npy", npy.substr(0, npy.size() - 1), read_one),
                 str_cat("at offset ", npy.size() - 3)));
  CHECK(mentions(status_with(files, "/a.npy", npy.substr(0, 9), read_one), "at offset 8"));
  npy[npy.size() - 2] = 2;
  CHECK(mentions(status_with(files, "/a.npy", npy, read_one), str_cat("at offset ", npy.size() - 2)));
}

TEST_CASE("damage of safetensors files is named with its place") {
  MemoryFileSystem files;
  const ReadAll read = [](FileSystem& from) { static_cast<void>(read_safetensors(from, "/a.safetensors")); };
  write_safetensors(files, "/a.safetensors", damaged_tensors());
  check_damage(files, "/a.safetensors", read);

  std::string file = files.read_file("/a.safetensors");
  const auto status = [&](const std::string& content) { return status_with(files, "/a.safetensors", content, read); };
  CHECK(mentions(status(file.substr(0, file.size() - 1)), str_cat("at offset ", file.size() - 1)));
  CHECK(mentions(status(file.substr(0, 5)), "at offset 5"));
  std::string unknown = file;
  const std::size_t key = file.find("shape");
  unknown[key] = 'x';
  CHECK(mentions(status(unknown), str_cat("at offset ", file.find('}', key))));  // where a shape is missing
  file.back() = 2;
  CHECK(mentions(status(file), str_cat("at offset ", file.size() - 1)));
}

TEST_CASE("damage of checkpoints is named with its place") {
  MemoryFileSystem files;
  const ReadAll read = [](FileSystem& from) {
    const CheckpointReader reader(from, "/m");
    for (const CheckpointEntry& entry : reader.index().entries) static_cast<void>(reader.read(entry.name));
    reader.verify();
  };
  CheckpointShardWriter writer(files, "/m", 0, 1);
  for (const auto& [name, tensor] : damaged_tensors()) writer.add(name, tensor);
  writer.add("texts", Tensor<std::string>({2}, {"one", "two"}));
  writer.finish();
  merge_checkpoint(files, std::array<std::string, 1>{"/m"}, "/m");
  const std::string data = checkpoint_data_path("/m", 0, 1), index = checkpoint_index_path("/m");
  check_damage(files, index, read);
  check_damage(files, data, read);

  const CheckpointReader reader(files, "/m");
  for (const CheckpointEntry& entry : reader.index().entries) {
    std::string content = files.read_file(data);
    content[entry.offset + entry.length - 1] ^= 1;
    CHECK(mentions(status_with(files, data, content, read), str_cat("at offset ", entry.offset)));
  }
  const std::string content = files.read_file(index);
  std::string flipped = content;
  flipped[CheckpointIndex::header_bytes + 3] ^= 1;
  CHECK(mentions(status_with(files, index, flipped, read), str_cat("at offset ", CheckpointIndex::header_bytes)));
  CHECK(mentions(status_with(files, index, content.substr(0, 20), read), "at offset 20"));
}

TEST_CASE("damage of TensorFlow's checkpoints is named with its place") {
  MemoryFileSystem files;
  const ReadAll read = [](FileSystem& from) {
    const TensorBundleReader reader(from, "/b");
    for (const auto& [name, entry] : reader.entries()) static_cast<void>(reader.read(name));
  };
  std::vector<NamedTensor> tensors = damaged_tensors();
  tensors.push_back({"x", Tensor<std::string>({2}, {"one", "two"})});
  write_tensor_bundle(files, "/b", tensors);
  const std::string data = checkpoint_data_path("/b", 0, 1), index = checkpoint_index_path("/b");
  check_damage(files, index, read);
  check_damage(files, data, read);

  const TensorBundleReader reader(files, "/b");
  for (const char* name : {"flags", "w"}) {
    std::string content = files.read_file(data);
    const std::uint64_t at = reader.find(name)->offset;
    content[at] ^= 1;
    CHECK(mentions(status_with(files, data, content, read), str_cat("at offset ", at)));
  }
  std::string content = files.read_file(data);
  const std::uint64_t at = reader.find("x")->offset;
  content[at + 2] ^= 1;  // the checksum of the lengths
  CHECK(mentions(status_with(files, data, content, read), str_cat("at offset ", at + 2)));
}
