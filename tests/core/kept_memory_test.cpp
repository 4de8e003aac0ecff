// Tensors for later: in memory up to a bound, in a file beyond it.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/kept_memory.hpp>
#include <dflow/core/tensor.hpp>

#include "catch.hpp"

#include <atomic>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace df = dflow;

namespace {

constexpr std::size_t kept_kib = 1024;

df::Tensor<float> kept_numbers(float first, std::int64_t count = 256) {
  df::Tensor<float> all({count});
  for (std::int64_t i = 0; i < count; ++i) all.data()[i] = first + static_cast<float>(i);
  return all;
}

df::AnyTensor kept_value(const std::shared_ptr<df::KeptTensor>& kept) {
  return kept->value(df::default_cpu_allocator());
}

std::shared_ptr<df::KeptMemory> make_kept_memory(std::size_t max_bytes) {
  return std::make_shared<df::KeptMemory>(max_bytes, std::make_shared<df::MemoryFileSystem>(), "/tmp");
}

}  // namespace

TEST_CASE("kept memory puts the oldest tensors into a file, and gives all of them back") {
  const auto memory = make_kept_memory(4 * kept_kib);
  std::vector<std::shared_ptr<df::KeptTensor>> kept;
  for (int i = 0; i < 10; ++i) {
    kept.push_back(memory->keep(kept_numbers(static_cast<float>(i))));
    CHECK(memory->bytes() <= 4 * kept_kib);
  }
  CHECK(memory->bytes_in_file() == 6 * kept_kib);
  for (int round = 0; round < 3; ++round) {
    for (int i = 9; i >= 0; --i) {
      CHECK(df::bitwise_equal(kept_value(kept[static_cast<std::size_t>(i)]), kept_numbers(static_cast<float>(i))));
    }
  }
  CHECK(kept[9]->debug_string() == "KeptTensor(float[256])");
  kept.clear();
  CHECK(memory->bytes() == 0);
}

TEST_CASE("kept memory without a bound of its own writes all but the last") {
  const auto memory = make_kept_memory(0);
  const auto a = memory->keep(kept_numbers(1)), b = memory->keep(kept_numbers(2)), c = memory->keep(kept_numbers(3));
  CHECK(memory->bytes() == kept_kib);
  CHECK(df::bitwise_equal(kept_value(a), kept_numbers(1)));
  CHECK(df::bitwise_equal(kept_value(b), kept_numbers(2)));
  CHECK(df::bitwise_equal(kept_value(c), kept_numbers(3)));
}

TEMPLATE_TEST_CASE("kept memory keeps every plain element type", "", bool, std::int8_t, std::uint8_t, std::int16_t,
                   std::uint16_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, df::Half, df::BFloat16,
                   float, double, std::complex<float>, std::complex<double>) {
  const auto memory = make_kept_memory(0);
  df::Tensor<TestType> x({3, 1024});
  for (std::int64_t i = 0; i < x.num_elements(); ++i) x.data()[i] = static_cast<TestType>(static_cast<float>(i % 2));
  const auto kept = memory->keep(df::AnyTensor(x).deep_copy());
  static_cast<void>(memory->keep(kept_numbers(0)));
  CHECK(memory->bytes_in_file() == df::AnyTensor(x).bytes());
  CHECK(kept->dtype() == df::dtype_of<TestType>);
  CHECK(df::bitwise_equal(kept_value(kept), x));
}

TEST_CASE("kept memory does not take what is small, lent, a small part, or no numbers") {
  const auto memory = make_kept_memory(0);
  CHECK(memory->keep(kept_numbers(0, 127)) == nullptr);
  CHECK(memory->keep(kept_numbers(0, 128)) != nullptr);
  CHECK(memory->keep(df::AnyTensor()) == nullptr);
  CHECK(memory->keep(df::AnyTensor(df::DType::string, {1000})) == nullptr);
  const df::AnyTensor rows(df::DType::float32, {10, 256});
  CHECK(memory->keep(rows.slice(3, 4)) == nullptr);
  CHECK(memory->keep(rows.slice(0, 9)) != nullptr);
  std::vector<float> lent(1000);
  CHECK(memory->keep(df::AnyTensor::adopt(
            df::DType::float32, {1000}, lent.data(), 4000, [] {}, df::Lending::read_only)) == nullptr);
}

