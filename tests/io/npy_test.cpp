#include <dflow/io/npy.hpp>

#include "catch.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include "support/errors.hpp"

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace std::string_view_literals;
using dflow::AnyTensor;
using dflow::Code;
using dflow::Shape;
using dflow::Tensor;

namespace {

std::span<const std::byte> npy_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

AnyTensor parsed_npy(std::string_view file) { return dflow::parse_npy(npy_bytes(file)); }

/// A file with that header, as NumPy 2.4 lays it out: the text ends in spaces and a newline, 128 bytes in all.
std::string npy_file(std::string_view header, std::string_view elements, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  const std::size_t length = version == 1 ? 0x76 : 0x74;
  file += static_cast<char>(length);
  file.append(version == 1 ? 1 : 3, '\0');
  std::string text(header);
  text.resize(length - 1, ' ');
  return file + text + '\n' + std::string(elements);
}

/// The code of a file of one float with that header.
Code code_of_npy(std::string_view header, std::string_view elements = "\0\0\x80\x3f"sv) {
  return code_of([&] { return parsed_npy(npy_file(header, elements)); });
}

template <class T>
std::vector<T> elements(const AnyTensor& tensor) {
  const auto span = tensor.span<T>();
  return {span.begin(), span.end()};
}

}  // namespace

// The bytes of the elements are as NumPy 2.4.6 wrote them for the same values.
TEST_CASE("npy files that NumPy wrote are read, whatever their version, their order of bytes and of elements") {
  const AnyTensor floats = parsed_npy(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                                               "\0\0\0\0\0\0\0?\0\0\x80?\0\0\xc0?\0\0\0@\0\0 @"sv));
  CHECK(floats.shape() == Shape{2, 3});
  CHECK(elements<float>(floats) == std::vector<float>{0, 0.5f, 1, 1.5f, 2, 2.5f});
  const AnyTensor fortran = parsed_npy(npy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                                                "\0\0\0\0\0\0\xc0?\0\0\0?\0\0\0@\0\0\x80?\0\0 @"sv));
  CHECK(bitwise_equal(fortran, floats));
  CHECK(elements<std::int16_t>(parsed_npy(npy_file("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }",
                                                   "\0\1\xff\xfe"sv))) == std::vector<std::int16_t>{1, -2});
  const AnyTensor scalar =
      parsed_npy(npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", "\0\0\0\0\0\0\xf8\xbf"sv, 2));
  CHECK(scalar.rank() == 0);
  CHECK(elements<double>(scalar) == std::vector<double>{-1.5});
  const AnyTensor truths =
      parsed_npy(npy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (2, 1), }", "\1\0"sv, 3));
  CHECK(truths.shape() == Shape{2, 1});
  CHECK(elements<bool>(truths) == std::vector<bool>{true, false});
  CHECK(elements<std::complex<float>>(parsed_npy(npy_file("{'descr': '>c8', 'fortran_order': False, 'shape': (2,), }",
                                                          "?\x80\0\0@\0\0\0\x80\0\0\0\xc0`\0\0"sv))) ==
        std::vector<std::complex<float>>{{1, 2}, {-0.0f, -3.5f}});
  CHECK(elements<std::complex<double>>(parsed_npy(npy_file("{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }",
                                                           "\0\0\0\0\0\0\xf0?\0\0\0\0\0\0\0@"sv))) ==
        std::vector<std::complex<double>>{{1, 2}});
  const AnyTensor halves =
      parsed_npy(npy_file("{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }", "\0\x38\0\xc0\xff{"sv));
  CHECK(float(halves.span<dflow::Half>()[2]) == 65504.0f);
  CHECK(elements<std::uint64_t>(parsed_npy(npy_file("{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }",
                                                    "\xff\xff\xff\xff\xff\xff\xff\xff"sv))) ==
        std::vector<std::uint64_t>{~std::uint64_t{0}});
}

