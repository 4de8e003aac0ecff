#include <dflow/ops/io/reader.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/io/compression/compressed_file.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;

// The expected values are from TensorFlow's python/kernel_tests/reader_ops_test.py, or from TensorFlow 2.21's readers
// on the same files.

namespace {

using Names = std::vector<std::string>;
using KeyAndValue = std::pair<std::string, std::string>;
using Pairs = std::vector<KeyAndValue>;

/// A reader, its queue, and files in memory, and the operations that a test runs on them.
template <class R>
struct Reading {
  template <class... Options>
  explicit Reading(const Options&... options) : reader(graph, options...) {
    set_device_files(device->context(), files);
  }

  void put(const std::string& path, std::string_view content) { files->write_file_atomically(path, content); }
  void enqueue(const Names& names) {
    session.run({{texts, Tensor<std::string>({static_cast<std::int64_t>(names.size())}, names)}}, put_names);
  }
  void close() { session.run(queue.close()); }
  KeyAndValue read() {
    const auto [k, v] = session.run(key, value);
    return {k.scalar(), v.scalar()};
  }
  Pairs read_up_to(std::int64_t n) {
    const auto [k, v] = session.run({{count, n}}, keys, values);
    Pairs pairs;
    for (std::int64_t i = 0; i < k.dim(0); ++i) pairs.emplace_back(k(i), v(i));
    return pairs;
  }
  /// Reads until the queue is closed and empty.
  Pairs rest() {
    Pairs all;
    for (;;) {
      const Status ended = status_of([&] { all.push_back(read()); });
      if (ended.ok()) continue;
      CHECK(ended.code() == Code::out_of_range);
      return all;
    }
  }
  Status failure() {
    return status_of([&] { read(); });
  }
  std::int64_t produced() { return session.run(num_records).scalar(); }
  std::int64_t completed() { return session.run(num_works).scalar(); }
  std::int32_t queued() { return session.run(size).scalar(); }
  std::string state() { return session.run(serialized).scalar(); }
  void restore(const std::string& state) { session.run({{new_state, Tensor<std::string>(state)}}, restored); }

  std::shared_ptr<MemoryFileSystem> files = std::make_shared<MemoryFileSystem>();
  std::shared_ptr<Device> device = std::make_shared<CpuDevice>(CpuDeviceOptions{});
  Graph graph;
  FifoQueue<std::string> queue{graph, {.capacity = 99, .shapes = {{}}, .name = "names"}};
  R reader;
  Output<std::string> texts = placeholder<std::string>(graph, {dynamic});
  Output<std::int64_t> count = placeholder<std::int64_t>(graph, Shape{});
  Output<std::string> new_state = placeholder<std::string>(graph, Shape{});
  Operation put_names = queue.enqueue_many(texts), reset = reader.reset(), restored = reader.restore_state(new_state);
  Output<std::string> key{}, value{};
  Output<std::string> keys{}, values{};
  Output<std::int64_t> num_records = reader.num_records_produced(), num_works = reader.num_work_units_completed();
  Output<std::int32_t> size = queue.size();
  Output<std::string> serialized = reader.serialize_state();
  Session session = [this] {
    std::tie(key, value) = reader.read(queue);
    std::tie(keys, values) = reader.read_up_to(queue, count);
    return Session(graph, SessionOptions{.devices = {device}});
  }();
};

void write_records(FileSystem& files, const std::string& path, const Names& records,
                   RecordCompression compression = RecordCompression::none) {
  RecordWriter writer(files, path, {.compression = compression});
  for (const std::string& record : records) writer.write(record);
  writer.close();
}

void write_packed(FileSystem& files, const std::string& path, std::string_view content, RecordCompression compression) {
  if (compression == RecordCompression::none) return files.write_file_atomically(path, content);
  DeflatingFile packed(files.open_for_appending(path),
                       compression == RecordCompression::gzip ? CompressionFormat::gzip : CompressionFormat::zlib);
  packed.append(content);
  packed.finish();
}

/// The compressions that the library can read.
std::vector<RecordCompression> compressions() {
#if defined(DFLOW_HAS_ZLIB)
  return {RecordCompression::none, RecordCompression::gzip, RecordCompression::zlib};
#else
  return {RecordCompression::none};
#endif
}

}  // namespace

// ---- identity, as IdentityReaderTest ----

