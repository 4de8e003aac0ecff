#include <dflow/io/npz.hpp>

#include "catch.hpp"

#include <dflow/base/files/base64.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/compression/zlib_stream.hpp>
#include <dflow/io/npy.hpp>
#include <dflow/io/zip.hpp>

#include "support/errors.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using dflow::Code;
using dflow::NamedTensor;
using dflow::Tensor;

namespace {

// numpy.savez(f, w=numpy.arange(4, dtype='<f4').reshape(2, 2), n=numpy.int32(7), é=numpy.array([1, 2, 3])) by
// NumPy 2.4.6.
constexpr std::string_view stored_npz =
    "UEsDBC0AAAAAAAAAIQCR9Ofb//////////8FABQAdy5ucHkBABAAkAAAAAAAAACQAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxmNCcsICdm"
    "b3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCAyKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
    "ICAgICAgICAgICAgICAKAAAAAAAAgD8AAABAAABAQFBLAwQtAAAAAAAAACEADC2xtP//////////BQAUAG4ubnB5AQAQAIQAAAAAAAAAhAAAAAAA"
    "AACTTlVNUFkBAHYAeydkZXNjcic6ICc8aTQnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoKSwgfSAgICAgICAgICAgICAgICAg"
    "ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgCgcAAABQSwMELQAACAAAAAAhALyRVY7//////////wYAFADDqS5u"
    "cHkBABAAmAAAAAAAAACYAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxpOCcsICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgz"
    "LCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAKAQAAAAAAAAACAAAAAAAAAAMA"
    "AAAAAAAAUEsBAi0DLQAAAAAAAAAhAJH059uQAAAAkAAAAAUAAAAAAAAAAAAAAIABAAAAAHcubnB5UEsBAi0DLQAAAAAAAAAhAAwtsbSEAAAAhAAA"
    "AAUAAAAAAAAAAAAAAIABxwAAAG4ubnB5UEsBAi0DLQAACAAAAAAhALyRVY6YAAAAmAAAAAYAAAAAAAAAAAAAAIABggEAAMOpLm5weVBLBQYAAAAA"
    "AwADAJoAAABSAgAAAAA=";

// The same by numpy.savez_compressed.
constexpr std::string_view compressed_npz =
    "UEsDBC0AAAAIAAAAIQCR9Ofb//////////8FABQAdy5ucHkBABAAkAAAAAAAAABQAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG6TZqKuo6Ce"
    "ll9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GkY6CkaaOgq1CmQDLgYwaLAHEg5A5AAAUEsDBC0AAAAIAAAAIQAMLbG0//////////8FABQAbi5u"
    "cHkBABAAhAAAAAAAAABGAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG6TaaKuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5Gpo6CrUK"
    "FAEudgYGBgBQSwMELQAACAgAAAAhALyRVY7//////////wYAFADDqS5ucHkBABAAmAAAAAAAAABNAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6l"
    "oG6TaaGuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GsY6mjoKtQoUAC5GBghggtLMUBoAUEsBAi0DLQAAAAgAAAAhAJH059tQAAAAkAAA"
    "AAUAAAAAAAAAAAAAAIABAAAAAHcubnB5UEsBAi0DLQAAAAgAAAAhAAwtsbRGAAAAhAAAAAUAAAAAAAAAAAAAAIABhwAAAG4ubnB5UEsBAi0DLQAA"
    "CAgAAAAhALyRVY5NAAAAmAAAAAYAAAAAAAAAAAAAAIABBAEAAMOpLm5weVBLBQYAAAAAAwADAJoAAACJAQAAAAA=";

// The file of the test of mixed entries below.
constexpr std::string_view mixed_npz =
    "UEsDBBQAAAAAAAAAIQC8kVWOmAAAAJgAAAAFAAAAeC5ucHmTTlVNUFkBAHYAeydkZXNjcic6ICc8aTgnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNl"
    "LCAnc2hhcGUnOiAoMywpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgCgEAAAAA"
    "AAAAAgAAAAAAAAADAAAAAAAAAFBLAwQUAAAAAAAAACEAr6wbVgcAAAAHAAAACQAAAG1ldGEuanNvbnsiYSI6MX1QSwMEFAAAAAAAAAAhAAAAAAAA"
    "AAAAAAAAAAQAAABkaXIvUEsDBBQAAAAAAAAAIQCTAfBGGAEAABgBAAAFAAAAby5ucHmTTlVNUFkBAHYAeydkZXNjcic6ICd8TycsICdmb3J0cmFu"
    "X29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
    "ICAgICAgICAgCoAElY0AAAAAAAAAjBZudW1weS5fY29yZS5tdWx0aWFycmF5lIwMX3JlY29uc3RydWN0lJOUjAVudW1weZSMB25kYXJyYXmUk5RL"
    "AIWUQwFilIeUUpQoSwFLAoWUaAOMBWR0eXBllJOUjAJPOJSJiIeUUpQoSwOMAXyUTk5OSv////9K/////0s/dJRiiV2UKH2UTmV0lGIuUEsDBD8A"
    "AgAOAAAAIQCq+rscXgAAAIgAAAAFAAAAeS5ucHkJBAUAXQAAgAAASZOGpN7TgnlqWw0jODarnZ1MTe7jbcMd62ciZu4cpEC6+JnXSScm4hcteWkz"
    "OW5HJTa8/PyVCJf4Ey5j+JRIAHrUyEFZFycJmOK1gshvk//+rUoAUEsBAhQDFAAAAAAAAAAhALyRVY6YAAAAmAAAAAUAAAAAAAAAAAAAAIABAAAA"
    "AHgubnB5UEsBAhQDFAAAAAAAAAAhAK+sG1YHAAAABwAAAAkAAAAAAAAAAAAAAIABuwAAAG1ldGEuanNvblBLAQIUAxQAAAAAAAAAIQAAAAAAAAAA"
    "AAAAAAAEAAAAAAAAAAAAAACAAekAAABkaXIvUEsBAhQDFAAAAAAAAAAhAJMB8EYYAQAAGAEAAAUAAAAAAAAAAAAAAIABCwEAAG8ubnB5UEsBAj8D"
    "PwACAA4AAAAhAKr6uxxeAAAAiAAAAAUAAAAAAAAAAAAAAIABRgIAAHkubnB5UEsFBgAAAAAFAAUAAgEAAMcCAAAAAA==";

// The same without the last entry.
constexpr std::string_view objects_npz =
    "UEsDBBQAAAAAAAAAIQC8kVWOmAAAAJgAAAAFAAAAeC5ucHmTTlVNUFkBAHYAeydkZXNjcic6ICc8aTgnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNl"
    "LCAnc2hhcGUnOiAoMywpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgCgEAAAAA"
    "AAAAAgAAAAAAAAADAAAAAAAAAFBLAwQUAAAAAAAAACEAr6wbVgcAAAAHAAAACQAAAG1ldGEuanNvbnsiYSI6MX1QSwMEFAAAAAAAAAAhAAAAAAAA"
    "AAAAAAAAAAQAAABkaXIvUEsDBBQAAAAAAAAAIQCTAfBGGAEAABgBAAAFAAAAby5ucHmTTlVNUFkBAHYAeydkZXNjcic6ICd8TycsICdmb3J0cmFu"
    "X29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
    "ICAgICAgICAgCoAElY0AAAAAAAAAjBZudW1weS5fY29yZS5tdWx0aWFycmF5lIwMX3JlY29uc3RydWN0lJOUjAVudW1weZSMB25kYXJyYXmUk5RL"
    "AIWUQwFilIeUUpQoSwFLAoWUaAOMBWR0eXBllJOUjAJPOJSJiIeUUpQoSwOMAXyUTk5OSv////9K/////0s/dJRiiV2UKH2UTmV0lGIuUEsBAhQD"
    "FAAAAAAAAAAhALyRVY6YAAAAmAAAAAUAAAAAAAAAAAAAAIABAAAAAHgubnB5UEsBAhQDFAAAAAAAAAAhAK+sG1YHAAAABwAAAAkAAAAAAAAAAAAA"
    "AIABuwAAAG1ldGEuanNvblBLAQIUAxQAAAAAAAAAIQAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAACAAekAAABkaXIvUEsBAhQDFAAAAAAAAAAhAJMB"
    "8EYYAQAAGAEAAAUAAAAAAAAAAAAAAIABCwEAAG8ubnB5UEsFBgAAAAAEAAQAzwAAAEYCAAAAAA==";

bool npz_has_zlib() {
  return code_of([] { return dflow::deflated({}, dflow::CompressionFormat::raw); }) != Code::unimplemented;
}

void check_golden(const std::vector<NamedTensor>& tensors) {
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].name == "w");
  CHECK(bitwise_equal(tensors[0].tensor, Tensor<float>({2, 2}, {0, 1, 2, 3})));
  CHECK(tensors[1].name == "n");
  CHECK(bitwise_equal(tensors[1].tensor, Tensor<std::int32_t>(7)));
  CHECK(tensors[2].name == "\xc3\xa9");
  CHECK(bitwise_equal(tensors[2].tensor, Tensor<std::int64_t>({3}, {1, 2, 3})));
}

