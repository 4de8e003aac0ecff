// Restores an iterator over every kind of step from bytes, with a right checksum so that the code behind it is
// reached. Restoring ends soon even if the data are endless. An accepted state must go on, and give a state that is
// accepted again.
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/status.hpp>
#include <dflow/data/data.hpp>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>

namespace {

namespace data = dflow::data;

void require(bool condition) {
  if (!condition) std::abort();
}

data::Dataset<dflow::Tensor<int>> dataset(unsigned which) {
  const auto range = [](int n) { return data::from_range(std::views::iota(0, n)); };
  const auto row = [](int i) { return dflow::Tensor<int>::full({i % 3}, i); };
  const auto length = [](const dflow::Tensor<int>& x) { return x.dim(0); };
  const auto inner = [range](int i) { return range(i % 4).shuffle(2); };
  const auto rows = [&](const data::Dataset<int>& of) { return of.map(row); };
  const auto endless = [](int begin) {
    return data::from_generator([begin] { return [i = begin]() mutable { return std::optional(i++ % 1000); }; });
  };
  switch (which % 10) {
    case 0:
      return rows(range(30).shuffle(5).repeat(2).filter([](int i) { return i % 5 != 0; }).take(20).skip(1));
    case 1:
      return rows(range(20).concatenate(range(7).cache()).enumerate().map([](std::int64_t, int i) { return i; }))
          .bucket_by_length(length, {.boundaries = {1, 2}, .sizes = {2, 3, 2}});
    case 2:
      return rows(range(9).interleave(inner, {.cycle = 3, .block = 2})).padded_batch(2);
    case 3:
      return rows(range(30).window(3, {.shift = 2}).map([](const std::vector<int>& window) { return window.back(); }));
    case 4:
      return rows(
          range(20).map([](int i) { return i + 1; }, {.pool = std::make_shared<dflow::InlinePool>()}).shuffle(4));
    case 5:
      return rows(endless(0)).bucket_by_length(length, {.boundaries = {1, 2}, .sizes = {2, 3, 2}});
    case 6:
      return rows(endless(0).interleave(endless, {.cycle = 1000}).window(2, {.shift = 3}).map([](const auto& window) {
        return window.front();
      }));
    case 7:
      return rows(
          data::zip(endless(3).cache(), endless(5).repeat()).map([](int a, int b) { return a + b; }).prefetch(2));
    case 8:
      return rows(data::zip(range(12).shuffle(3), range(5).repeat()).map([](int a, int b) { return a + b; }));
    default:
      return rows(endless(0).map([](int i) { return i % 3 == 2 ? throw std::domain_error("third") : i; }).shuffle(4))
          .ignore_errors();
  }
}

/// The state before the first element, up to the epoch: the beginning of every state of this dataset.
std::string beginning(const data::Iterator<dflow::Tensor<int>>& iterator, const std::string& name) {
  const std::string state = iterator.state();
  const std::size_t at = state.find(name);
  require(at != std::string::npos);
  return state.substr(0, at + name.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const auto made = dataset(bytes[0] & 0x7f);
  auto iterator = made.iterate();
  iterator.limit_restoring(1 << 16);
  std::string state(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if ((bytes[0] & 0x80) == 0) {
    state = beginning(iterator, made.recipe()->describe()) + state;
    dflow::ByteWriter out(state);
    out.u32(dflow::mask_crc32c(dflow::crc32c(state)));
  }
  try {
    iterator.restore(state);
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::data_loss || error.code() == dflow::Code::invalid_argument);
    require(iterator.next().has_value());  // it stays as it was
    return 0;
  }
  auto again = made.iterate();
  again.restore(iterator.state());
  for (int i = 0; i < 100; ++i) {
    const auto one = iterator.next(), other = again.next();
    require(one.has_value() == other.has_value());
    if (!one) break;
    require(dflow::bitwise_equal(*one, *other));
  }
  return 0;
}
