#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/base64.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/checkpoint/parts/sorted_table.hpp>
#include <dflow/io/proto/proto_writer.hpp>

#include <complex>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::string_view_literals;
using dflow::Code;
using dflow::NamedTensor;
using dflow::ProtoWriter;
using dflow::Shape;
using dflow::Tensor;

namespace {

// By TensorFlow 2.21, w being [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]] in float:
//   tf.raw_ops.SaveV2(prefix, ['s', 'n', 'w', 'w', 'b', 'h', 'e', 'u', 'c', 'bf'],
//     ['', '', '4 3 0,2:-', '4 3 2,2:-', '', '', '', '', '', ''], [[['a', '', 'bc']], int64 300, w[:2], w[2:],
//     [True, False], half [.5, -2], float of shape (0, 3), uint32 [2**32 - 1], complex64 [1+2j], bfloat16 [1.5]])
constexpr std::string_view bundle_index =
    "AAAGCAEaAggBAAoVAHcAAQECgIKAfwgBEggSAggCEgIIAyASKBg1wNs9FwYEFYKCgH8IARIIEgIIAhICCAMgKigYNdSETgIAARFiCAoSBBICCAIg"
    "QigCNV+wzoEBARFmCA4SBBICCAEgVCgCNWIh+B8AARFjCAgSBBICCAEgTCgINVk85TUAARFlCAESBhIAEgIIAyBINdjqgqIAARFoCBMSBBICCAIg"
    "RCgENZMvM00AAQ1uCAkSACAKKAg18v5bnQABE3MIBxIIEgIIARICCAMoCjVQ6vJVAAERdQgWEgQSAggBIEgoBDXX6oKiAAEedwgBEggSAggEEgII"
    "AzoGCgIQAgoAOggKBAgCEAIKAAAAAAABAAAAANQaGgcAAAAAAQAAAADA8qGwAAEDeACXAgAAAAABAAAAAPw65o+cAgipAg8AAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1R9s=";
constexpr std::string_view bundle_data =
    "AQACxDVcKGFiYywBAAAAAAAAAAAAAAAAgD8AAABAAABAQAAAgEAAAKBAAADAQAAA4EAAAABBAAAQQQAAIEEAADBBAQAAOADA/////wAAgD8AAABA"
    "wD8=";

struct BundleFiles {
  BundleFiles() : BundleFiles(*dflow::from_base64(bundle_index), *dflow::from_base64(bundle_data)) {}
  BundleFiles(std::string_view index, std::string_view data) {
    files.write_file_atomically("/m.index", index);
    files.write_file_atomically("/m.data-00000-of-00001", data);
  }
  std::vector<NamedTensor> read_all() {
    const dflow::TensorBundleReader reader(files, "/m");
    std::vector<NamedTensor> tensors;
    for (const auto& [name, entry] : reader.entries()) tensors.push_back({name, reader.read(name)});
    return tensors;
  }
  dflow::MemoryFileSystem files;
};

std::vector<NamedTensor> bundle_tensors() {
  return {{"b", Tensor<bool>({2}, {true, false})},
          {"bf", Tensor<dflow::BFloat16>({1}, {dflow::BFloat16(1.5f)})},
          {"c", Tensor<std::complex<float>>({1}, {{1, 2}})},
          {"e", Tensor<float>(Shape{0, 3})},
          {"h", Tensor<dflow::Half>({2}, {dflow::Half(0.5f), dflow::Half(-2.0f)})},
          {"n", Tensor<std::int64_t>(300)},
          {"s", Tensor<std::string>({1, 3}, {"a", "", "bc"})},
          {"u", Tensor<std::uint32_t>({1}, {0xffffffffu})},
          {"w", Tensor<float>({4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}};
}

bool equal_tensors(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || !bitwise_equal(a[i].tensor, b[i].tensor)) return false;
  }
  return true;
}

using BundleFields = std::function<void(ProtoWriter&)>;

std::string bundle_proto(const BundleFields& fill) {
  std::string bytes;
  ProtoWriter out(bytes);
  fill(out);
  return bytes;
}

/// An index with the given entries behind its header.
std::string bundle_index_of(
    const std::map<std::string, BundleFields>& entries,
    const BundleFields& header = [](ProtoWriter& out) { out.uint64(1, 1); }) {
  std::string bytes;
  dflow::SortedTableWriter table(bytes);
  table.add("", bundle_proto(header));
  for (const auto& [key, fill] : entries) table.add(key, bundle_proto(fill));
  table.finish();
  return bytes;
}

/// An entry of a vector of floats in eight bytes, all ones.
BundleFields floats_at(std::uint64_t offset, std::int64_t count) {
  return [=](ProtoWriter& out) {
    out.uint64(1, 1);
    out.message(2, [&](ProtoWriter& shape) { shape.message(2, [&](ProtoWriter& dim) { dim.int64(1, count); }); });
    out.uint64(4, offset);
    out.uint64(5, static_cast<std::uint64_t>(4 * count));
    out.fixed32(6, dflow::mask_crc32c(dflow::crc32c(std::string(static_cast<std::size_t>(4 * count), '\1'))));
  };
}

/// The entry of a vector of two floats that is stored in slices of [begin, begin + length).
BundleFields floats_in_slices(const std::vector<std::pair<std::int64_t, std::int64_t>>& slices) {
  return [=](ProtoWriter& out) {
    out.uint64(1, 1);
    out.message(2, [&](ProtoWriter& shape) { shape.message(2, [&](ProtoWriter& dim) { dim.int64(1, 2); }); });
    for (const auto& [begin, length] : slices) {
      out.message(7, [&](ProtoWriter& slice) {
        slice.message(1, [&](ProtoWriter& extent) {
          extent.int64(1, begin);
          extent.int64(2, length);
        });
      });
    }
  };
}

std::string slice_key(std::int64_t begin, std::int64_t length) {
  return dflow::TensorSlice{{begin}, {length}}.key("a");
}

Code code_of_bundle(std::string_view index) {
  return code_of([&] { BundleFiles(index, std::string(8, '\1')).read_all(); });
}

}  // namespace

