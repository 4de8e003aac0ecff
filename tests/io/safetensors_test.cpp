#include <dflow/io/safetensors.hpp>

#include "catch.hpp"

#include <dflow/base/files/base64.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/tensor.hpp>

#include "support/errors.hpp"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::string_view_literals;
using dflow::Code;
using dflow::NamedTensor;
using dflow::Shape;
using dflow::Tensor;

namespace {

// safetensors.numpy.save({'w': [[0, .5], [1, 1.5]] of float32, 'mask': [True, False], 'n': int64 7, 'e': float16 of
// shape (0, 3)}, metadata={'format': 'np', 'who': 'é"\n'}) by safetensors 0.8.0.
constexpr std::string_view golden_safetensors =
    "EAEAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJmb3JtYXQiOiJucCIsIndobyI6IsOpXCJcbiJ9LCJuIjp7ImR0eXBlIjoiSTY0Iiwic2hhcGUiOltd"
    "LCJkYXRhX29mZnNldHMiOlswLDhdfSwidyI6eyJkdHlwZSI6IkYzMiIsInNoYXBlIjpbMiwyXSwiZGF0YV9vZmZzZXRzIjpbOCwyNF19LCJlIjp7"
    "ImR0eXBlIjoiRjE2Iiwic2hhcGUiOlswLDNdLCJkYXRhX29mZnNldHMiOlsyNCwyNF19LCJtYXNrIjp7ImR0eXBlIjoiQk9PTCIsInNoYXBlIjpb"
    "Ml0sImRhdGFfb2Zmc2V0cyI6WzI0LDI2XX19IAcAAAAAAAAAAAAAAAAAAD8AAIA/AADAPwEA";

Tensor<float> golden_weights() { return Tensor<float>({2, 2}, {0, 0.5f, 1, 1.5f}); }

std::string safetensors_file(std::string_view header, std::string_view content, std::uint64_t size) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &size, sizeof(size));
  return file + std::string(header) + std::string(content);
}

std::vector<NamedTensor> read_safetensors_of(std::string_view file) {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/m.safetensors", file);
  return dflow::read_safetensors(files, "/m.safetensors");
}

/// The error code of a file with this header and eight zero bytes of tensors.
Code code_of_safetensors(std::string_view header) {
  return code_of([&] { return read_safetensors_of(safetensors_file(header, "\0\0\0\0\0\0\0\0"sv, header.size())); });
}

std::string safetensors_of(const std::vector<NamedTensor>& tensors, const dflow::SafetensorsMetadata& metadata = {}) {
  dflow::MemoryFileSystem files;
  dflow::write_safetensors(files, "/m.safetensors", tensors, metadata);
  return files.read_file("/m.safetensors");
}

}  // namespace

TEST_CASE("a safetensors file that the format's own library wrote is read, all of it or one tensor") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/m.safetensors", std::string_view(*dflow::from_base64(golden_safetensors)));
  const dflow::SafetensorsReader reader(files, "/m.safetensors");
  CHECK(reader.metadata() == dflow::SafetensorsMetadata{{"format", "np"}, {"who", "\xc3\xa9\"\n"}});
  REQUIRE(reader.entries().size() == 4);
  CHECK(reader.entries()[0].name == "n");
  CHECK(reader.entries()[1].type == "F32");
  CHECK(bitwise_equal(reader.read("n"), Tensor<std::int64_t>(7)));
  CHECK(bitwise_equal(reader.read("w"), golden_weights()));
  CHECK(bitwise_equal(reader.read("e"), Tensor<dflow::Half>(Shape{0, 3})));
  CHECK(bitwise_equal(reader.read("mask"), Tensor<bool>({2}, {true, false})));
  CHECK_FALSE(reader.contains("x"));
  CHECK(contains(error_of([&] { return reader.read("x"); }, Code::not_found), "'x'"));
  CHECK(bitwise_equal(dflow::read_safetensors(files, "/m.safetensors", "w"), golden_weights()));
}

TEST_CASE("a reader of a safetensors file that was moved from says so") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/m.safetensors", std::string_view(*dflow::from_base64(golden_safetensors)));
  dflow::SafetensorsReader reader(files, "/m.safetensors");
  const dflow::SafetensorsEntry entry = reader.entries()[1];
  const dflow::SafetensorsReader moved = std::move(reader);
  CHECK(bitwise_equal(moved.read(entry), golden_weights()));
  // NOLINTBEGIN(bugprone-use-after-move,hicpp-invalid-access-moved)
  CHECK(code_of([&] { return reader.read(entry); }) == Code::failed_precondition);
  CHECK(code_of([&] { return reader.read("w"); }) == Code::failed_precondition);
  // NOLINTEND(bugprone-use-after-move,hicpp-invalid-access-moved)
}

TEST_CASE("a safetensors file is written as the format's own library writes it, to the byte") {
  CHECK(safetensors_of({{"n", Tensor<std::int64_t>(7)},
                        {"w", golden_weights()},
                        {"e", Tensor<dflow::Half>(Shape{0, 3})},
                        {"mask", Tensor<bool>({2}, {true, false})}},
                       {{"format", "np"}, {"who", "\xc3\xa9\"\n"}}) == *dflow::from_base64(golden_safetensors));
}

