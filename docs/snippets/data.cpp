// What docs/data.md shows, one function per section.

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::internal(what));
}

void csv(df::FileSystem& files) {
  files.write_file_atomically("houses.csv",
                              std::string_view("rooms, area, \"price, in 1000\"\n3, 70, 210\n4, 95, +300\n"));
  // [csv]
  df::CsvTable houses = df::read_csv_table(files, "houses.csv");  // the first line holds names
  df::Tensor<float> prices = houses.column("price, in 1000");     // [rows]
  df::Tensor<float> inputs = df::columns(houses.values, 0, 2);    // [rows, 2]: rooms and area

  df::Tensor<float> all = df::read_csv(files, "houses.csv", {.has_header = true});  // the numbers alone
  df::Tensor<float> text = df::parse_csv("1; 2\n3; 4\n", {.separator = ';'});
  // [csv]
  require(prices(1) == 300 && inputs(0, 1) == 70 && all.dim(1) == 3 && text(1, 0) == 3, "csv");
}

void errors() {
  // [errors]
  try {
    df::parse_csv("x, y\n1, 2\n3, four\n", {.has_header = true});
  } catch (const df::Error& error) {
    std::puts(error.what());  // DATA_LOSS: line 3: field 2 ('y') is not a number: 'four'
  }
  // [errors]
}

void idx(df::FileSystem& files) {
  using namespace std::string_view_literals;
  files.write_file_atomically("numbers.idx", "\0\0\x0c\2\0\0\0\1\0\0\0\2\0\0\0\5\0\0\0\6"sv);
  files.write_file_atomically("mnist/train-images-idx3-ubyte", "\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2\0\xff\0\0"sv);
  files.write_file_atomically("mnist/train-labels-idx1-ubyte", "\0\0\x08\1\0\0\0\2\7\3"sv);
  // [idx]
  df::AnyTensor numbers = df::read_idx(files, "numbers.idx");   // its element type is in the file
  df::Tensor<std::int32_t> typed = numbers.as<std::int32_t>();  // throws if it is another one
  // Images [n, rows, columns, 1] in 0 to 1, labels [n].
  df::LabelledImages mnist = df::read_mnist(files, "mnist", "train");
  // [idx]
  require(typed(0, 1) == 6 && mnist.images(0, 0, 1, 0) == 1.0f && mnist.labels(0) == 7, "idx");

  // [batches]
  df::train::Minibatches batches(mnist.size(), 2, /*seed=*/1);  // each epoch in another random order
  auto rows = batches.next();
  df::Tensor<float> x = df::train::rows_of(mnist.images, rows);
  df::Tensor<std::int32_t> y = df::train::rows_of(mnist.labels, rows);
  df::Tensor<float> first = mnist.images.slice(0, 1);  // rows side by side: shared, not copied
  // [batches]
  require(x.dim(0) == 2 && y.dim(0) == 2 && first.dim(0) == 1, "batches");
}

}  // namespace

int main() {
  try {
    df::MemoryFileSystem files;
    files.create_directories("mnist");
    csv(files);
    errors();
    idx(files);
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
