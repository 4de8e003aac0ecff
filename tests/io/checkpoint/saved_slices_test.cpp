#include <dflow/io/checkpoint/tensorflow/saved_slices.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/base64.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/named_tensor.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/proto/proto_writer.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using dflow::Code;
using dflow::NamedTensor;
using dflow::ProtoWriter;
using dflow::Shape;
using dflow::Tensor;

namespace {

// By TensorFlow 2.21, w being [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]] in float:
//   tf.raw_ops.SaveSlices(filename, ['w', 'w', 'n', 'i', 'd', 's', 'b', 'h'], ['4 3 -:0,1', '4 3 -:1,2', '', '', '',
//   '', '',
//     ''], [w[:, :1], w[:, 1:], int64 [-1, 2**40], int32 [-7, 7], double 1.25, ['x', ''], [True, False], half [.5]])
constexpr std::string_view slices_file =
    "AACKAQqHAQoPCgFiEgQSAggCGAoiAgoACgkKAWQSABgCIgAKDwoBaBIEEgIIARgTIgIKAAoPCgFpEgQSAggCGAMiAgoACg8KAW4SBBICCAIYCSIC"
    "CgAKDwoBcxIEEgIIAhgHIgIKAAohCgF3EggSAggEEgIIAxgBIgYKAAoCEAEiCAoACgQIARACEgIIAQAIDwBiAAEBAYB/Eg0KAWISAgoAGgRaAgEA"
    "AQQTZAABABIRCgFkEgAaCjIIAAAAAAAA9D8BBw9oAAEBAYB/Eg0KAWgSAgoAGgRqAoBwAQcYaQABAQGAfxIWCgFpEgIKABoNOgv5//////////8B"
    "BwEHHW4AAQEBgH8SGwoBbhICCgAaElIQ////////////AYCAgICAIAEHEHMAAQEBgH8SDgoBcxICCgAaBUIBeEIAAQkhdwABAQKAf4CBEh8KAXcS"
    "BgoACgIQARoSKhAAAAAAAABAQAAAwEAAABBBCAIzgYISMQoBdxIICgAKBAgBEAIaIiogAACAPwAAAEAAAIBAAACgQAAA4EAAAABBAAAgQQAAMEEA"
    "AAAAAQAAAABCNOxzAAAAAAEAAAAAwPKhsAABAwEAqwMAAAAAAQAAAAAUdWQosAMIvQMPAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AFf7gIskdUfb";

// By the same, ['w', 'a'], ['4 100 0,2:-', ''], [ones of (2, 100), 1.0]; then 'w', '4 100 2,2:-', twos of (2, 100).
constexpr std::string_view slices_shard_0 =
    "AAAqCigKCQoBYRIAGAEiAAoXCgF3EggSAggEEgIIZBgBIgYKAhACCgASAggBAAUPAGEAAQASDQoBYRIAGgYqBAAAgD8BCbQGdwABAQKAgoB/ErEG"
    "CgF3EgYKAhACCgAaowYqoAYAAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACA"
    "PwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACA"
    "PwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACA"
    "PwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACA"
    "PwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACA"
    "PwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACA"
    "PwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACA"
    "PwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACA"
    "PwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACA"
    "PwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAAAABAAAAAO32z8gAAAAAAQAAAADA"
    "8qGwAAEDAQCNBwAAAAABAAAAAF0r426SBwifBw8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1R9s=";
constexpr std::string_view slices_shard_1 =
    "AAAhCh8KGQoBdxIIEgIIBBICCGQYASIICgQIAhACCgASAggBAAq2BgB3AAEBAoKCgH8SswYKAXcSCAoECAIQAgoAGqMGKqAGAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABA"
    "AAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAAAAAQAAAAAg0GrQAAAAAAEAAAAAwPKhsAABAwEA8AYAAAAAAQAAAACOEaOV9QYIggcP"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFf7gIskdUfb";

std::vector<NamedTensor> read_slices(dflow::FileSystem& files, const std::string& prefix) {
  const dflow::SavedSlicesReader reader(files, prefix);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, entry] : reader.entries()) tensors.push_back({name, reader.read(name)});
  return tensors;
}

std::vector<NamedTensor> read_slices(std::string_view file) {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/v1", file);
  return read_slices(files, "/v1");
}