TEST_CASE("npy arrays of bytes and of text become strings, without the zeros that fill them up") {
  CHECK(elements<std::string>(parsed_npy(npy_file("{'descr': '|S3', 'fortran_order': False, 'shape': (3,), }",
                                                  "ab\0\0\0\0abc"sv))) == std::vector<std::string>{"ab", "", "abc"});
  const std::vector<std::string> text{"a\xc3\xa9", "\xe2\x82\xac\xf0\x9f\x98\x80", ""};
  const AnyTensor big = parsed_npy(npy_file("{'descr': '>U2', 'fortran_order': False, 'shape': (3,), }",
                                            "\0\0\0a\0\0\0\xe9\0\0\x20\xac\0\1\xf6\0\0\0\0\0\0\0\0\0"sv));
  CHECK(elements<std::string>(big) == text);
  const AnyTensor little = parsed_npy(npy_file("{'descr': '<U2', 'fortran_order': False, 'shape': (3,), }",
                                               "a\0\0\0\xe9\0\0\0\xac\x20\0\0\0\xf6\1\0\0\0\0\0\0\0\0\0"sv));
  CHECK(elements<std::string>(little) == text);
  CHECK(code_of_npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", "\0\xd8\0\0"sv) == Code::data_loss);
}

TEST_CASE("a tensor is written as NumPy writes it, to the byte") {
  const Tensor<float> floats({2, 3}, {0, 0.5f, 1, 1.5f, 2, 2.5f});
  CHECK(dflow::to_npy(floats) == npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                                          "\0\0\0\0\0\0\0?\0\0\x80?\0\0\xc0?\0\0\0@\0\0 @"sv));
  CHECK(dflow::to_npy(floats, {.is_fortran_order = true}) ==
        npy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                 "\0\0\0\0\0\0\xc0?\0\0\0?\0\0\0@\0\0\x80?\0\0 @"sv));
  CHECK(dflow::to_npy(Tensor<double>(-1.5), {.version = 2}) ==
        npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", "\0\0\0\0\0\0\xf8\xbf"sv, 2));
  CHECK(dflow::to_npy(Tensor<std::complex<float>>({2}, {{1, 2}, {-0.0f, -3.5f}}), {.is_big_endian = true}) ==
        npy_file("{'descr': '>c8', 'fortran_order': False, 'shape': (2,), }", "?\x80\0\0@\0\0\0\x80\0\0\0\xc0`\0\0"sv));
  CHECK(dflow::to_npy(Tensor<std::string>({3}, {"ab", "", "abc"})) ==
        npy_file("{'descr': '|S3', 'fortran_order': False, 'shape': (3,), }", "ab\0\0\0\0abc"sv));
}

TEST_CASE("tensors of every type that NumPy has go to npy files and back, in every way of writing them") {
  dflow::for_each_type<dflow::AllTypes>([]<class T>() {
    if constexpr (!std::is_same_v<T, dflow::BFloat16>) {
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{2, 0, 3}, Shape{2, 3, 4, 5}}) {
        Tensor<T> tensor(shape);
        int i = 0;
        for (T& element : tensor) {
          if constexpr (std::is_same_v<T, std::string>) {
            element = std::string(static_cast<std::size_t>(i++ % 4), 'x');
          } else if constexpr (std::is_same_v<T, bool>) {
            element = i++ % 3 == 0;
          } else {
            element = static_cast<T>(static_cast<float>(i++ % 100));
          }
        }
        for (const int version : {1, 2, 3}) {
          for (const bool is_big_endian : {false, true}) {
            for (const bool is_fortran_order : {false, true}) {
              const std::string file = dflow::to_npy(tensor, {version, is_big_endian, is_fortran_order});
              CHECK(bitwise_equal(parsed_npy(file), tensor));
            }
          }
        }
      }
    }
  });
}

TEST_CASE("an npy header may be spelled in other ways") {
  for (const auto header : {"{\"shape\":(1,),'fortran_order':False,'descr':'<f4'}",
                            "  {  'descr' : 'f4', 'fortran_order' : True , 'shape' : ( 1L , ) , }  ",
                            "{'descr': '=f4', 'fortran_order': False, 'shape': (1, 1)}"}) {
    CHECK(code_of_npy(header) == Code::ok);
  }
}

TEST_CASE("an npy header that is no dictionary of three known entries is DataLoss") {
  for (const auto header :
       {"", "{}", "{'descr': '<f4', 'fortran_order': False}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 0",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,)}", "{'descr': '<f4",
        "__import__('os').system('true')"}) {
    INFO(header);
    CHECK(code_of_npy(header) == Code::data_loss);
  }
}

