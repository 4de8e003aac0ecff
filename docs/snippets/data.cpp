// The snippets of docs/data.md, one function per section.

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
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
  files.write_file_atomically("homes.csv", std::string_view("city,price,id\nRome,210,9007199254740993\nBern,300,2\n"));
  // [csv_columns]
  auto [city, id] = df::read_csv_columns<std::string, std::int64_t>(files, "homes.csv", {"city", "id"});  // [rows] each
  // [csv_columns]
  require(city(1) == "Bern" && id(0) == 9007199254740993, "csv columns");
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

int train_on(const df::Tensor<float>& x, const df::Tensor<std::int32_t>& y) {
  return static_cast<int>(x.dim(0) + 0 * y.dim(0));
}

void datasets(df::FileSystem& files) {
  int rows = 0;
  // [datasets]
  auto images = df::data::from_idx(files, "mnist");  // pairs of Tensor<float> [1, 2, 1] and Tensor<int32> []
  auto data = images.shuffle(10'000, {.seed = 1}).batch(128).prefetch(2);
  for (auto& [x, y] : data) rows += train_on(x, y);  // x: [128, 1, 2, 1], y: [128]; the last batch may be smaller
  // [datasets]
  require(rows == 2, "datasets");
}

void sources(df::FileSystem& files) {
  const df::Tensor<float> features = df::Tensor<float>::full({6, 3}, 1);
  const df::Tensor<std::int32_t> classes = df::Tensor<std::int32_t>::full({6}, 2);
  // [sources]
  auto rows = df::data::from_tensors(features, classes);  // row i of each; they share the tensors' memory
  auto table = df::data::from_csv(files, "houses.csv", {.has_header = true});
  auto paths = df::data::from_vector(std::vector<std::string>{"a.txt", "b.txt"});
  auto numbers = df::data::from_range(std::views::iota(0, 1000));
  auto squares = df::data::from_generator([] {  // called for each pass
    return [i = 0]() mutable -> std::optional<int> { return ++i <= 10 ? std::optional(i * i) : std::nullopt; };
  });
  auto lines = df::data::from_text_lines(files, {"numbers.txt", "more.txt.gz"});  // texts
  auto homes = df::data::from_csv<std::string, float>(files, "homes.csv", {"city", "price"});
  // [sources]
  require(lines.size() == std::nullopt && homes.size() == 2, "text");
  require(rows.size() == 6 && table.size() == 2 && paths.size() == 2 && numbers.size() == 1000, "sources");
  int count = 0;
  for ([[maybe_unused]] const int square : squares) ++count;
  require(count == 10, "generator");

  // [values]
  auto scaled = rows.map([](df::Tensor<float>& x, const df::Tensor<std::int32_t>& y) {
    for (float& value : x) value /= 255;  // x is this function's own: `features` stay as they are
    return std::pair{x, y};               // y is not written, and not copied
  });
  for (auto& [x, y] : scaled.batch(2)) x(0, 0) = 0;  // the next epoch does not see it
  // [values]
  for (auto& [x, y] : scaled) require(x(0) == 1.0f / 255 && features(0, 0) == 1, "values");

  // [steps]
  auto sentences = numbers.map([](int i) { return df::Tensor<std::int32_t>::full({i % 30}, i); }, {.threads = 4})
                       .filter([](const df::Tensor<std::int32_t>& words) { return words.dim(0) > 0; });
  auto padded = sentences.padded_batch(32, {.padding = -1});  // [32, the longest of the batch]
  auto by_length = sentences.bucket_by_length([](const auto& words) { return words.dim(0); },
                                              {.boundaries = {10, 20}, .sizes = {64, 32, 16}});
  auto both = df::data::zip(rows, squares).take(4).map([](const auto& row, int square) {
    return std::pair{std::get<0>(row), static_cast<float>(square)};
  });
  // [steps]
  require(both.batch(4).begin() != both.batch(4).end(), "steps");
  std::int64_t longest = 0;
  for (auto& batch : padded) longest = std::max(longest, batch.dim(1));
  require(longest == 29 && (*by_length.begin()).dim(0) >= 16, "padded");
}

void bad_elements(df::FileSystem& files) {
  auto lines = df::data::from_text_lines(files, {"numbers.txt"});
  // [ignore_errors]
  auto log = [](const df::Status& error, std::uint64_t count) {
    std::printf("%d: %s\n", static_cast<int>(count), error.to_string().c_str());
  };
  auto numbers = lines.map([](const std::string& line) { return std::stof(line); })
                     .ignore_errors({.limit = 100, .on_error = log});  // of the lines that are numbers
  // prints: 1: INTERNAL: in step map, element 1: stof
  // [ignore_errors]
  float sum = 0;
  for (const float number : numbers) sum += number;
  require(sum == 6, "ignore_errors");
}

/// A class of the user's.
// [tensors_of]
struct Sample {
  df::Tensor<float> image;
  std::string name;
};
auto tensors_of(Sample& sample) { return std::tie(sample.image); }
// [tensors_of]

void samples() {
  const df::Tensor<float> image({1}, {1});
  const auto data = df::data::from_vector(std::vector{Sample{image, "a"}});
  for (auto& sample : data) sample.image(0) = 2;
  for (auto& sample : data) require(sample.image(0) == 1 && image(0) == 1, "samples");
}

void iterators() {
  auto data = df::data::from_range(std::views::iota(0, 100)).shuffle(20, {.seed = 1}).batch(8).prefetch(2);
  // [iterator]
  df::data::Iterator batches = data.iterate();
  while (auto batch = batches.next()) {
    if (batches.position() == 5) break;
  }
  std::string state = batches.state();  // where it stands, in a few bytes

  df::data::Iterator resumed = data.iterate();  // of the same dataset, also in another process
  resumed.restore(state);
  df::Tensor<int> sixth = *resumed.next();  // what `batches` gives next too
  resumed.next_epoch();                     // from the beginning, shuffled anew
  // [iterator]
  require(df::bitwise_equal(sixth, *batches.next()) && resumed.epoch() == 1, "iterator");
}

void image_functions() {
  const auto scans = df::data::from_tensors(df::Tensor<std::uint8_t>::full({4, 6, 8, 3}, 51));
  // [plain_function]
  const auto prepare = df::plain_function<std::uint8_t>({{df::dynamic, df::dynamic, 3}}, [](auto pixels) {
    return df::adjust_brightness(df::resize_images(df::flip_left_right(pixels), {4, 4}), 9.0f);
  });
  df::Tensor<float> one = prepare(df::Tensor<std::uint8_t>::zeros({2, 2, 3}));  // [4, 4, 3]
  auto small = scans.map(prepare, {.threads = 4}).batch(2);                     // [2, 4, 4, 3]
  // [plain_function]
  require(one.shape() == df::Shape{4, 4, 3} && one(0, 0, 0) == 9, "plain function");
  for (const auto& images : small) require(images.shape() == df::Shape{2, 4, 4, 3} && images(1, 3, 3, 2) == 60, "map");
}

}  // namespace

int main() {
  try {
    df::MemoryFileSystem files;
    files.create_directories("mnist");
    files.write_file_atomically("numbers.txt", std::string_view("1\ntwo\n5\n"));
    csv(files);
    errors();
    idx(files);
    datasets(files);
    sources(files);
    bad_elements(files);
    samples();
    iterators();
    image_functions();
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
