#include <dflow/io/checkpoint/own/checkpoint_index.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.hpp>

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/tensor.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/source_folder.hpp"
#include "support/temporary_folder.hpp"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

using Texts = std::vector<std::string>;

/// Tensors of several types in two shards, "wide" in two slices; `seed` tells checkpoints apart.
void save_small(FileSystem& files, const std::string& prefix, int seed = 0) {
  const Tensor<float> weights({2, 3}, {1.0f + static_cast<float>(seed), 2, 3, 4, 5, 6});
  const Tensor<std::string> words({2}, {"alpha", std::string("a\0b", 3)});
  const Tensor<std::int64_t> left({2, 1}, {1, 3}), right({2, 2}, {4, 5, 6, 7});
  const std::array<std::int64_t, 2> at_left{0, 0}, at_right{0, 1};
  CheckpointShardWriter first(files, prefix, 0, 2);
  first.add("weights", weights);
  first.add_slice("wide", left, {2, 3}, at_left);
  first.finish();
  CheckpointShardWriter second(files, prefix, 1, 2);
  second.add("words", words);
  second.add("step", Tensor<std::int64_t>(seed));
  second.add("empty", AnyTensor(DType::float64, {0, 4}));
  second.add_slice("wide", right, {2, 3}, at_right);
  second.finish();
  merge_checkpoint(files, Texts{prefix, prefix}, prefix);
}

/// Reads the whole checkpoint and returns its seed.
int load_small(FileSystem& files, const std::string& prefix) {
  const CheckpointReader reader(files, prefix);
  reader.verify();
  const std::int64_t seed = reader.read("step", DType::int64, {}).span<std::int64_t>()[0];
  const AnyTensor weights = reader.read("weights");
  const AnyTensor words = reader.read("words");
  const AnyTensor wide = reader.read("wide");
  const Tensor<float> wanted({2, 3}, {1.0f + static_cast<float>(seed), 2, 3, 4, 5, 6});
  const Tensor<std::string> wanted_words({2}, {"alpha", std::string("a\0b", 3)});
  const Tensor<std::int64_t> wanted_wide({2, 3}, {1, 4, 5, 3, 6, 7});
  const bool is_right = bitwise_equal(weights, wanted) && bitwise_equal(words, wanted_words) &&
                        bitwise_equal(wide, wanted_wide) && reader.read("empty").shape() == Shape{0, 4};
  if (!is_right) throw_error(Status::internal("a checkpoint holds other values than were saved"));
  return static_cast<int>(seed);
}

const Texts small_files{"/c/m.index", "/c/m.data-00000-of-00002", "/c/m.data-00001-of-00002"};

/// The machine's files; before each change they write to a pipe.
class TellingFiles final : public FileSystem {
 public:
  explicit TellingFiles(int pipe_end) : pipe_end_(pipe_end) {}

  /// Writes a number: from 1 for a finished checkpoint, 0 for a change that begins.
  void tell(int what) const {
    if (::write(pipe_end_, &what, sizeof(what)) != sizeof(what)) ::_exit(2);
  }

  using FileSystem::write_file_atomically;
  std::string read_file(const std::string& path, std::uint64_t max_bytes) override {
    return files_.read_file(path, max_bytes);
  }
  std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) override {
    return files_.open_for_reading(path);
  }
  std::unique_ptr<WritableFile> open_for_appending(const std::string& path) override {
    tell(0);
    return std::make_unique<File>(*this, files_.open_for_appending(path));
  }
  void write_file_atomically(const std::string& path, std::span<const std::byte> content) override {
    tell(0);
    files_.write_file_atomically(path, content);
  }
  bool exists(const std::string& path) override { return files_.exists(path); }
  bool is_directory(const std::string& path) override { return files_.is_directory(path); }
  std::uint64_t file_size(const std::string& path) override { return files_.file_size(path); }
  std::vector<std::string> list_directory(const std::string& path) override { return files_.list_directory(path); }
  void create_directories(const std::string& path) override { files_.create_directories(path); }
  void remove(const std::string& path) override {
    tell(0);
    files_.remove(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    tell(0);
    files_.rename(from, to);
  }
  void sync_directory(const std::string& path) override {
    tell(0);
    files_.sync_directory(path);
  }
  std::unique_ptr<WritableFile> create_file(const std::string& path) override {
    tell(0);
    return std::make_unique<File>(*this, files_.create_file(path));
  }

 private:
  class File final : public WritableFile {
   public:
    File(const TellingFiles& files, std::unique_ptr<WritableFile> file) : files_(files), file_(std::move(file)) {}
    using WritableFile::append;
    void append(std::span<const std::byte> bytes) override {
      files_.tell(0);
      file_->append(bytes);
    }
    void sync() override {
      files_.tell(0);
      file_->sync();
    }

   private:
    const TellingFiles& files_;
    std::unique_ptr<WritableFile> file_;
  };

  const int pipe_end_;
  PosixFileSystem files_;
};