TEST_CASE("kept memory has a tensor once, however often it is kept and in which shape") {
  const auto memory = make_kept_memory(2 * kept_kib);
  df::AnyTensor x = kept_numbers(7);
  const auto first = memory->keep(x);
  CHECK(memory->keep(x) == first);
  const auto view = memory->keep(x.reshaped({16, 16}));
  CHECK(view != first);
  CHECK(memory->bytes() == kept_kib);
  x.reset();
  std::vector<std::shared_ptr<df::KeptTensor>> more;
  for (int i = 0; i < 5; ++i) more.push_back(memory->keep(kept_numbers(static_cast<float>(i))));
  CHECK(df::bitwise_equal(kept_value(view), df::AnyTensor(kept_numbers(7)).reshaped({16, 16})));
  CHECK(df::bitwise_equal(kept_value(first), kept_numbers(7)));
}

TEST_CASE("kept memory leaves in memory what others hold, and takes it when they have let go") {
  const auto memory = make_kept_memory(0);
  std::vector<df::AnyTensor> held;
  std::vector<std::shared_ptr<df::KeptTensor>> kept;
  for (int i = 0; i < 100; ++i) {
    held.emplace_back(kept_numbers(static_cast<float>(i)));
    kept.push_back(memory->keep(held.back()));
  }
  CHECK(memory->bytes_in_file() == 0);
  held.clear();
  for (int i = 0; i < 10; ++i) static_cast<void>(memory->keep(kept_numbers(0)));
  CHECK(memory->bytes_in_file() >= 100 * kept_kib);
  for (int i = 0; i < 100; ++i) {
    CHECK(df::bitwise_equal(kept_value(kept[static_cast<std::size_t>(i)]), kept_numbers(static_cast<float>(i))));
  }
}

TEST_CASE("kept memory whose file fails says so, and what was kept before is there") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const auto memory = std::make_shared<df::KeptMemory>(kept_kib, files, "/tmp");
  std::vector<std::shared_ptr<df::KeptTensor>> kept;
  for (int i = 0; i < 4; ++i) kept.push_back(memory->keep(kept_numbers(static_cast<float>(i))));
  files->fail_change(1, df::Status::resource_exhausted("the disk is full"));
  for (int i = 0; i < 3; ++i) {
    try {
      static_cast<void>(memory->keep(kept_numbers(9)));
      FAIL("kept");
    } catch (const df::Error& error) {
      CHECK(error.code() == df::Code::resource_exhausted);
    }
  }
  for (int i = 0; i < 4; ++i) {
    CHECK(df::bitwise_equal(kept_value(kept[static_cast<std::size_t>(i)]), kept_numbers(static_cast<float>(i))));
  }
  CHECK(memory->bytes() <= 2 * kept_kib);
}

TEST_CASE("kept memory serves threads that keep, read and let go at the same time") {
  const auto memory = make_kept_memory(8 * kept_kib);
  std::atomic<int> num_wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::shared_ptr<df::KeptTensor>> own;
      for (int i = 0; i < 200; ++i) {
        own.push_back(memory->keep(kept_numbers(static_cast<float>(1000 * t + i))));
        const auto& read = own[static_cast<std::size_t>(i / 2)];
        const df::AnyTensor got = kept_value(read);
        if (!df::bitwise_equal(got, kept_numbers(static_cast<float>(1000 * t + i / 2)))) ++num_wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == 0);
  CHECK(memory->bytes() == 0);
}