std::vector<NamedTensor> read_archive(std::string_view archive) {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/a.npz", archive);
  return dflow::read_npz(files, "/a.npz");
}

}  // namespace

TEST_CASE("npz files that NumPy wrote are read, stored and compressed") {
  check_golden(read_archive(*dflow::from_base64(stored_npz)));
  if (npz_has_zlib()) check_golden(read_archive(*dflow::from_base64(compressed_npz)));
}

TEST_CASE("tensors go to npz files and back, in their order") {
  dflow::MemoryFileSystem files;
  const std::vector<NamedTensor> tensors{{"z/layer:0", Tensor<float>::full({100, 100}, 0.25f)},
                                         {"a", Tensor<std::string>({2}, {"x", "yz"})},
                                         {"empty", Tensor<double>(dflow::Shape{0, 4})},
                                         {"b.npy", Tensor<bool>({2}, {true, false})}};
  for (const bool is_compressed : {false, true}) {
    if (is_compressed && !npz_has_zlib()) continue;
    dflow::write_npz(files, "/models/w.npz", tensors, {.is_compressed = is_compressed});
    const std::vector<NamedTensor> again = dflow::read_npz(files, "/models/w.npz");
    REQUIRE(again.size() == tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      CHECK(again[i].name == tensors[i].name);
      CHECK(bitwise_equal(again[i].tensor, tensors[i].tensor));
    }
    CHECK((files.file_size("/models/w.npz") < 10000) == is_compressed);
    CHECK(bitwise_equal(dflow::read_npz(files, "/models/w.npz", "a"), tensors[1].tensor));
    CHECK(contains(error_of([&] { return dflow::read_npz(files, "/models/w.npz", "c"); }, Code::not_found), "'a'"));
  }
  dflow::write_npz(files, "/none.npz", {});
  CHECK(dflow::read_npz(files, "/none.npz").empty());
}