TEST_CASE("An identity reader gives what its queue has, until that is closed and empty") {
  Reading<IdentityReader> reading;
  CHECK(reading.completed() == 0);
  CHECK(reading.produced() == 0);
  CHECK(reading.queued() == 0);
  reading.enqueue({"A", "B", "C"});
  reading.close();
  CHECK(reading.queued() == 3);
  CHECK(reading.read() == KeyAndValue("A", "A"));
  CHECK(reading.produced() == 1);
  CHECK(reading.read() == KeyAndValue("B", "B"));
  CHECK(reading.read() == KeyAndValue("C", "C"));
  CHECK(reading.produced() == 3);
  CHECK(reading.completed() == 3);
  CHECK(reading.queued() == 0);
  CHECK_THAT(error_of([&] { reading.read(); }, Code::out_of_range), Catch::Contains("is closed and is empty"));
}

TEST_CASE("An identity reader gives one record at a time, however many are asked for") {
  Reading<IdentityReader> reading;
  reading.enqueue({"A", "BB"});
  reading.close();
  CHECK(reading.read_up_to(3) == Pairs{{"A", "A"}});
  CHECK(reading.read_up_to(0).empty());
  CHECK(reading.read_up_to(3) == Pairs{{"BB", "BB"}});
  CHECK(code_of([&] { reading.read_up_to(3); }) == Code::out_of_range);
  CHECK(code_of([&] { reading.read_up_to(-1); }) == Code::invalid_argument);
}

TEST_CASE("A queue is filled again for another epoch") {
  Reading<IdentityReader> reading;
  for (int epoch = 0; epoch < 2; ++epoch) {
    reading.enqueue({"DD", "EE"});
    CHECK(reading.read() == KeyAndValue("DD", "DD"));
    CHECK(reading.read() == KeyAndValue("EE", "EE"));
  }
  reading.close();
  CHECK(reading.failure().code() == Code::out_of_range);
}

TEST_CASE("The state of an identity reader is TensorFlow's, and what is none is refused") {
  Reading<IdentityReader> reading;
  CHECK(reading.state().empty());
  reading.enqueue({"X", "Y", "Z"});
  CHECK(reading.read() == KeyAndValue("X", "X"));
  CHECK(reading.produced() == 1);
  const std::string state = reading.state();
  CHECK(state == std::string("\x08\x01\x10\x01\x18\x01\"\x01X"));
  CHECK(reading.read().first == "Y");
  CHECK(reading.read().first == "Z");
  CHECK(reading.produced() == 3);
  CHECK(reading.state() == std::string("\x08\x03\x10\x03\x18\x03\"\x01Z"));

  reading.enqueue({"Y", "Z"});
  reading.close();
  reading.restore(state);
  CHECK(reading.produced() == 1);
  for (const std::string& bad : {state.substr(1), state.substr(0, state.size() - 1), state + "ExtraJunk",
                                 "PREFIX" + state, "BOGUS" + state.substr(5)}) {
    CHECK_THAT(error_of([&] { reading.restore(bad); }),
               Catch::Contains("could not parse the state for IdentityReader 'IdentityReaderV2'"));
  }
  for (const char* bad : {"\x08\x01\x10\x02", "\x08\x05\x10\x01", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                          "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x3a\x0eTextLineReader"}) {
    CHECK(code_of([&] { reading.restore(bad); }) == Code::invalid_argument);
  }
  CHECK(reading.produced() == 1);
  CHECK(reading.rest() == Pairs{{"Y", "Y"}, {"Z", "Z"}});
}

TEST_CASE("A reader that is reset has read nothing, and its queue keeps what is left") {
  Reading<IdentityReader> reading;
  reading.enqueue({"X", "Y", "Z"});
  CHECK(reading.read().first == "X");
  CHECK(reading.queued() == 2);
  CHECK(reading.read().first == "Y");
  CHECK(reading.completed() == 2);
  CHECK(reading.produced() == 2);
  reading.session.run(reading.reset);
  CHECK(reading.completed() == 0);
  CHECK(reading.produced() == 0);
  CHECK(reading.queued() == 1);
  CHECK(reading.read().first == "Z");
  reading.enqueue({"K", "L"});
  CHECK(reading.read().first == "K");
}

// ---- files ----