TEST_CASE("tensors of every type of the format go to safetensors files and back, aligned") {
  std::vector<NamedTensor> tensors;
  dflow::for_each_type<dflow::PlainTypes>([&]<class T>() {
    if constexpr (!std::is_same_v<T, std::complex<double>>) {
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 3}}) {
        Tensor<T> tensor(shape);
        int i = 1;
        for (T& element : tensor) element = static_cast<T>(static_cast<float>(i++ % 2));
        tensors.push_back({dflow::str_cat(dflow::dtype_name(dflow::dtype_of<T>), "/", shape.to_string()), tensor});
      }
    }
  });
  dflow::MemoryFileSystem files;
  dflow::write_safetensors(files, "/a/m.safetensors", tensors);
  const dflow::SafetensorsReader reader(files, "/a/m.safetensors");
  CHECK(reader.entries().size() == tensors.size());
  for (const dflow::SafetensorsEntry& entry : reader.entries()) {
    CHECK(entry.begin % std::min<std::size_t>(8, dflow::size_of(entry.dtype)) == 0);
  }
  for (const auto& [name, tensor] : tensors) CHECK(bitwise_equal(reader.read(name), tensor));
  CHECK(read_safetensors_of(safetensors_of({})).empty());
}

TEST_CASE("a safetensors file cut short anywhere, or too long, is DataLoss") {
  const std::string file = *dflow::from_base64(golden_safetensors);
  for (std::size_t length = 0; length < file.size(); ++length) {
    CHECK(code_of([&] { return read_safetensors_of(std::string_view(file).substr(0, length)); }) == Code::data_loss);
  }
  CHECK(code_of([&] { return read_safetensors_of(file + "x"); }) == Code::data_loss);
}

TEST_CASE("a flipped bit in the header of a safetensors file is found, or names another tensor of as many bytes") {
  const std::string file = *dflow::from_base64(golden_safetensors);
  for (std::size_t bit = 0; bit < 8 * (8 + 272); ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    std::size_t bytes = 26;
    const Code code = code_of([&] {
      const auto tensors = read_safetensors_of(damaged);
      bytes = 0;
      for (const auto& [name, tensor] : tensors) bytes += tensor.bytes();
    });
    CHECK((code == Code::ok || code == Code::data_loss || code == Code::unimplemented));
    CHECK(bytes == 26);
  }
}

TEST_CASE("a safetensors header that breaks a rule of the format is DataLoss") {
  CHECK(code_of_safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  )") == Code::ok);
  CHECK(code_of_safetensors(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                            R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})") == Code::ok);
  for (
      const std::string_view header :
      {R"()"sv, R"([])"sv, R"( {"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"sv, R"({})"sv,
       // sizes, holes, overlaps, order
       R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"sv,
       R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[1],"data_offsets":[7,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"sv,
       R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})"sv,
       R"({"a":{"dtype":"F64","shape":[4611686018427387904,2],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}})"sv,
       R"({"a":{"dtype":"F4","shape":[15],"data_offsets":[0,8]}})"sv,
       // twice, missing, unknown
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"sv,
       R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})"sv,
       R"({"__metadata__":{"a":"1","a":"2"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[2]}})"sv, R"({"a":{"dtype":"F32","data_offsets":[0,8]}})"sv,
       R"({"a":{"shape":[2],"data_offsets":[0,8]}})"sv,
       // wrong kinds
       R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})"sv,
       R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[2],"data_offsets":{"x":0}}})"sv, R"({"a":"F32"})"sv, R"({"a":null})"sv,
       R"({"a":[true]})"sv, R"({"__metadata__":{"a":1}})"sv, R"({"__metadata__":[]})"sv,
       R"({"__metadata__":{"a":null}})"sv, R"({"version":null})"sv, R"({"__metadata__":true})"sv,
       R"({"a":{"dtype":null,"shape":[2],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","shape":[null],"data_offsets":[0,8]}})"sv,
       R"({"a":{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}})"sv,
       // not JSON
       R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} x)"sv, R"({"a":{"dtype":"F32","shape":[2])"sv,
       "{\"\xff\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"sv,
       "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}\0"sv}) {
    INFO(header);
    CHECK(code_of_safetensors(header) == Code::data_loss);
  }
  CHECK(code_of_safetensors("{\"a\":" + std::string(100000, '[')) == Code::data_loss);
  CHECK(code_of([] { return read_safetensors_of(safetensors_file("{}", "", 100'000'001)); }) == Code::data_loss);
  CHECK(code_of([] { return read_safetensors_of(safetensors_file("{}", "", ~std::uint64_t{0})); }) == Code::data_loss);
  CHECK(code_of([] { return read_safetensors_of(safetensors_file("{}", "", 3)); }) == Code::data_loss);
}