/// The newest of m-1, m-2, ... that loads; each checkpoint that has an index must load.
int newest_loaded(FileSystem& files, const std::string& folder, int last) {
  int newest = 0;
  for (int i = 1; i <= last; ++i) {
    const std::string prefix = folder + "/m-" + std::to_string(i);
    if (!files.exists(checkpoint_index_path(prefix))) continue;
    CHECK(load_small(files, prefix) == i);
    newest = i;
  }
  return newest;
}

}  // namespace

TEST_CASE("a checkpoint gives back what was saved, of every element type") {
  MemoryFileSystem files;
  save_small(files, "/c/m", 7);
  CHECK(load_small(files, "/c/m") == 7);
  CHECK(files.list_directory("/c") == Texts{"m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"});
  CheckpointShardWriter writer(files, "/c/all");
  for_each_type<AllTypes>([&]<class T>() {
    writer.add(dtype_name(dtype_of<T>), AnyTensor::zeros(dtype_of<T>, {3, 5}));
  });
  writer.finish();
  merge_checkpoint(files, Texts{"/c/all"}, "/c/all");
  const CheckpointReader reader(files, "/c/all");
  reader.verify();
  for_each_type<AllTypes>([&]<class T>() {
    CHECK(bitwise_equal(reader.read(dtype_name(dtype_of<T>)), AnyTensor::zeros(dtype_of<T>, {3, 5})));
  });
  for (const CheckpointEntry& entry : reader.index().entries) CHECK(entry.offset % 64 == 0);
}

TEST_CASE("what a checkpoint does not have is named") {
  MemoryFileSystem files;
  save_small(files, "/c/m");
  const CheckpointReader reader(files, "/c/m");
  CHECK(reader.contains("wide"));
  CHECK_FALSE(reader.contains("bias"));
  CHECK(contains(error_of([&] { return reader.read("bias"); }, Code::not_found), "'bias'"));
  const std::string of_type = error_of([&] { return reader.read("weights", DType::int32, {2, 3}); });
  CHECK(contains(of_type, "float[2,3]"));
  CHECK(contains(of_type, "int32[2,3]"));
  CHECK(contains(error_of([&] { return reader.read("weights", DType::float32, {3, 2}); }), "[3,2]"));
  CHECK(code_of([&] { return CheckpointReader(files, "/c/other").index(); }) == Code::not_found);
}

TEST_CASE("a checkpoint is not overwritten, and a shard is not forgotten") {
  MemoryFileSystem files;
  save_small(files, "/c/m", 1);
  CHECK(code_of([&] { return save_small(files, "/c/m", 2), 0; }) == Code::already_exists);
  CHECK(load_small(files, "/c/m") == 1);
  CheckpointShardWriter(files, "/c/half", 0, 2).finish();
  CHECK(code_of([&] { return merge_checkpoint(files, Texts{"/c/half"}, "/c/half"), 0; }) == Code::not_found);
  CheckpointShardWriter twice(files, "/c/twice");
  twice.add("x", Tensor<float>(1.0f));
  twice.add("x", Tensor<float>(2.0f));
  CHECK(code_of([&] { return twice.finish(), 0; }) == Code::invalid_argument);
  CHECK(code_of([&] { return CheckpointShardWriter(files, "/c/n", 2, 2), 0; }) == Code::invalid_argument);
  CHECK(code_of([&] { return twice.add("", Tensor<float>(1.0f)), 0; }) == Code::invalid_argument);
  CHECK(code_of([&] { return twice.add("none", AnyTensor()), 0; }) == Code::invalid_argument);
}

