#include <dflow/io/labelled_images.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/source_folder.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/compression/gzip.hpp>

#include <array>
#include <string>
#include <string_view>

using namespace std::string_view_literals;

TEST_CASE("MNIST files become images of 0 to 1 and their classes") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/t10k-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\xff\x33\0"sv);
  files.write_file_atomically("/t10k-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x02\x07\x02"sv);
  const auto test = dflow::read_mnist(files, "/", "t10k");
  CHECK(test.images.shape() == dflow::Shape{2, 1, 2, 1});
  CHECK(test.images(0, 0, 1, 0) == 1.0f);
  CHECK(test.images(1, 0, 0, 0) == Catch::Approx(0.2));
  CHECK(test.labels(0) == 7);
  const auto second = dflow::slice(test, 1, 2);
  CHECK(second.size() == 1);
  CHECK(second.labels(0) == 2);

  SECTION("counts that differ are DataLoss") {
    files.write_file_atomically("/t10k-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x01\x07"sv);
    CHECK_THROWS_WITH(dflow::read_mnist(files, "/", "t10k"), Catch::Matchers::Contains("2 images and 1 labels"));
  }
  SECTION("a missing part is NotFound") {
    try {
      static_cast<void>(dflow::read_mnist(files, "/", "train"));
      FAIL("no error");
    } catch (const dflow::Error& error) {
      CHECK(error.code() == dflow::Code::not_found);
    }
  }
}

TEST_CASE("MNIST files may have the names of Kaggle's archive, beside directories of the original names") {
  constexpr std::string_view images = "\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x02\x80\xff"sv;
  constexpr std::string_view labels = "\0\0\x08\x01\0\0\0\x01\x05"sv;
  dflow::MemoryFileSystem files;
  files.create_directories("/train-images-idx3-ubyte");
  files.write_file_atomically("/train-images.idx3-ubyte", images);
  files.write_file_atomically("/train-labels.idx1-ubyte.gz", labels);  // not compressed all the same
  CHECK(dflow::read_mnist(files, "/", "train").labels(0) == 5);
  files.write_file_atomically("/train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x01\x06"sv);
  CHECK(dflow::read_mnist(files, "/", "train").labels(0) == 6);  // the original name comes first
  CHECK(contains(error_of([&] { return dflow::read_mnist(files, "/", "t10k"); }, dflow::Code::not_found),
                 "/t10k-images-idx3-ubyte"));
}

TEST_CASE("Rows that are no images of digits are DataLoss") {
  dflow::MemoryFileSystem files;
  const auto read = [&](const std::string& pixel, const std::string& digit) {
    std::string row;
    for (int i = 0; i < 63; ++i) row += "16,";
    files.write_file_atomically("/digits.csv", std::string_view(row + pixel + "," + digit + "\n"));
    return dflow::read_digits(files, "/digits.csv");
  };
  CHECK(read("0", "9").labels(0) == 9);
  CHECK(read("16", "0").images(0, 7, 7, 0) == 1.0f);
  for (const char* digit : {"3.7", "9.5", "-1", "10"}) {
    CAPTURE(digit);
    CHECK(status_of([&] { return read("0", digit); }).code() == dflow::Code::data_loss);
  }
  for (const char* pixel : {"-1", "16.5", "1e30"}) {
    CAPTURE(pixel);
    CHECK(status_of([&] { return read(pixel, "3"); }).code() == dflow::Code::data_loss);
  }
}

TEST_CASE("The digits of the examples are the published ones") {
  dflow::PosixFileSystem files;
  const std::string path = dflow::testing::source_folder() + "/examples/data/optdigits.csv.gz";
  dflow::LabelledImages digits;
  try {
    digits = dflow::read_digits(files, path);
  } catch (const dflow::Error& error) {
    if (error.code() == dflow::Code::unimplemented) return;  // built without zlib
    throw;
  }
  CHECK(digits.images.shape() == dflow::Shape{1797, 8, 8, 1});
  std::array<int, 10> counts{};
  for (const int label : digits.labels) ++counts[static_cast<std::size_t>(label)];
  // UCI Machine Learning Repository, optdigits.names, class distribution of the test set.
  CHECK(counts == std::array<int, 10>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});
  for (const float pixel : digits.images) REQUIRE((pixel >= 0.0f && pixel <= 1.0f));
}