bool are_expected_slices(const std::vector<NamedTensor>& read) {
  const std::vector<NamedTensor> wanted{{"b", Tensor<bool>({2}, {true, false})},
                                        {"d", Tensor<double>(1.25)},
                                        {"h", Tensor<dflow::Half>({1}, {dflow::Half(0.5f)})},
                                        {"i", Tensor<std::int32_t>({2}, {-7, 7})},
                                        {"n", Tensor<std::int64_t>({2}, {-1, std::int64_t{1} << 40})},
                                        {"s", Tensor<std::string>({2}, {"x", ""})},
                                        {"w", Tensor<float>({4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}};
  if (read.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i].name != wanted[i].name || !bitwise_equal(read[i].tensor, wanted[i].tensor)) return false;
  }
  return true;
}

/// A file of one tensor 'a' of two elements of a type. `fill` writes the content of its only slice into the
/// TensorProto.
std::string file_of_slice(std::uint64_t dtype, const std::function<void(ProtoWriter&)>& fill,
                          std::uint64_t min_consumer = 0) {
  std::string meta, value, file;
  ProtoWriter(meta).message(1, [&](ProtoWriter& about) {
    about.message(1, [&](ProtoWriter& tensor) {
      tensor.bytes(1, "a");
      tensor.message(2, [](ProtoWriter& shape) { shape.message(2, [](ProtoWriter& dim) { dim.uint64(1, 2); }); });
      tensor.uint64(3, dtype);
      tensor.message(4, [](ProtoWriter& slice) { slice.message(1, [](ProtoWriter&) {}); });
    });
    about.message(2, [&](ProtoWriter& version) { version.uint64(2, min_consumer); });
  });
  ProtoWriter(value).message(2, [&](ProtoWriter& slice) {
    slice.bytes(1, "a");
    slice.message(3, fill);
  });
  dflow::SortedTableWriter table(file);
  table.add("", meta);
  table.add(dflow::TensorSlice::whole(1).key("a"), value);
  table.finish();
  return file;
}

}  // namespace

TEST_CASE("a version 1 checkpoint that TensorFlow wrote is read, slices put together") {
  CHECK(are_expected_slices(read_slices(*dflow::from_base64(slices_file))));
}

TEST_CASE("slices of a version 1 checkpoint are put together from several files") {
  dflow::MemoryFileSystem files;
  files.create_directories("/m");
  files.write_file_atomically("/m/v1-00000-of-00002", std::string_view(*dflow::from_base64(slices_shard_0)));
  CHECK(contains(error_of([&] { return read_slices(files, "/m/v1"); }, Code::not_found), "1 of 00002"));
  files.write_file_atomically("/m/v1-00001-of-00002", std::string_view(*dflow::from_base64(slices_shard_1)));
  files.write_file_atomically("/m/v1-other", std::string_view("something else"));
  const std::vector<NamedTensor> tensors = read_slices(files, "/m/v1");
  REQUIRE(tensors.size() == 2);
  CHECK(bitwise_equal(tensors[0].tensor, Tensor<float>(1.0f)));
  auto w = Tensor<float>::full({4, 100}, 1.0f);
  for (int i = 200; i < 400; ++i) w.data()[i] = 2.0f;
  CHECK(bitwise_equal(tensors[1].tensor, w));
  CHECK(code_of([&] { return read_slices(files, "/m/v2"); }) == Code::not_found);
  CHECK(code_of([&] { return read_slices(files, "/none/v2"); }) == Code::not_found);
  files.write_file_atomically("/m/v1-00000-of-00003", std::string_view("x"));
  CHECK(code_of([&] { return read_slices(files, "/m/v1"); }) == Code::data_loss);
}

TEST_CASE("elements of every type of version 1 checkpoints are read from the field of their type") {
  const auto read = [](std::uint64_t dtype, const std::function<void(ProtoWriter&)>& fill) {
    return read_slices(file_of_slice(dtype, fill))[0].tensor.to_string();
  };
  const std::vector<std::int32_t> small{200, 1};
  const auto ints = [&](ProtoWriter& out) { out.packed(7, std::span<const std::int32_t>(small)); };
  CHECK(read(4, ints) == "uint8[2] [200, 1]");
  CHECK(read(5, ints) == "int16[2] [200, 1]");
  CHECK(read(17, ints) == "uint16[2] [200, 1]");
  CHECK(read(3, [](ProtoWriter& out) {
          out.int64(7, -5);
          out.int64(7, 6);
        }) == "int32[2] [-5, 6]");
  const std::vector<float> four{1, 2, 3, 4};
  CHECK(read(8, [&](ProtoWriter& out) { out.packed(9, std::span<const float>(four)); }) ==
        "complex64[2] [(1,2), (3,4)]");
  const std::vector<double> doubles{1, 2, 3, 4};
  CHECK(read(18, [&](ProtoWriter& out) { out.packed(12, std::span<const double>(doubles)); }) ==
        "complex128[2] [(1,2), (3,4)]");
  const std::vector<std::int32_t> bits{0x3f80, 0x4000};
  CHECK(read(14, [&](ProtoWriter& out) { out.packed(13, std::span<const std::int32_t>(bits)); }) ==
        "bfloat16[2] [1, 2]");
  CHECK(read(22, [](ProtoWriter& out) {
          out.uint64(16, 0xffffffffu);
          out.uint64(16, 0);
        }) == "uint32[2] [4294967295, 0]");
  CHECK(read(23, [](ProtoWriter& out) {
          out.uint64(17, ~std::uint64_t{0});
          out.uint64(17, 0);
        }) == "uint64[2] [18446744073709551615, 0]");
}