TEST_CASE("every flipped bit and every truncation of a checkpoint is found") {
  MemoryFileSystem files;
  save_small(files, "/c/m");
  int missed = 0, wrong_code = 0, tried = 0;
  for (const std::string& path : small_files) {
    const std::string good = files.read_file(path);
    const auto try_with = [&](const std::string& content) {
      files.write_file_atomically(path, content);
      ++tried;
      const Code code = code_of([&] { return load_small(files, "/c/m"); });
      missed += code == Code::ok;
      wrong_code += code != Code::data_loss;
    };
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      try_with(bad);
    }
    for (std::size_t size = 0; size < good.size(); ++size) try_with(good.substr(0, size));
    try_with(good + '\0');
    files.write_file_atomically(path, good);
  }
  CAPTURE(tried);
  CHECK(missed == 0);
  CHECK(wrong_code == 0);
  CHECK(load_small(files, "/c/m") == 0);
}

TEST_CASE("after a loss of power at any change of a save the old or the new checkpoint loads") {
  for (const CrashOutcome outcome :
       {CrashOutcome{}, CrashOutcome{true, false}, CrashOutcome{false, true}, CrashOutcome{true, true}}) {
    bool has_ended = false;
    for (std::uint64_t at = 1; !has_ended; ++at) {
      MemoryFileSystem files;
      save_small(files, "/c/m-1", 1);
      files.fail_change(at, Status::unavailable("power"), true);
      try {
        save_small(files, "/c/m-2", 2);
        has_ended = true;
      } catch (const Error& error) {
        CHECK(error.code() == Code::unavailable);
      }
      files.crash(outcome);
      CAPTURE(at, outcome.keeps_names, outcome.keeps_contents);
      const int newest = newest_loaded(files, "/c", 2);
      CHECK(newest >= 1);
      if (has_ended) CHECK(newest == 2);
      REQUIRE(files.exists("/c/m-1.index"));
      // The files that the crash left do not block the next save.
      if (newest == 1) {
        save_small(files, "/c/m-2", 2);
        CHECK(newest_loaded(files, "/c", 2) == 2);
      }
    }
  }
}

TEST_CASE("a full disk or an I/O error at any change is reported, and the old checkpoint loads") {
  for (const Status& fault :
       {Status::resource_exhausted("No space left on device"), Status::unavailable("Input/output error")}) {
    for (const bool keeps_failing : {false, true}) {
      int reported = 0;
      for (std::uint64_t at = 1; at < 60; ++at) {
        MemoryFileSystem files;
        save_small(files, "/c/m-1", 1);
        files.fail_change(at, fault, keeps_failing);
        const Code code = code_of([&] { return save_small(files, "/c/m-2", 2), 0; });
        files.fail_change(0, {});
        if (code != Code::ok) {
          CHECK(code == fault.code());
          ++reported;
        } else {
          CHECK(load_small(files, "/c/m-2") == 2);
        }
        CHECK(newest_loaded(files, "/c", 2) >= 1);
      }
      CHECK(reported > 20);
    }
  }
}

TEST_CASE("a process killed during saves leaves checkpoints that load") {
  PosixFileSystem files;
  const testing::TemporaryFolder folder;
  constexpr int rounds = 40;
  int newest = 0;
  for (int round = 0; round < rounds; ++round) {
    int pipe_ends[2];
    REQUIRE(::pipe(pipe_ends) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      TellingFiles telling(pipe_ends[1]);
      for (int i = newest + 1;; ++i) {
        try {
          save_small(telling, folder.path() + "/m-" + std::to_string(i), i);
        } catch (...) {
          ::_exit(1);
        }
        telling.tell(i);
      }
    }
    ::close(pipe_ends[1]);
    // The child finishes some checkpoints. Each round kills it at another change of the next checkpoint.
    int last = newest, told = 0, checkpoints_left = 1 + round % 3, changes_left = round * 7 % 29;
    while ((checkpoints_left > 0 || changes_left > 0) && ::read(pipe_ends[0], &told, sizeof(told)) == sizeof(told)) {
      if (told > 0) {
        last = told;
        --checkpoints_left;
      } else if (checkpoints_left <= 0) {
        --changes_left;
      }
    }
    ::kill(child, SIGKILL);
    int how = 0;
    REQUIRE(::waitpid(child, &how, 0) == child);
    CHECK(WIFSIGNALED(how));
    while (::read(pipe_ends[0], &told, sizeof(told)) == sizeof(told)) last = told > 0 ? told : last;
    ::close(pipe_ends[0]);
    const int loaded = newest_loaded(files, folder.path(), last + 1);
    CHECK(loaded >= last);
    CHECK(last > newest);
    newest = loaded;
  }
}