TEST_CASE("what an npy file can hold and a tensor cannot is Unimplemented, and the message says what") {
  const auto message = [](std::string_view descr) {
    return error_of(
        [&] {
          return parsed_npy(
              npy_file(dflow::str_cat("{'descr': ", descr, ", 'fortran_order': False, 'shape': (1,), }"), "1234"));
        },
        Code::unimplemented);
  };
  CHECK(contains(message("'|O'"), "'|O'"));
  CHECK(contains(message("'<f16'"), "'<f16'"));
  CHECK(contains(message("'<M8[ns]'"), "'<M8[ns]'"));
  CHECK(contains(message("'|V2'"), "'|V2'"));
  CHECK(contains(message("'<f3'"), "'<f3'"));
  CHECK(contains(message("'|S0'"), "'|S0'"));
  CHECK(contains(message("[('a', '<f4')]"), "records"));
  CHECK(code_of_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }") == Code::unimplemented);
  CHECK(code_of([] { return parsed_npy(npy_file("{}", "", 4)); }) == Code::unimplemented);
}

TEST_CASE("an npy file is exactly as long as it says") {
  const std::string file = dflow::to_npy(Tensor<std::int32_t>({3}, {1, 2, 3}));
  for (std::size_t length = 0; length < file.size(); ++length) {
    CHECK(code_of([&] { return parsed_npy(std::string_view(file).substr(0, length)); }) == Code::data_loss);
  }
  CHECK(code_of([&] { return parsed_npy(file + 'x'); }) == Code::data_loss);
  CHECK(code_of_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }") == Code::data_loss);
  CHECK(code_of_npy("{'descr': '|S4294967296', 'fortran_order': False, 'shape': (0,), }", "") == Code::ok);
  std::string long_header = npy_file("{}", "", 2);
  long_header[10] = '\x7f';
  CHECK(code_of([&] { return parsed_npy(long_header); }) == Code::data_loss);
}

TEST_CASE("a flipped bit in the header of an npy file is an error, or another array of as many bytes") {
  const std::string file = dflow::to_npy(Tensor<float>({2, 3}, {0, 1, 2, 3, 4, 5}));
  for (std::size_t bit = 0; bit < 8 * 128; ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    std::size_t bytes = 0;
    const Code code = code_of([&] { bytes = parsed_npy(damaged).bytes(); });
    CHECK((code == Code::ok || code == Code::data_loss || code == Code::unimplemented));
    CHECK(bytes <= 24);
  }
}

TEST_CASE("a truth value of an npy file but 0 and 1 is DataLoss") {
  CHECK(code_of_npy("{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }", "\1\0\2\1"sv) == Code::data_loss);
}

TEST_CASE("what NumPy has no array for is not written") {
  CHECK(code_of([] { return dflow::to_npy(Tensor<dflow::BFloat16>(dflow::BFloat16(1.0f))); }) ==
        Code::invalid_argument);
  CHECK(code_of([] { return dflow::to_npy(AnyTensor()); }) == Code::invalid_argument);
  CHECK(code_of([] { return dflow::to_npy(Tensor<std::string>(std::string(1, '\0'))); }) == Code::invalid_argument);
  CHECK(code_of([] { return dflow::to_npy(Tensor<float>(1.0f), {.version = 4}); }) == Code::invalid_argument);
  Tensor<std::string> uneven(Shape{1 << 20});
  uneven(0) = std::string(1 << 13, 'x');
  CHECK(code_of([&] { return dflow::to_npy(uneven); }) == Code::resource_exhausted);
}

TEST_CASE("npy files are written and read by path, and errors name it") {
  dflow::MemoryFileSystem files;
  const Tensor<std::int64_t> tensor({2, 2}, {1, 2, 3, 4});
  dflow::write_npy(files, "/runs/a/w.npy", tensor);
  CHECK(bitwise_equal(dflow::read_npy(files, "/runs/a/w.npy"), tensor));
  CHECK(files.list_directory("/runs/a") == std::vector<std::string>{"w.npy"});
  dflow::write_npy(files, "/runs/a/w.npy", Tensor<float>(2.0f));
  CHECK(dflow::read_npy(files, "/runs/a/w.npy").dtype() == dflow::DType::float32);
  files.write_file_atomically("/bad.npy", "no array, by far"sv);
  CHECK(contains(error_of([&] { return dflow::read_npy(files, "/bad.npy"); }, Code::data_loss), "/bad.npy"));
  CHECK(code_of([&] { return dflow::read_npy(files, "/none.npy"); }) == Code::not_found);
}