TEST_CASE("compressed texts of every number and kind are read, however few bytes they are packed in") {
  if (!npz_has_zlib()) return;
  for (std::int64_t n = 1; n < 400; ++n) {
    INFO(n << " texts");
    Tensor<std::string> same(dflow::Shape{n}), numbered(dflow::Shape{n});
    for (std::int64_t i = 0; i < n; ++i) {
      same.data()[i] = "a";
      numbered.data()[i] = "label" + std::to_string(i % 3);
    }
    dflow::MemoryFileSystem files;
    dflow::write_npz(files, "/t.npz", std::vector<NamedTensor>{{"same", same}, {"numbered", numbered}},
                     {.is_compressed = true});
    CHECK(bitwise_equal(dflow::read_npz(files, "/t.npz", "same"), same));
    CHECK(bitwise_equal(dflow::read_npz(files, "/t.npz", "numbered"), numbered));
  }
}

// zipfile of Python 3.11, NumPy 2.4.6: "x.npy" with numpy.save of [1, 2, 3] of int64, "meta.json" with {"a":1}, a
// folder "dir/", "o.npy" with numpy.save of an array of two objects, which is pickled, "y.npy" with numpy.save of
// float32 [[1], [2]] by LZMA.
TEST_CASE("an npz file with entries that cannot be read gives the others, and lists all") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/m.npz", std::string_view(*dflow::from_base64(mixed_npz)));
  const dflow::NpzReader reader(files, "/m.npz");
  REQUIRE(reader.entries().size() == 5);
  const auto& entries = reader.entries();
  CHECK(entries[0].name == "x");
  CHECK(entries[0].dtype == dflow::DType::int64);
  CHECK(entries[0].shape == dflow::Shape{3});
  CHECK(entries[0].problem.ok());
  CHECK(entries[1].name == "meta.json");
  CHECK(mentions(entries[1].problem, "/m.npz: entry 'meta.json' at offset"));
  CHECK(mentions(entries[1].problem, "it is no array"));
  CHECK(entries[2].name == "dir/");
  CHECK(entries[3].name == "o");
  CHECK(mentions(entries[3].problem, "'|O'"));
  CHECK(entries[4].name == "y");
  CHECK(mentions(entries[4].problem, "packed in way 14"));
  for (std::size_t i = 1; i < 5; ++i) {
    CHECK(entries[i].dtype == dflow::DType::invalid);
    CHECK(status_of([&] { return reader.read(entries[i].name); }) == entries[i].problem);
    CHECK(entries[i].problem.code() == Code::unimplemented);
  }
  const Tensor<std::int64_t> x({3}, {1, 2, 3});
  CHECK(reader.contains("x"));
  CHECK_FALSE(reader.contains("x.npy"));
  CHECK(bitwise_equal(reader.read("x"), x));
  CHECK(
      contains(error_of([&] { return reader.read("z"); }, Code::not_found), "/m.npz: there is no array 'z', only 'x'"));
  CHECK(bitwise_equal(dflow::read_npz(files, "/m.npz", "x"), x));

  // An array that cannot be unpacked is no array that is left out.
  CHECK(contains(error_of([&] { return dflow::read_npz(files, "/m.npz"); }, Code::unimplemented), "packed in way 14"));
  files.write_file_atomically("/objects.npz", std::string_view(*dflow::from_base64(objects_npz)));
  const std::vector<NamedTensor> others = dflow::read_npz(files, "/objects.npz");
  REQUIRE(others.size() == 1);
  CHECK(others[0].name == "x");
  CHECK(bitwise_equal(others[0].tensor, x));
}