TEST_CASE("an index that lies is refused before anything is allocated") {
  CheckpointIndex index;
  index.shards.push_back({0, 64, 0, "m.data-00000-of-00001"});
  index.entries.push_back({"x", DType::float32, {16}, {0}, {16}, 0, 0, 64, 0});
  const auto parse_of = [](const CheckpointIndex& from) {
    const std::string bytes = from.serialize();
    return CheckpointIndex::parse(std::as_bytes(std::span(bytes)));
  };
  CHECK(parse_of(index) == index);
  const auto refused = [&](auto&& change) {
    CheckpointIndex lying = index;
    change(lying);
    return code_of([&] { return lying.serialize(); }) == Code::invalid_argument;
  };
  CHECK(refused([](CheckpointIndex& i) { i.entries[0].length = 65; }));
  CHECK(refused([](CheckpointIndex& i) { i.entries[0].offset = 64; }));
  CHECK(refused([](CheckpointIndex& i) { i.entries[0].offset = 1; }));
  CHECK(refused([](CheckpointIndex& i) { i.entries[0].begin[0] = 1; }));
  CHECK(refused([](CheckpointIndex& i) { i.entries[0].extent = {std::int64_t{1} << 61}; }));
  CHECK(refused([](CheckpointIndex& i) { i.entries[0].dtype = DType::resource; }));
  CHECK(refused([](CheckpointIndex& i) { i.entries[0].shard = 1; }));
  CHECK(refused([](CheckpointIndex& i) { i.entries.push_back(i.entries[0]); }));
  CHECK(refused([](CheckpointIndex& i) {
    i.entries.push_back(i.entries[0]);
    i.entries[1].name = "y";  // both claim the shard's 64 bytes
  }));
  CHECK(refused([](CheckpointIndex& i) { i.shards[0].file = "../m"; }));
  CHECK(refused([](CheckpointIndex& i) { i.num_shards = 0; }));
}

TEST_CASE("what is put in the place of a checkpoint's files is refused, and not waited for") {
  const testing::TemporaryFolder folder;
  PosixFileSystem files;
  const std::string prefix = folder.path() + "/m", index = prefix + ".index", data = prefix + ".data-00000-of-00002";
  const auto code_with = [&](const std::string& path, auto&& put) {
    std::filesystem::remove_all(folder.path());
    files.create_directories(folder.path());
    save_small(files, prefix);
    std::filesystem::remove(path);
    put();
    return code_of([&] { load_small(files, prefix); });
  };
  for (const std::string& path : {index, data}) {
    INFO(path);
    CHECK(code_with(path, [] {}) == Code::not_found);
    CHECK(code_with(path, [&] { files.write_file_atomically(path, ""); }) == Code::data_loss);
    CHECK(code_with(path, [&] { files.create_directories(path); }) == Code::failed_precondition);
    CHECK(code_with(path, [&] { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }) == Code::failed_precondition);
    CHECK(code_with(path, [&] { std::filesystem::create_symlink("/dev/zero", path); }) == Code::failed_precondition);
    CHECK(code_with(path, [&] { std::filesystem::create_symlink(path, path); }) == Code::invalid_argument);
    // A file of holes: the index is not read, and the data have another size.
    const Code of_holes = path == index ? Code::resource_exhausted : Code::data_loss;
    CHECK(code_with(path, [&] {
            files.write_file_atomically(path, "DFCKPTIX");
            std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
          }) == of_holes);
    // A link to the file itself, elsewhere, is as good as the file.
    std::filesystem::remove_all(folder.path());
    files.create_directories(folder.path() + "/elsewhere");
    save_small(files, prefix, 7);
    files.rename(path, folder.path() + "/elsewhere/f");
    std::filesystem::create_symlink("elsewhere/f", path);
    CHECK(load_small(files, prefix) == 7);
  }
}

TEST_CASE("an index that names files elsewhere is refused") {
  for (const std::string& file : Texts{"../m", "/etc/passwd", "a/b", ".", "..", "", std::string("a\0b", 3)}) {
    CheckpointIndex index;
    index.shards.push_back({0, 64, 0, file});
    CHECK(code_of([&] { index.serialize(); }) == Code::invalid_argument);
  }
}

namespace {

/// The slice [begin, begin + extent) of the last two dimensions of [3, 4].
CheckpointSlice slice_of_3_by_4(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
  return {{3, 4}, {row, column}, {rows, columns}};
}

}  // namespace

