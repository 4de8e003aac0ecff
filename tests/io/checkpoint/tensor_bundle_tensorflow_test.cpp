// TensorFlow itself reads a tensor bundle that the library wrote.
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>

#include "catch.hpp"
#include "support/source_folder.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/tensor.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using namespace dflow;

namespace {

/// The ends of the element type's range, NaN and infinities, and ordinary numbers.
template <class T>
T number_of_each_kind(std::int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return i % 2 == 1;
  } else if constexpr (std::is_integral_v<T>) {
    const T kinds[] = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(0), T(1), T(7)};
    return kinds[i % 5];
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    using Part = typename T::value_type;
    return T(number_of_each_kind<Part>(i), number_of_each_kind<Part>(i + 3));
  } else if constexpr (std::is_floating_point_v<T>) {
    const T kinds[] = {std::numeric_limits<T>::lowest(),   std::numeric_limits<T>::denorm_min(), T(-0.0),
                       std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(),  T(1) / T(3)};
    return kinds[i % 6];
  } else {
    const float kinds[] = {-1.5f, 0.0f, -0.0f, std::numeric_limits<float>::infinity(), 3.0f};
    return T(kinds[i % 5]);
  }
}

template <class T>
AnyTensor tensor_of_each_kind(const Shape& shape) {
  Tensor<T> tensor(shape);
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      tensor.data()[i] = std::string(static_cast<std::size_t>(i * i * 60), static_cast<char>('\xff' - i));
    } else {
      tensor.data()[i] = number_of_each_kind<T>(i);
    }
  }
  return tensor;
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

/// The line that read_bundle.py prints for a tensor.
std::string line_of(const NamedTensor& named) {
  std::string line = str_cat(named.name, " ", static_cast<int>(named.tensor.dtype()), " [");
  for (int d = 0; d < named.tensor.shape().rank(); ++d)
    line += str_cat(d == 0 ? "" : ", ", named.tensor.shape().dim(d));
  line += "]";
  if (named.tensor.dtype() == DType::string) {
    for (const std::string& text : named.tensor.span<std::string>()) line += " " + hexadecimal(text);
    return line + "\n";
  }
  visit_dtype<PlainTypes>(named.tensor.dtype(), [&]<class T>() {
    const auto elements = named.tensor.span<T>();
    std::string bytes(elements.size_bytes(), '\0');
    if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
    line += " " + hexadecimal(bytes);
  });
  return line + "\n";
}

}  // namespace

// A separate test runs this one, and says if it did not because there is no TensorFlow.
TEST_CASE("TensorFlow reads a tensor bundle of every element type", "[.tensorflow]") {
  const std::filesystem::path program = testing::source_folder() + "/tests/tools/read_bundle.py";
  REQUIRE(std::filesystem::exists(program));
  std::vector<NamedTensor> tensors;
  for_each_type<AllTypes>([&]<class T>() {
    int number = 0;
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{7}, Shape{3, 2}, Shape{2, 1, 2, 1, 2}}) {
      tensors.push_back({str_cat("layers/", dtype_name(dtype_of<T>), "/", number++), tensor_of_each_kind<T>(shape)});
    }
  });
  // Names that no scope would make, and a name with an index entry that fills a block of the table.
  for (const char* odd : {"0", "a b", "Gr\xc3\xb6\xc3\x9f\x65", "a/b:0", "~"}) {
    tensors.push_back({odd, tensor_of_each_kind<float>({2})});
  }
  tensors.push_back({std::string(5000, 'n'), tensor_of_each_kind<double>({3})});
  tensors.push_back({"large", tensor_of_each_kind<std::int32_t>({300, 1000})});
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });

  const testing::TemporaryFolder folder;
  PosixFileSystem files;
  write_tensor_bundle(files, folder.file("model.ckpt"), tensors);
  const char* python = std::getenv("DFLOW_TENSORFLOW_PYTHON");
  const std::string command = str_cat(python == nullptr ? "python3" : python, " '", program.string(), "' '",
                                      folder.file("model.ckpt"), "' > '", folder.file("out"), "'");
  const int status = std::system(command.c_str());
  const std::string output = files.read_file(folder.file("out"));
  constexpr int not_installed = 77;
  if (WEXITSTATUS(status) == not_installed) {
    std::cout << output;
    return;
  }
  REQUIRE(status == 0);
  std::string_view rest = output;
  for (const NamedTensor& named : tensors) {
    const std::string line = line_of(named);
    INFO(named.name.substr(0, 100));
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    CHECK((rest.substr(0, end) == line));
    rest.remove_prefix(end);
  }
  CHECK(rest.empty());
}