TEST_CASE("A whole file is a record, of one epoch or of many") {
  Reading<WholeFileReader> reading;
  const Names names{"/whole_file.0", "/whole_file.1", "/whole_file.2"};
  const Names contents{"One\na\nb\n", "Two\nC\nD", "Three x, y, z"};
  for (std::size_t i = 0; i < names.size(); ++i) reading.put(names[i], contents[i]);
  for (int epoch = 0; epoch < 3; ++epoch) {
    reading.enqueue(names);
    for (std::size_t i = 0; i < names.size(); ++i) CHECK(reading.read() == KeyAndValue(names[i], contents[i]));
  }
  CHECK(reading.completed() == 9);
  reading.close();
  CHECK(reading.failure().code() == Code::out_of_range);
}

TEST_CASE("The lines of files end with line feeds, with a carriage return before them, or with the file") {
  for (const std::string end : {"\n", "\r\n"}) {
    Reading<TextLineReader> reading;
    Pairs wanted;
    for (int file = 0; file < 2; ++file) {
      const std::string name = str_cat("/text_line.", file, ".txt");
      std::string content;
      for (int line = 0; line < 5; ++line) {
        content += str_cat(file, ": ", line, line == 4 ? "" : end);
        wanted.emplace_back(str_cat(name, ":", line + 1), str_cat(file, ": ", line));
      }
      reading.put(name, content);
    }
    reading.enqueue({"/text_line.0.txt", "/text_line.1.txt"});
    reading.close();
    CHECK(reading.rest() == wanted);
    CHECK(reading.produced() == 10);
    CHECK(reading.completed() == 2);
  }
}

TEST_CASE("Lines at the beginning of each file are skipped, and counted") {
  Reading<TextLineReader> reading(TextLineReaderOptions{.skip_header_lines = 2});
  reading.put("/a", "one\r\n\ntw\ro\n");
  reading.put("/b", "last");
  reading.put("/c", "x\ny\nz");
  reading.enqueue({"/a", "/b", "/c"});
  reading.close();
  CHECK(reading.rest() == Pairs{{"/a:3", "tw\ro"}, {"/c:3", "z"}});
  CHECK(reading.completed() == 3);
}

TEST_CASE("Many lines at once are of one file, and fewer at its end") {
  Reading<TextLineReader> reading;
  reading.put("/a", "one\r\n\ntw\ro\n");
  reading.put("/e", "");
  reading.put("/b", "last");
  const Pairs a{{"/a:1", "one"}, {"/a:2", ""}, {"/a:3", "tw\ro"}};
  reading.enqueue({"/a", "/e", "/b"});
  CHECK(reading.read_up_to(2) == Pairs{a[0], a[1]});
  CHECK(reading.completed() == 0);
  CHECK(reading.read_up_to(2) == Pairs{a[2]});
  CHECK(reading.completed() == 1);
  CHECK(reading.produced() == 3);
  CHECK(reading.read_up_to(2) == Pairs{{"/b:1", "last"}});
  CHECK(reading.completed() == 3);
  reading.enqueue({"/a", "/b"});
  CHECK(reading.read_up_to(3) == a);
  CHECK(reading.completed() == 3);
  CHECK(reading.read_up_to(3) == Pairs{{"/b:1", "last"}});
  CHECK(reading.completed() == 5);
}

TEST_CASE("Records of one length stand between header and footer, with gaps or overlaps") {
  // The files of FixedLengthRecordReaderTest: header of 5 bytes, records of 3, footer of 2.
  for (const RecordCompression compression : compressions()) {
    for (const int gap : {0, 2}) {
      for (const int num_records : {0, 1, 7}) {
        Reading<FixedLengthRecordReader> reading(FixedLengthRecordReaderOptions{.header_bytes = 5,
                                                                                .record_bytes = 3,
                                                                                .footer_bytes = 2,
                                                                                .hop_bytes = gap == 0 ? 0 : 3 + gap,
                                                                                .compression = compression});
        Pairs wanted;
        for (int file = 0; file < 2; ++file) {
          const std::string name = str_cat("/fixed.", file);
          std::string content(5, 'H');
          for (int i = 0; i < num_records; ++i) {
            if (i > 0) content += std::string(static_cast<std::size_t>(gap), 'G');
            wanted.emplace_back(str_cat(name, ":", i), std::string(3, static_cast<char>('0' + file * 2 + i)));
            content += wanted.back().second;
          }
          write_packed(*reading.files, name, content + "FF", compression);
        }
        reading.enqueue({"/fixed.0", "/fixed.1"});
        reading.close();
        CHECK(reading.rest() == wanted);
      }
    }
    Reading<FixedLengthRecordReader> overlapping(FixedLengthRecordReaderOptions{
        .header_bytes = 2, .record_bytes = 3, .footer_bytes = 3, .hop_bytes = 2, .compression = compression});
    write_packed(*overlapping.files, "/f", "HHabcdefghiFFF", compression);
    overlapping.enqueue({"/f"});
    overlapping.close();
    CHECK(overlapping.rest() == Pairs{{"/f:0", "abc"}, {"/f:1", "cde"}, {"/f:2", "efg"}, {"/f:3", "ghi"}});
    Reading<FixedLengthRecordReader> hopping(FixedLengthRecordReaderOptions{
        .header_bytes = 2, .record_bytes = 3, .footer_bytes = 3, .hop_bytes = 5, .compression = compression});
    write_packed(*hopping.files, "/f", "HHabcdefghiFFF", compression);
    hopping.enqueue({"/f"});
    CHECK(hopping.read_up_to(9).size() == 2);
  }
}