TEST_CASE("a tensor bundle that TensorFlow wrote is read, strings and slices too") {
  BundleFiles bundle;
  CHECK(equal_tensors(bundle.read_all(), bundle_tensors()));
  const dflow::TensorBundleReader reader(bundle.files, "/m");
  REQUIRE(reader.find("w") != nullptr);
  CHECK(reader.find("w")->shape == Shape{4, 3});
  CHECK(reader.find("w")->slices.size() == 2);
  CHECK(reader.find("x") == nullptr);
  CHECK(contains(error_of([&] { return reader.read("x"); }, Code::not_found), "'x'"));
}

TEST_CASE("tensors of every type go to a tensor bundle and back") {
  std::vector<NamedTensor> tensors;
  dflow::for_each_type<dflow::AllTypes>([&]<class T>() {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{2, 3}}) {
      Tensor<T> tensor(shape);
      int i = 1;
      for (T& element : tensor) {
        if constexpr (std::is_same_v<T, std::string>) {
          element = std::string(static_cast<std::size_t>(50 * i++), '\xff');
        } else {
          element = static_cast<T>(static_cast<float>(i++ % 2));
        }
      }
      tensors.push_back({dflow::str_cat(dflow::dtype_name(dflow::dtype_of<T>), shape.to_string()), tensor});
    }
  });
  dflow::MemoryFileSystem files;
  dflow::write_tensor_bundle(files, "/models/m", tensors);
  const dflow::TensorBundleReader reader(files, "/models/m");
  CHECK(reader.entries().size() == tensors.size());
  for (const auto& [name, tensor] : tensors) CHECK(bitwise_equal(reader.read(name), tensor));
  CHECK(files.list_directory("/models") == std::vector<std::string>{"m.data-00000-of-00001", "m.index"});
}

TEST_CASE("the data file of a tensor bundle is TensorFlow's, to the byte") {
  BundleFiles own;
  std::vector<NamedTensor> tensors = bundle_tensors();
  tensors.pop_back();  // TensorFlow wrote the last tensor here first, and in slices
  dflow::write_tensor_bundle(own.files, "/n", tensors);
  const std::string data = own.files.read_file("/n.data-00000-of-00001");
  CHECK(data ==
        "\1\0\xc0\x3f\0\0\x80?\0\0\0@\0\x38\0\xc0\x2c\1\0\0\0\0\0\0\1\0\2\xc4\x35\x5c\x28"
        "abc\xff\xff\xff\xff"sv);
}