TEST_CASE("an npz file with two entries for one name is DataLoss") {
  dflow::MemoryFileSystem files;
  const std::string one = dflow::to_npy(Tensor<float>(1.0f)), two = dflow::to_npy(Tensor<float>(2.0f));
  {
    dflow::AtomicFile file(files, "/a.npz");
    dflow::ZipWriter archive(file, {});
    for (const auto& [name, content] : {std::pair("a.npy", &one), std::pair("b", &one), std::pair("a", &two)}) {
      const auto bytes = std::as_bytes(std::span(*content));
      archive.add(name, std::span(&bytes, 1));
    }
    archive.finish();
    file.finish();
  }
  const auto is_refused = [](const auto& read) {
    return contains(error_of(read, Code::data_loss), "/a.npz: array 'a' stands twice");
  };
  CHECK(is_refused([&] { return dflow::NpzReader(files, "/a.npz"); }));
  CHECK(is_refused([&] { return dflow::read_npz(files, "/a.npz"); }));
  CHECK(is_refused([&] { return dflow::read_npz(files, "/a.npz", "a"); }));
}

TEST_CASE("an array of an npz file is not left out because it is damaged") {
  const std::string archive = *dflow::from_base64(objects_npz);
  const auto code_with = [&](std::string_view text, char c) {
    std::string damaged = archive;
    damaged[archive.find(text) + 1] = c;
    return code_of([&] { return read_archive(damaged); });
  };
  CHECK(code_with("\x93NUMPY", 'n') == Code::data_loss);  // the first entry is an array by its name
  CHECK(code_with("<i8", 'g') == Code::data_loss);        // a type that dflow lacks, by a wrong checksum
  CHECK(code_with("{\"a\":1}", 'b') == Code::data_loss);
}

TEST_CASE("a reader of an npz file that was moved from says so") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/a.npz", std::string_view(*dflow::from_base64(stored_npz)));
  dflow::NpzReader reader(files, "/a.npz");
  const dflow::NpzReader moved = std::move(reader);
  CHECK(bitwise_equal(moved.read("n"), Tensor<std::int32_t>(7)));
  // NOLINTNEXTLINE(bugprone-use-after-move,hicpp-invalid-access-moved)
  CHECK(code_of([&] { return reader.read("n"); }) == Code::failed_precondition);
}

TEST_CASE("an npz file cut short anywhere is DataLoss") {
  const std::string archive = *dflow::from_base64(stored_npz);
  for (std::size_t length = 0; length < archive.size(); ++length) {
    CHECK(code_of([&] { return read_archive(std::string_view(archive).substr(0, length)); }) == Code::data_loss);
  }
}

TEST_CASE("a flipped bit of an npz file is found, or does not matter") {
  for (const std::string_view golden : {stored_npz, compressed_npz}) {
    if (golden == compressed_npz && !npz_has_zlib()) continue;
    const std::string archive = *dflow::from_base64(golden);
    for (std::size_t bit = 0; bit < 8 * archive.size(); ++bit) {
      std::string damaged = archive;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      std::vector<NamedTensor> tensors;
      const Code code = code_of([&] { tensors = read_archive(damaged); });
      if (code == Code::ok) {
        check_golden(tensors);
      } else {
        CHECK((code == Code::data_loss || code == Code::unimplemented));
      }
    }
  }
}

TEST_CASE("npz files have arrays only, whose names differ") {
  dflow::MemoryFileSystem files;
  CHECK(code_of([&] {
          dflow::write_npz(files, "/a.npz", std::vector<NamedTensor>{{"", Tensor<float>(1.0f)}});
        }) == Code::invalid_argument);
  CHECK(code_of([&] {
          dflow::write_npz(files, "/a.npz",
                           std::vector<NamedTensor>{{"a", Tensor<float>(1.0f)}, {"a", Tensor<float>(2.0f)}});
        }) == Code::invalid_argument);
  const std::string message = error_of([&] {
    dflow::write_npz(files, "/a.npz", std::vector<NamedTensor>{{"b", Tensor<dflow::BFloat16>(dflow::Shape{})}});
  });
  CHECK(contains(message, "'b'"));
  CHECK(files.list_directory("/").empty());
}
