// A pointer of Git LFS or a web page in the place of a file is called so by each reader.
#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>
#include <dflow/io/compression/gzip.hpp>
#include <dflow/io/csv.hpp>
#include <dflow/io/idx.hpp>
#include <dflow/io/npy.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/records/fixed_record_file.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/io/safetensors.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

constexpr std::string_view lfs_pointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12345\n";
constexpr std::string_view error_page = "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n";

struct OtherFile {
  std::string path;
  std::function<void(FileSystem&)> read;
};

std::function<void(FileSystem&)> reads_records(const RecordReaderOptions& options) {
  return [options](FileSystem& files) {
    RecordReader reader(files, "/file", options);
    std::string record;
    reader.next(record);
  };
}

/// The readers, with the path at which each meets another file than it expects. The other files of a checkpoint are as
/// they should be.
std::vector<OtherFile> readers_of_other_files() {
  const auto opens = [](const std::string& prefix) {
    return [prefix](FileSystem& files) { open_saved_tensors(files, prefix); };
  };
  std::vector<OtherFile> all{
      {"/m.safetensors", [](FileSystem& files) { read_safetensors(files, "/m.safetensors"); }},
      {"/m.safetensors", opens("/m.safetensors")},
      {"/m.npy", [](FileSystem& files) { read_npy(files, "/m.npy"); }},
      {"/m.npz", [](FileSystem& files) { read_npz(files, "/m.npz"); }},
      {"/m.npz", [](FileSystem& files) { NpzReader(files, "/m.npz"); }},
      {"/m.npz", opens("/m.npz")},
      {"/v1", opens("/v1")},
      {"/v2.index", opens("/v2")},
      {"/v2.index", [](FileSystem& files) { TensorBundleReader(files, "/v2"); }},
      {"/v2.data-00000-of-00001", opens("/v2")},
      {"/own.data-00000-of-00001", opens("/own")},
      {"/file", reads_records({})},
      {"/file", reads_records({.reads_ahead = true})},
      {"/file",
       [](FileSystem& files) {
         FixedRecordReader reader(files, "/file", {.record_bytes = 3073});
         std::string record;
         reader.next(record);
       }},
      {"/m.idx", [](FileSystem& files) { read_idx(files, "/m.idx"); }},
      {"/m.csv", [](FileSystem& files) { read_csv(files, "/m.csv"); }},
      {"/m.csv", [](FileSystem& files) { read_csv(files, "/m.csv", {.has_header = true}); }},
  };
  const bool has_zlib = code_of([] { return gunzip("\x1f\x8b"); }) != Code::unimplemented;
  for (const RecordCompression compression : {RecordCompression::gzip, RecordCompression::zlib}) {
    if (has_zlib) all.push_back({"/file", reads_records({.compression = compression})});
  }
  return all;
}

void write_checkpoints(FileSystem& files) {
  const Tensor<float> w = Tensor<float>::zeros({100});
  write_tensor_bundle(files, "/v2", std::vector<NamedTensor>{{"w", w}});
  CheckpointShardWriter shard(files, "/own");
  shard.add("w", w);
  shard.finish();
  merge_checkpoint(files, std::vector<std::string>{"/own"}, "/own");
}

}  // namespace

TEST_CASE("each reader says that a file is a pointer of Git LFS or a web page") {
  for (const auto& [content, kind] :
       {std::pair(lfs_pointer, "the file is a Git LFS pointer"), std::pair(error_page, "the file is a web page")}) {
    for (const OtherFile& each : readers_of_other_files()) {
      MemoryFileSystem files;
      write_checkpoints(files);
      files.write_file_atomically(each.path, content);
      const Status status = status_of([&] {
        each.read(files);
        return 0;
      });
      INFO(each.path << ": " << status.to_string());
      CHECK(status.code() == Code::data_loss);
      CHECK(mentions(status, kind));
      CHECK(mentions(status, each.path));
    }
  }
}

TEST_CASE("a damaged file that begins as it should is not called another one") {
  MemoryFileSystem files;
  write_npz(files, "/m.npz", std::vector<NamedTensor>{{"w", Tensor<float>::zeros({100})}});
  files.write_file_atomically("/m.npz", std::string_view(files.read_file("/m.npz").substr(0, 400)));
  CHECK(mentions(status_of([&] { return read_npz(files, "/m.npz"); }), "its end is missing"));
}