TEST_CASE("a tensor bundle is replaced by another one, or by one that is not read if that fails") {
  const std::vector<NamedTensor> before{{"a", Tensor<float>(1.0f)}}, after{{"a", Tensor<float>(2.0f)}};
  for (std::uint64_t change = 1;; ++change) {
    dflow::MemoryFileSystem files;
    dflow::write_tensor_bundle(files, "/m/b", before);
    files.fail_change(change, dflow::Status::unavailable("the disk is gone"), true);
    const Code code = code_of([&] { dflow::write_tensor_bundle(files, "/m/b", after); });
    files.crash();
    std::vector<NamedTensor> read;
    const Code read_code = code_of([&] { read = {{"a", dflow::TensorBundleReader(files, "/m/b").read("a")}}; });
    CHECK((read_code == Code::data_loss || equal_tensors(read, before) || equal_tensors(read, after)));
    if (code == Code::ok) {
      CHECK(equal_tensors(read, after));
      break;
    }
  }
}

TEST_CASE("a tensor bundle with a tensor that cannot be read gives the others") {
  const auto of_many_dimensions = [](ProtoWriter& out) {
    out.uint64(1, 1);
    out.message(2, [&](ProtoWriter& shape) {
      for (int i = 0; i < 9; ++i) shape.message(2, [](ProtoWriter& dim) { dim.int64(1, 1); });
    });
    out.uint64(4, 4);
    out.uint64(5, 4);
  };
  const auto in_slices_of_many_dimensions = [](ProtoWriter& out) {
    floats_in_slices({})(out);
    out.message(7, [](ProtoWriter& slice) {
      for (int i = 0; i < 9; ++i) slice.message(1, [](ProtoWriter&) {});
    });
  };
  const auto of_8_bits = [](ProtoWriter& out) {
    floats_at(0, 1)(out);
    out.uint64(1, 24);
  };
  for (const BundleFields& field :
       {BundleFields(of_many_dimensions), BundleFields(in_slices_of_many_dimensions), BundleFields(of_8_bits)}) {
    BundleFiles bundle(bundle_index_of({{"a", field}, {"b", floats_at(4, 1)}}), std::string(8, '\1'));
    const dflow::TensorBundleReader reader(bundle.files, "/m");
    REQUIRE(reader.entries().size() == 2);
    CHECK(reader.find("a")->dtype == dflow::DType::invalid);
    CHECK(reader.find("a")->problem.code() == Code::unimplemented);
    CHECK(contains(error_of([&] { return reader.read("a"); }, Code::unimplemented), "tensor 'a' of checkpoint '/m'"));
    CHECK(reader.read("b").num_elements() == 1);
  }
}

TEST_CASE("an index or a data file of a tensor bundle cut short anywhere is DataLoss") {
  const std::string index = *dflow::from_base64(bundle_index), data = *dflow::from_base64(bundle_data);
  for (std::size_t length = 0; length < index.size(); ++length) {
    CHECK(code_of([&] { BundleFiles(std::string_view(index).substr(0, length), data).read_all(); }) == Code::data_loss);
  }
  for (std::size_t length = 0; length < data.size(); ++length) {
    CHECK(code_of([&] { BundleFiles(index, std::string_view(data).substr(0, length)).read_all(); }) == Code::data_loss);
  }
}

TEST_CASE("a flipped bit of a tensor bundle is found, or does not matter") {
  const std::string index = *dflow::from_base64(bundle_index), data = *dflow::from_base64(bundle_data);
  const auto flipped = [](std::string bytes, std::size_t bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    return bytes;
  };
  for (std::size_t bit = 0; bit < 8 * index.size(); ++bit) {
    std::vector<NamedTensor> read;
    const Code code = code_of([&] { read = BundleFiles(flipped(index, bit), data).read_all(); });
    CHECK((code == Code::data_loss || (code == Code::ok && equal_tensors(read, bundle_tensors()))));
  }
  for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
    CHECK(code_of([&] { BundleFiles(index, flipped(data, bit)).read_all(); }) == Code::data_loss);
  }
}

