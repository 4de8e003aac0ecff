// Whatever writes a file by its name, a file that is there keeps its permissions and its place behind a link.
#include "catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>
#include <dflow/io/npy.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/io/safetensors.hpp>

#include <sys/stat.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

TEST_CASE("writers of every format keep the permissions and the links of the files that they replace") {
  struct Writer {
    std::string written;  ///< the file's name, where "a" is asked for
    std::function<void(dflow::FileSystem&, const std::string& path)> write;
  };
  const std::vector<dflow::NamedTensor> tensors{{"x", dflow::Tensor<float>({2}, {1, 2})}};
  const std::vector<Writer> writers{
      {"a", [&](auto& files, const auto& path) { dflow::write_npy(files, path, tensors[0].tensor); }},
      {"a", [&](auto& files, const auto& path) { dflow::write_npz(files, path, tensors); }},
      {"a", [&](auto& files, const auto& path) { dflow::write_safetensors(files, path, tensors); }},
      {"a.index", [&](auto& files, const auto& path) { dflow::write_tensor_bundle(files, path, tensors); }},
      {"a.data-00000-of-00001",
       [&](auto& files, const auto& path) { dflow::write_tensor_bundle(files, path, tensors); }},
      {"a", [&](auto& files, const auto& path) { dflow::RecordWriter(files, path).write("record"); }},
  };
  for (const Writer& writer : writers) {
    CAPTURE(&writer - writers.data(), writer.written);
    const dflow::testing::TemporaryFolder folder;
    dflow::PosixFileSystem files;
    const std::string target = folder.file("target"), path = folder.file(writer.written);
    std::ofstream(target) << "old";
    REQUIRE(::chmod(target.c_str(), 0600) == 0);
    std::filesystem::create_symlink("target", path);
    for (int i = 0; i < 3; ++i) {
      writer.write(files, folder.file("a"));
      CHECK(std::filesystem::is_symlink(path));
      struct stat about = {};
      REQUIRE(::stat(target.c_str(), &about) == 0);
      CHECK((about.st_mode & 0777u) == 0600);
      CHECK(files.file_size(target) > 3);
    }
    REQUIRE(std::filesystem::remove(path));
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK(code_of([&] { writer.write(files, folder.file("a")); }) == dflow::Code::failed_precondition);
    CHECK(std::filesystem::is_fifo(path));
  }
}

TEST_CASE("a bundle whose index was written for other data is DataLoss") {
  dflow::MemoryFileSystem files;
  dflow::write_tensor_bundle(files, "/m", std::vector<dflow::NamedTensor>{{"x", dflow::Tensor<float>({2}, {1, 2})}});
  const std::string index = files.read_file("/m.index");
  dflow::write_tensor_bundle(files, "/m", std::vector<dflow::NamedTensor>{{"x", dflow::Tensor<float>({2}, {1, 3})}});
  files.write_file_atomically("/m.index", index);
  CHECK(code_of([&] { dflow::TensorBundleReader(files, "/m").read("x"); }) == dflow::Code::data_loss);
}