TEST_CASE("The records of TFRecord files have their offsets as keys, packed or not") {
  for (const RecordCompression compression : compressions()) {
    Reading<TFRecordReader> reading(TFRecordReaderOptions{.compression = compression});
    for (const char* name : {"/a", "/b"}) write_records(*reading.files, name, {"one", "", "three"}, compression);
    reading.enqueue({"/a", "/b"});
    CHECK(reading.read() == KeyAndValue("/a:0", "one"));
    CHECK(reading.read() == KeyAndValue("/a:19", ""));
    CHECK(reading.read() == KeyAndValue("/a:35", "three"));
    CHECK(reading.completed() == 0);
    CHECK(reading.read_up_to(2) == Pairs{{"/b:0", "one"}, {"/b:19", ""}});
    CHECK(reading.completed() == 1);
    CHECK(reading.read_up_to(2) == Pairs{{"/b:35", "three"}});
    CHECK(reading.completed() == 2);
    CHECK(reading.produced() == 6);
  }
}

// ---- errors ----

TEST_CASE("A file that is missing is named, and passed over") {
  const auto check = [](auto&& reading, const char* content, const Pairs& wanted) {
    reading.put("/b", content);
    reading.files->create_directories("/dir");
    reading.enqueue({"/no", "/dir", "/b"});
    reading.close();
    Status failed = reading.failure();
    CHECK(failed.code() == Code::not_found);
    CHECK(mentions(failed, "/no"));
    failed = reading.failure();
    CHECK(failed.code() == Code::failed_precondition);
    CHECK(mentions(failed, "/dir"));
    CHECK(reading.rest() == wanted);
    CHECK(reading.completed() == 1);
  };
  check(Reading<WholeFileReader>(), "last", {{"/b", "last"}});
  check(Reading<TextLineReader>(), "last", {{"/b:1", "last"}});
  check(Reading<TFRecordReader>(), "", {});
  check(Reading<FixedLengthRecordReader>(FixedLengthRecordReaderOptions{.record_bytes = 2}), "last",
        {{"/b:0", "la"}, {"/b:1", "st"}});
}

TEST_CASE("A record that is damaged or cut short is DataLoss with file and offset, after all records before it") {
  Reading<TFRecordReader> reading;
  write_records(*reading.files, "/whole", {"one", "", "three"});
  const std::string whole = reading.files->read_file("/whole");
  std::string damaged = whole;
  damaged[20] = static_cast<char>(damaged[20] ^ 1);
  reading.put("/cut", std::string_view(whole).substr(0, whole.size() - 3));
  reading.put("/damaged", damaged);
  reading.enqueue({"/cut"});
  CHECK(reading.read_up_to(9).size() == 2);  // the whole records are given first
  for (int i = 0; i < 2; ++i) {              // as often as it is read
    const Status failed = reading.failure();
    CHECK(failed.code() == Code::data_loss);
    CHECK(mentions(failed, "record of '/cut' at offset 35"));
  }
  CHECK(reading.produced() == 2);
  CHECK(reading.completed() == 0);
  reading.session.run(reading.reset);
  reading.enqueue({"/damaged"});
  CHECK(reading.read().second == "one");
  CHECK(mentions(reading.failure(), "record of '/damaged' at offset 19"));
  // The file is mended, and the records that follow are read.
  reading.put("/damaged", whole);
  reading.session.run(reading.reset);
  reading.enqueue({"/damaged"});
  CHECK(reading.read_up_to(9).size() == 3);
}

