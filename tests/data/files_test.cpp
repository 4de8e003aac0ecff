#include <dflow/data/files.hpp>

#include "catch.hpp"
#include "errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>

#include <cstdlib>
#include <string>
#include <string_view>

namespace df = dflow;
using namespace std::string_view_literals;

TEST_CASE("images and labels come from IDX files, rows from CSV") {
  df::MemoryFileSystem files;
  files.create_directories("mnist");
  files.write_file_atomically("mnist/train-images-idx3-ubyte", "\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2\0\xff\0\0"sv);
  files.write_file_atomically("mnist/train-labels-idx1-ubyte", "\0\0\x08\1\0\0\0\2\7\3"sv);
  files.write_file_atomically("table.csv", "a, b\n1, 2\n3, 4\n"sv);
  int count = 0;
  for (auto& [image, label] : df::data::from_idx(files, "mnist")) {
    CHECK(image.shape() == df::Shape{1, 2, 1});
    CHECK(label.scalar() == (count++ == 0 ? 7 : 3));
  }
  CHECK(count == 2);
  for (auto& rows : df::data::from_csv(files, "table.csv", {.has_header = true}).batch(2)) {
    CHECK(rows.to_string() == "float[2,2] [[1, 2], [3, 4]]");
  }
  CHECK(code_of([&] { return df::data::from_idx(files, "nowhere"); }) == df::Code::not_found);
  CHECK(code_of([&] { return df::data::from_csv("/nowhere/table.csv"); }) == df::Code::not_found);
}