TEST_CASE("any parts of a tensor are read, in whatever slices it is stored, along either dimension") {
  const Tensor<std::int16_t> numbers({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Tensor<std::string> words({3, 4}, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"});
  std::vector<CheckpointSlice> all;
  for (std::int64_t row = 0; row <= 3; ++row) {
    for (std::int64_t column = 0; column <= 4; ++column) {
      for (std::int64_t rows = 0; rows <= 3 - row; ++rows) {
        for (std::int64_t columns = 0; columns <= 4 - column; ++columns) {
          all.push_back(slice_of_3_by_4(row, column, rows, columns));
        }
      }
    }
  }
  for (const int axis : {0, 1}) {
    for (const std::vector<std::int64_t>& lengths : std::vector<std::vector<std::int64_t>>{
             {axis == 0 ? 3 : 4}, {1, axis == 0 ? 2 : 3}, {1, 1, axis == 0 ? 1 : 2}}) {
      MemoryFileSystem files;
      CheckpointShardWriter writer(files, "/m");
      std::int64_t first = 0;
      for (const std::int64_t length : lengths) {
        const CheckpointSlice slice =
            axis == 0 ? slice_of_3_by_4(first, 0, length, 4) : slice_of_3_by_4(0, first, 3, length);
        writer.add_slice("numbers", slice.cut_from(numbers), slice.whole, slice.begin);
        writer.add_slice("words", slice.cut_from(words), slice.whole, slice.begin);
        first += length;
      }
      writer.finish();
      merge_checkpoint(files, Texts{"/m"}, "/m");
      const CheckpointReader reader(files, "/m");
      const std::vector<AnyTensor> some = reader.read_slices("numbers", all), texts = reader.read_slices("words", all);
      REQUIRE(some.size() == all.size());
      bool are_same = true;
      for (std::size_t i = 0; i < all.size(); ++i) {
        are_same = are_same && bitwise_equal(some[i], all[i].cut_from(numbers)) &&
                   bitwise_equal(texts[i], all[i].cut_from(words));
        for (std::int64_t r = 0; r < all[i].extent[0]; ++r) {
          for (std::int64_t c = 0; c < all[i].extent[1]; ++c) {
            are_same =
                are_same && some[i].as<std::int16_t>()(r, c) == numbers(all[i].begin[0] + r, all[i].begin[1] + c);
          }
        }
      }
      CHECK(are_same);
    }
  }
}

TEST_CASE("a part of a tensor is read without the slices that have none of it, and not with damaged ones") {
  MemoryFileSystem files;
  save_small(files, "/m");
  const CheckpointSlice left{{2, 3}, {0, 0}, {2, 1}}, right{{2, 3}, {0, 1}, {2, 2}}, both{{2, 3}, {1, 0}, {1, 2}};
  const std::string path = checkpoint_data_path("/m", 1, 2);
  std::string content = files.read_file(path);
  const CheckpointIndex index = read_checkpoint_index(files, checkpoint_index_path("/m"));
  content[static_cast<std::size_t>(index.find("wide").back().offset)] ^= 1;
  files.write_file_atomically(path, content);
  const CheckpointReader reader(files, "/m");
  CHECK(bitwise_equal(reader.read_slices("wide", std::vector{left}).at(0), Tensor<std::int64_t>({2, 1}, {1, 3})));
  CHECK(reader.read_slices("wide", {}).empty());
  for (const CheckpointSlice& damaged : {right, both}) {
    const Status status = status_of([&] { return reader.read_slices("wide", std::vector{left, damaged}); });
    CHECK(status.code() == Code::data_loss);
    CHECK(mentions(status, "'wide'"));
  }
  const CheckpointSlice other{{3, 2}, {0, 0}, {1, 1}}, outside{{2, 3}, {0, 2}, {2, 2}}, none{{2, 3}, {0}, {2}};
  const CheckpointSlice below{{2, 3}, {1, 0}, {2, 3}}, above{{2, 3}, {-1, 0}, {1, 3}}, past{{2, 3}, {3, 0}, {0, 3}};
  for (const CheckpointSlice& wrong : {other, outside, none, below, above, past}) {
    const Status status = status_of([&] { return reader.read_slices("wide", std::vector{wrong}); });
    CHECK(status.code() == Code::invalid_argument);
    CHECK(mentions(status, "'wide'"));
  }
  CHECK(code_of([&] { return reader.read_slices("narrow", std::vector{left}); }) == Code::not_found);
  const CheckpointSlice scalar{};
  CHECK(reader.read_slices("step", std::vector{scalar}).at(0).span<std::int64_t>()[0] == 0);
}

TEST_CASE("slices that leave a gap are no tensor") {
  MemoryFileSystem files;
  CheckpointShardWriter writer(files, "/m");
  const std::array<std::int64_t, 1> at{0}, later{3};
  writer.add_slice("x", Tensor<float>({2}, {1, 2}), {5}, at);
  writer.add_slice("x", Tensor<float>({2}, {1, 2}), {5}, later);
  writer.finish();
  CHECK(code_of([&] { merge_checkpoint(files, Texts{"/m"}, "/m"); }) == Code::invalid_argument);
  // A reader also refuses an index that has the gap.
  files.rename(checkpoint_shard_index_path("/m", 0, 1), checkpoint_index_path("/m"));
  CHECK(code_of([&] { return CheckpointReader(files, "/m").read("x"); }) == Code::data_loss);
}

TEST_CASE("slices at whose end something is missing are no checkpoint") {
  MemoryFileSystem files;
  const std::array<std::int64_t, 2> at{0, 0}, later{0, 2};
  for (const std::int64_t columns : {4, 5}) {
    const std::string prefix = str_cat("/of ", columns);
    CheckpointShardWriter writer(files, prefix);
    writer.add_slice("x", Tensor<float>({1, 2}, {1, 2}), {1, columns}, at);
    writer.add_slice("x", Tensor<float>({1, 2}, {1, 2}), {1, columns}, later);
    writer.add("empty", Tensor<float>(Shape{0, 3}));
    writer.finish();
    const Code code = code_of([&] { merge_checkpoint(files, Texts{prefix}, prefix); });
    CHECK(code == (columns == 4 ? Code::ok : Code::invalid_argument));
  }
}

// A separate test runs this one, and says if it did not because there is no Python.
TEST_CASE("a reader written from the document alone reads a checkpoint", "[.python]") {
  const std::filesystem::path program = testing::source_folder() + "/tests/tools/read_checkpoint.py";
  REQUIRE(std::filesystem::exists(program));
  PosixFileSystem files;
  const testing::TemporaryFolder folder;
  save_small(files, folder.path() + "/m", 5);
  const std::string command =
      "python3 '" + program.string() + "' '" + folder.path() + "/m' > '" + folder.path() + "/out'";
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(files.read_file(folder.path() + "/out") ==
        "empty 2 [0, 4] [0, 0] [0, 4] \n"
        "step 9 [] [] [] 0500000000000000\n"
        "weights 1 [2, 3] [0, 0] [2, 3] 0000c040000000400000404000008040"
        "0000a0400000c040\n"
        "wide 9 [2, 3] [0, 0] [2, 1] 01000000000000000300000000000000\n"
        "wide 9 [2, 3] [0, 1] [2, 2] 0400000000000000050000000000000006000000000000000700000000000000\n"
        "words 7 [2] [0] [2] 0500000000000000616c706861"
        "0300000000000000610062\n");
}

TEST_CASE("a checkpoint is replaced where that is asked for, and removed as a whole") {
  MemoryFileSystem files;
  const auto save = [&](const std::string& shards, float value, const MergeOptions& options) {
    CheckpointShardWriter writer(files, shards);
    writer.add("x", Tensor<float>(value));
    writer.finish();
    merge_checkpoint(files, Texts{shards}, "/c/m", options);
  };
  save("/c/m.1", 1, {});
  CHECK(code_of([&] { save("/c/m.2", 2, {}); }) == Code::already_exists);
  CHECK(CheckpointReader(files, "/c/m").read("x").span<float>()[0] == 1);
  merge_checkpoint(files, Texts{"/c/m.2"}, "/c/m", {.replace = true});
  CHECK(CheckpointReader(files, "/c/m").read("x").span<float>()[0] == 2);
  CHECK(files.list_directory("/c") == Texts{"m.2.data-00000-of-00001", "m.index"});
  // `save` also replaces an unreadable checkpoint; `remove_checkpoint` does not remove it.
  files.write_file_atomically("/c/m.index", "?");
  CHECK(code_of([&] { remove_checkpoint(files, "/c/m"); }) == Code::data_loss);
  save("/c/m.3", 3, {.replace = true});
  CHECK(CheckpointReader(files, "/c/m").read("x").span<float>()[0] == 3);
  remove_checkpoint(files, "/c/m");
  remove_checkpoint(files, "/c/m");
  CHECK(files.list_directory("/c") == Texts{"m.2.data-00000-of-00001"});
}