TEST_CASE("a version 1 checkpoint with a tensor of too many dimensions gives the others") {
  std::string meta, value, file;
  ProtoWriter(meta).message(1, [&](ProtoWriter& about) {
    for (const auto& [name, rank] : {std::pair("a", 1), std::pair("b", 9)}) {
      about.message(1, [&, name = name, rank = rank](ProtoWriter& tensor) {
        tensor.bytes(1, name);
        tensor.message(2, [&](ProtoWriter& shape) {
          for (int i = 0; i < rank; ++i) shape.message(2, [](ProtoWriter& dim) { dim.uint64(1, 1); });
        });
        tensor.uint64(3, 1);
        tensor.message(4, [&](ProtoWriter& slice) {
          for (int i = 0; i < rank; ++i) slice.message(1, [](ProtoWriter&) {});
        });
      });
    }
  });
  ProtoWriter(value).message(2, [&](ProtoWriter& slice) {
    slice.bytes(1, "a");
    slice.message(3, [](ProtoWriter& tensor) { tensor.float32(5, 2); });
  });
  dflow::SortedTableWriter table(file);
  table.add("", meta);
  table.add(dflow::TensorSlice::whole(1).key("a"), value);
  table.finish();
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/v1", std::string_view(file));
  const dflow::SavedSlicesReader reader(files, "/v1");
  CHECK(bitwise_equal(reader.read("a"), Tensor<float>({1}, {2})));
  CHECK(reader.find("b")->dtype == dflow::DType::invalid);
  CHECK(contains(error_of([&] { return reader.read("b"); }, Code::unimplemented), "more than 8 dimensions"));
}

TEST_CASE("a version 1 checkpoint cut short anywhere is DataLoss") {
  const std::string file = *dflow::from_base64(slices_file);
  for (std::size_t length = 0; length < file.size(); ++length) {
    CHECK(code_of([&] { return read_slices(std::string_view(file).substr(0, length)); }) == Code::data_loss);
  }
}

TEST_CASE("a flipped bit of a version 1 checkpoint is found, or does not matter") {
  const std::string file = *dflow::from_base64(slices_file);
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    bool is_right = false;
    const Code code = code_of([&] { is_right = are_expected_slices(read_slices(damaged)); });
    CHECK((code == Code::data_loss || (code == Code::ok && is_right)));
  }
}

TEST_CASE("a version 1 checkpoint whose values are not those of its shapes and types is an error") {
  const auto code = [](std::uint64_t dtype, const std::function<void(ProtoWriter&)>& fill,
                       std::uint64_t min_consumer = 0) {
    return code_of([&] { return read_slices(file_of_slice(dtype, fill, min_consumer)); });
  };
  const auto ints = [](const std::vector<std::int32_t>& values) {
    return [=](ProtoWriter& out) { out.packed(7, std::span<const std::int32_t>(values)); };
  };
  CHECK(code(3, ints({1, 2})) == Code::ok);
  CHECK(code(3, ints({1, 2}), 1) == Code::ok);
  CHECK(code(3, ints({1, 2}), 2) == Code::unimplemented);
  CHECK(code(3, ints({1})) == Code::data_loss);
  CHECK(code(3, ints({1, 2, 3})) == Code::data_loss);
  CHECK(code(3, ints({})) == Code::data_loss);
  CHECK(code(1, ints({1, 2})) == Code::data_loss);    // float, in another field
  CHECK(code(4, ints({1, 256})) == Code::data_loss);  // uint8
  CHECK(code(6, ints({1, -129})) == Code::data_loss);
  CHECK(code(7, ints({1, 2})) == Code::data_loss);
  CHECK(code(20, ints({1, 2})) == Code::unimplemented);
  CHECK(code(0, ints({1, 2})) == Code::unimplemented);
}