TEST_CASE("A length that no file has takes no memory") {
  Reading<TFRecordReader> reading;
  write_records(*reading.files, "/a", {std::string(64, 'x')});
  std::string bytes = reading.files->read_file("/a");
  std::string header(8, '\0');
  header[7] = '\x7f';  // 2^63 - 2^56 bytes
  const std::uint32_t checksum = mask_crc32c(crc32c(header));
  for (int i = 0; i < 4; ++i) header += static_cast<char>(checksum >> (8 * i) & 0xff);
  reading.put("/a", header + bytes.substr(12));
  reading.enqueue({"/a"});
  CHECK(reading.failure().code() == Code::resource_exhausted);

  Reading<FixedLengthRecordReader> fixed(FixedLengthRecordReaderOptions{.record_bytes = std::int64_t{1} << 60});
  fixed.put("/a", "abc");
  fixed.enqueue({"/a"});
  CHECK(fixed.failure().code() == Code::data_loss);
}

TEST_CASE("A file that ends within a record of one length is DataLoss") {
  const auto failure_of = [](const char* content, std::int64_t hop) {
    Reading<FixedLengthRecordReader> reading(
        FixedLengthRecordReaderOptions{.header_bytes = 2, .record_bytes = 3, .footer_bytes = 3, .hop_bytes = hop});
    reading.put("/g", content);
    reading.enqueue({"/g"});
    reading.close();
    Status ended;
    while (ended.ok()) ended = reading.failure();
    return str_cat(reading.produced(), " ", ended.code() == Code::out_of_range ? "end" : std::string(ended.message()));
  };
  CHECK_THAT(failure_of("HHabcdefgFFF", 0),
             Catch::Contains("2 record 2 of '/g' at offset 8") && Catch::Contains("1 of 3 bytes"));
  CHECK_THAT(failure_of("HHabFFF", 0), Catch::Contains("0 record 0 of '/g' at offset 2"));
  CHECK_THAT(failure_of("H", 0), Catch::Contains("cut short in its header"));
  CHECK_THAT(failure_of("HHFF", 0), Catch::Contains("cut short in its footer"));
  CHECK(failure_of("HHFFF", 0) == "0 end");
  CHECK(failure_of("HHabcFFF", 2) == "1 end");
  CHECK_THAT(failure_of("HHabcdFFF", 2), Catch::Contains("1 record 1 of '/g' at offset 4"));
  CHECK(failure_of("HHabc__FFF", 5) == "1 end");  // a gap is left behind it, or not
  CHECK(failure_of("HHabcFFF", 5) == "1 end");
}

TEST_CASE("What does not fit a reader is refused") {
  Graph graph;
  CHECK(code_of([&] { TextLineReader(graph, {.skip_header_lines = -1}); }) == Code::invalid_argument);
  CHECK(code_of([&] { FixedLengthRecordReader(graph, {}); }) == Code::invalid_argument);
  CHECK(code_of([&] { FixedLengthRecordReader(graph, {.header_bytes = -1, .record_bytes = 1}); }) ==
        Code::invalid_argument);
  const FifoQueue<std::string> any(graph);
  const FifoQueue<std::int32_t> numbers(graph);
  const IdentityReader reader(graph);
  CHECK(code_of([&] { static_cast<void>(reader.read_up_to(any, -1)); }) == Code::invalid_argument);
  const auto [key, value] = reader.read(any);
  CHECK(key.shape() == PartialShape(Shape{}));
  CHECK(std::get<1>(reader.read_up_to(any, 2)).shape() == PartialShape({dynamic}));
  const auto put = any.enqueue(constant(graph, Tensor<std::string>({2}, {"a", "b"})));
  const auto of_numbers = build<ReaderRead>({reader.handle(), numbers.handle()}, {}, At{});
  const auto of_reader = build<ReaderRead>({any.handle(), any.handle()}, {}, At{});
  Session session(graph);
  session.run(put);
  CHECK_THAT(error_of([&] { session.run(key); }), Catch::Contains("takes elements of one string out of its queue"));
  CHECK_THAT(error_of([&] { session.run(Operation(of_numbers)); }), Catch::Contains("takes strings out of its queue"));
  CHECK(code_of([&] { session.run(Operation(of_reader)); }) == Code::invalid_argument);
}