TEST_CASE("a tensor bundle whose header or entries cannot be is an error") {
  CHECK(code_of_bundle(bundle_index_of({{"a", floats_at(0, 2)}})) == Code::ok);
  CHECK(code_of_bundle(bundle_index_of({{"a", floats_at(0, 1)}, {"b", floats_at(4, 1)}})) == Code::ok);
  const auto with_header = [](const BundleFields& header) { return code_of_bundle(bundle_index_of({}, header)); };
  CHECK(with_header([](ProtoWriter&) {}) == Code::data_loss);  // no shards
  CHECK(with_header([](ProtoWriter& out) { out.int64(1, -1); }) == Code::data_loss);
  CHECK(with_header([](ProtoWriter& out) { out.uint64(1, 100000); }) == Code::data_loss);
  CHECK(with_header([](ProtoWriter& out) { out.uint64(1, 99999); }) == Code::not_found);
  CHECK(with_header([](ProtoWriter& out) {
          out.uint64(1, 1);
          out.uint64(2, 1);  // big-endian
        }) == Code::unimplemented);
  CHECK(with_header([](ProtoWriter& out) {
          out.uint64(1, 1);
          out.message(3, [](ProtoWriter& version) { version.uint64(2, 2); });
        }) == Code::unimplemented);
  CHECK(code_of_bundle(bundle_index_of({{"a", floats_at(4, 2)}})) == Code::data_loss);  // past it
  CHECK(code_of_bundle(bundle_index_of({{"a", floats_at(~std::uint64_t{0}, 1)}})) == Code::data_loss);
  CHECK(code_of_bundle(bundle_index_of({{"a", floats_at(0, 2)}, {"b", floats_at(0, 2)}})) ==
        Code::data_loss);  // shared
  CHECK(code_of_bundle(bundle_index_of({{"a", [](ProtoWriter& out) {
                                           floats_at(0, 2)(out);
                                           out.message(2, [](ProtoWriter& shape) {
                                             shape.message(
                                                 2, [](ProtoWriter& dim) { dim.uint64(1, std::uint64_t{1} << 62); });
                                           });
                                         }}})) == Code::data_loss);
  const auto entry = [](std::uint32_t number, std::uint64_t value) {
    return code_of_bundle(bundle_index_of({{"a", [=](ProtoWriter& out) {
                                              floats_at(0, 2)(out);
                                              out.uint64(number, value);
                                            }}}));
  };
  CHECK(entry(5, 4) == Code::data_loss);       // another size
  CHECK(entry(1, 9) == Code::data_loss);       // another type
  CHECK(entry(3, 1) == Code::data_loss);       // no such shard
  CHECK(entry(1, 20) == Code::unimplemented);  // a handle of a resource
  CHECK(entry(1, 24) == Code::unimplemented);  // an 8-bit float
  CHECK(entry(1, 7) == Code::data_loss);       // strings with a wrong checksum of the lengths
  std::string no_header;
  dflow::SortedTableWriter table(no_header);
  table.add("a", "");
  table.finish();
  CHECK(code_of_bundle(no_header) == Code::data_loss);
}

TEST_CASE("slices of a tensor bundle cover the tensor once, or it is DataLoss") {
  const auto code = [](const std::vector<std::pair<std::int64_t, std::int64_t>>& slices,
                       const std::map<std::string, BundleFields>& entries) {
    std::map<std::string, BundleFields> all = entries;
    all["a"] = floats_in_slices(slices);
    return code_of_bundle(bundle_index_of(all));
  };
  const std::string first = slice_key(0, 1), second = slice_key(1, 1), both = slice_key(0, 2);
  CHECK(code({{0, 1}, {1, 1}}, {{first, floats_at(0, 1)}, {second, floats_at(4, 1)}}) == Code::ok);
  CHECK(code({{0, 1}}, {{first, floats_at(0, 1)}}) == Code::data_loss);
  CHECK(code({{0, 1}, {1, 1}}, {{first, floats_at(0, 1)}}) == Code::data_loss);
  CHECK(code({{0, 1}, {0, 1}}, {{first, floats_at(0, 1)}}) == Code::data_loss);
  CHECK(code({{0, 1}, {1, 2}}, {{first, floats_at(0, 1)}, {slice_key(1, 2), floats_at(4, 1)}}) == Code::data_loss);
  CHECK(code({{0, 2}}, {{both, floats_at(0, 1)}}) == Code::data_loss);
  CHECK(code({{0, 2}}, {{both, floats_in_slices({{0, 2}})}}) == Code::data_loss);
}

TEST_CASE("what a tensor bundle has no room for is not written") {
  dflow::MemoryFileSystem files;
  const auto code = [&](const std::vector<NamedTensor>& tensors) {
    return code_of([&] { dflow::write_tensor_bundle(files, "/m", tensors); });
  };
  const Tensor<float> one(1.0f);
  CHECK(code({{"", one}}) == Code::invalid_argument);
  CHECK(code({{std::string("\0a", 2), one}}) == Code::invalid_argument);
  CHECK(code({{"a", one}, {"a", one}}) == Code::invalid_argument);
  CHECK(code({{"a", dflow::AnyTensor()}}) == Code::invalid_argument);
  CHECK(files.list_directory("/").empty());
}
