#include <dflow/io/compression/deflate.hpp>

#include "catch.hpp"

#include <dflow/base/status.hpp>

#include "support/errors.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

using dflow::Code;

namespace {

std::span<const std::byte> deflate_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// `size` bytes of the stream, which is given `step` packed bytes at a time.
std::string inflated(std::string_view packed, std::size_t size, std::size_t step) {
  dflow::Inflater inflater;
  const auto more = [&] {
    const std::string_view next = packed.substr(0, step);
    packed.remove_prefix(next.size());
    return deflate_bytes(next);
  };
  std::string content(size, '\0');
  inflater.read(std::as_writable_bytes(std::span(content)), more);
  inflater.expect_end(more);
  return content;
}

}  // namespace

TEST_CASE("a library without zlib says so, one with it unpacks what was deflated") {
  const std::string text = "hello hello hello" + std::string(200000, 'x');
  const std::array pieces{deflate_bytes(std::string_view(text).substr(0, 5)),
                          deflate_bytes(std::string_view(text).substr(5))};
  if (code_of([&] { return dflow::deflate(pieces); }) == Code::unimplemented) {
    CHECK(code_of([] { dflow::Inflater(); }) == Code::unimplemented);
    return;
  }
  const std::string packed = dflow::deflate(pieces);
  CHECK(packed.size() < 1000);
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, packed.size()}) {
    CHECK(inflated(packed, text.size(), step) == text);
    CHECK(code_of([&] { return inflated(packed, text.size() - 1, step); }) == Code::data_loss);
    CHECK(code_of([&] { return inflated(packed, text.size() + 1, step); }) == Code::data_loss);
    CHECK(code_of([&] { return inflated(packed + "x", text.size(), step); }) == Code::data_loss);
  }
  for (std::size_t length = 0; length < packed.size(); ++length) {
    CHECK(code_of([&] { return inflated(std::string_view(packed).substr(0, length), text.size(), 16); }) ==
          Code::data_loss);
  }
}