// ---- state ----

TEST_CASE("A reader that is restored elsewhere, after any number of records, goes on with the next") {
  const auto check = [](auto make, const auto& write) {
    const Names names{"/a", "/b", "/c"};
    const auto start = [&] {
      auto reading = make();
      for (const std::string& name : names) write(*reading->files, name);
      return reading;
    };
    const auto reference = start();
    reference->enqueue(names);
    reference->close();
    const Pairs all = reference->rest();
    CHECK(all.size() > 2);
    for (std::size_t n = 0; n <= all.size(); ++n) {
      const auto before = start();
      before->enqueue(names);
      for (std::size_t i = 0; i < n; ++i) CHECK(before->read() == all[i]);
      const auto after = start();
      const std::int32_t left = before->queued();
      after->enqueue(Names(names.end() - left, names.end()));
      after->close();
      after->restore(before->state());
      CHECK(after->produced() == static_cast<std::int64_t>(n));
      CHECK(after->rest() == Pairs(all.begin() + static_cast<std::ptrdiff_t>(n), all.end()));
      CHECK(after->completed() == 3);
      CHECK(after->state() == reference->state());
    }
  };
  const auto write_text = [](FileSystem& files, const std::string& name) {
    files.write_file_atomically(name, str_cat("header\r\n", name, "\n\nlast"));
  };
  check([] { return std::make_unique<Reading<WholeFileReader>>(); }, write_text);
  check([] { return std::make_unique<Reading<TextLineReader>>(); }, write_text);
  check([] { return std::make_unique<Reading<TextLineReader>>(TextLineReaderOptions{.skip_header_lines = 1}); },
        write_text);
  for (const RecordCompression compression : compressions()) {
    check([&] { return std::make_unique<Reading<TFRecordReader>>(TFRecordReaderOptions{.compression = compression}); },
          [&](FileSystem& files, const std::string& name) {
            write_records(files, name, {name, "", "three"}, compression);
          });
    check(
        [&] {
          return std::make_unique<Reading<FixedLengthRecordReader>>(FixedLengthRecordReaderOptions{
              .header_bytes = 1, .record_bytes = 2, .footer_bytes = 1, .hop_bytes = 1, .compression = compression});
        },
        [&](FileSystem& files, const std::string& name) { write_packed(files, name, "Habc" + name, compression); });
  }
}

TEST_CASE("A state of another kind of reader is refused, and a place that no file has is an error of the next read") {
  Reading<TextLineReader> lines;
  lines.put("/a", "one\ntwo\n");
  lines.enqueue({"/a", "/a"});
  CHECK(lines.read().second == "one");
  const std::string state = lines.state();
  Reading<FixedLengthRecordReader> records(FixedLengthRecordReaderOptions{.record_bytes = 8});
  CHECK_THAT(error_of([&] { records.restore(state); }), Catch::Contains("another kind"));
  // Field 6, the record's number, as large as it may be.
  records.put("/a", "12345678");
  records.restore("\x08\x01\"\x02/a\x30\x80\x80\x80\x80\x80\x80\x80\x80\x40");
  records.enqueue({"/a"});
  CHECK(records.failure().code() == Code::invalid_argument);
  CHECK(records.read().second == "12345678");
}

// ---- sharing ----

TEST_CASE("Readers of one shared name are one, over sessions on a device, and another kind is refused") {
  Reading<TextLineReader> first(TextLineReaderOptions{.container = "c", .shared_name = "lines"});
  first.put("/a", "one\ntwo\nthree\n");
  first.enqueue({"/a"});
  CHECK(first.read().second == "one");
  Graph graph;
  const FifoQueue<std::string> queue(graph, {.capacity = 99, .shapes = {{}}, .name = "names"});
  const TextLineReader second(graph, {.container = "c", .shared_name = "lines"});
  const TextLineReader other(graph, {.skip_header_lines = 1, .container = "c", .shared_name = "lines"});
  const auto [key, value] = second.read(queue);
  Session session(graph, SessionOptions{.devices = {first.device}});
  CHECK(session.run(value).scalar() == "two");
  CHECK(first.read().second == "three");
  CHECK_THAT(error_of([&] { session.run(other.num_records_produced()); }),
             Catch::Contains("keeps TextLineReader 'lines' (skip_header_lines 0)"));
}