TEST_CASE("a tensor of a type that dflow lacks is listed, and the tensors beside it are read") {
  const std::string_view header =
      R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[],"data_offsets":[4,8]}})";
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/m",
                              std::string_view(safetensors_file(header, "\0\0\0\0\0\0\x80\x3f"sv, header.size())));
  const dflow::SafetensorsReader reader(files, "/m");
  CHECK(reader.entries()[0].type == "F8_E4M3");
  CHECK(reader.entries()[0].shape == Shape{4});
  CHECK(contains(error_of([&] { return reader.read("a"); }, Code::unimplemented), "F8_E4M3"));
  CHECK(bitwise_equal(reader.read("b"), Tensor<float>(1.0f)));
  const std::vector<NamedTensor> all = dflow::read_safetensors(files, "/m");
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "b");
}

// safetensors 0.8.0 opens each of these files, and gives "a" as float32 [2].
TEST_CASE("members that the safetensors format does not have are passed over, and null is no metadata") {
  for (
      const std::string_view header :
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"quant":"x"}})"sv,
       R"({"a":{"x":{"shape":[[1,null],{"dtype":true}],"dtype":"F64"},"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"sv,
       R"({"a":{"dtype":"F32","x":[],"shape":[2],"y":{},"data_offsets":[0,8],"z":-1.5e3,"w":false}})"sv,
       R"({"__metadata__":null,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"sv}) {
    INFO(header);
    const std::vector<NamedTensor> all =
        read_safetensors_of(safetensors_file(header, "\0\0\x80\x3f\0\0\0\x40"sv, header.size()));
    REQUIRE(all.size() == 1);
    CHECK(all[0].name == "a");
    CHECK(bitwise_equal(all[0].tensor, Tensor<float>({2}, {1, 2})));
  }
  const std::string deep = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":)" + std::string(100, '[') +
                           std::string(100, ']') + "}}";
  CHECK(code_of_safetensors(deep) == Code::ok);
}

TEST_CASE("a safetensors file with a tensor of too many dimensions or a type of the future gives its other tensors") {
  const std::string_view header = R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]},)"
                                  R"("b":{"dtype":"F32","shape":[],"data_offsets":[4,8]}})";
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/m",
                              std::string_view(safetensors_file(header, "\0\0\0\0\0\0\x80\x3f"sv, header.size())));
  const dflow::SafetensorsReader reader(files, "/m");
  REQUIRE(reader.entries().size() == 2);
  CHECK(reader.entries()[0].problem.code() == Code::unimplemented);
  CHECK(reader.entries()[0].dtype == dflow::DType::invalid);
  CHECK(reader.entries()[1].problem.ok());
  CHECK(contains(error_of([&] { return reader.read("a"); }, Code::unimplemented), "/m: tensor 'a' has 9 dimensions"));
  CHECK(bitwise_equal(reader.read("b"), Tensor<float>(1.0f)));
  CHECK(dflow::read_safetensors(files, "/m").size() == 1);
  CHECK(code_of_safetensors(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,8]}})") ==
        Code::data_loss);

  // A damaged word for a type must not lose its tensor.
  const std::string_view future = R"({"a":{"dtype":"F72","shape":[1],"data_offsets":[0,8]}})";
  files.write_file_atomically("/future",
                              std::string_view(safetensors_file(future, "\0\0\0\0\0\0\0\0"sv, future.size())));
  CHECK(dflow::SafetensorsReader(files, "/future").entries()[0].problem.code() == Code::unimplemented);
  CHECK(contains(error_of([&] { return dflow::read_safetensors(files, "/future"); }, Code::unimplemented), "F72"));
}

TEST_CASE("a truth value of a safetensors file but 0 and 1 is DataLoss") {
  const std::string_view header = R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
  CHECK(code_of([&] { return read_safetensors_of(safetensors_file(header, "\1\2", header.size())); }) ==
        Code::data_loss);
}

TEST_CASE("what a safetensors file has no room for is not written, and leaves nothing") {
  dflow::MemoryFileSystem files;
  const auto code = [&](const std::vector<NamedTensor>& tensors, const dflow::SafetensorsMetadata& metadata = {}) {
    return code_of([&] { dflow::write_safetensors(files, "/m", tensors, metadata); });
  };
  const Tensor<float> one(1.0f);
  CHECK(code({{"a", Tensor<std::string>("text")}}) == Code::invalid_argument);
  CHECK(code({{"a", Tensor<std::complex<double>>(Shape{})}}) == Code::invalid_argument);
  CHECK(code({{"a", dflow::AnyTensor()}}) == Code::invalid_argument);
  CHECK(code({{"a", one}, {"a", one}}) == Code::invalid_argument);
  CHECK(code({{"__metadata__", one}}) == Code::invalid_argument);
  CHECK(code({{"\xff", one}}) == Code::invalid_argument);
  CHECK(code({{"a", one}}, {{"k", "\xff"}}) == Code::invalid_argument);
  CHECK(files.list_directory("/").empty());
  files.write_file_atomically("/bad", "xxxxxxxxx"sv);
  CHECK(contains(error_of([&] { return dflow::read_safetensors(files, "/bad"); }, Code::data_loss), "/bad"));
  CHECK(code_of([&] { return dflow::read_safetensors(files, "/none"); }) == Code::not_found);
}
