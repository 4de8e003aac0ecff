#pragma once

#include <dflow/base/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

namespace dflow {

/// Bounds on the sizes that a ByteReader accepts.
struct ByteReaderLimits {
  /// Nesting of enter().
  int max_depth = 64;
  /// Items in one count().
  std::uint64_t max_count = std::uint64_t{1} << 26;
  /// Bytes in one string() or blob().
  std::uint64_t max_length = std::numeric_limits<std::uint64_t>::max();
};

/// Reads untrusted bytes (a file, a socket): every length is compared with the remaining bytes before anything is
/// returned or could be allocated. Little-endian; strings and blobs are views into the input.
///
///     ByteReader in(bytes);
///     const auto names = in.count(/*min_bytes_each=*/1);
///     for (std::size_t i = 0; i < names; ++i) result.emplace_back(in.string());
///     in.expect_end();
///
/// Thread safety: one thread at a time.
/// Errors: throws Error: DataLoss for input that is cut short or malformed (with the offset), OutOfRange for input
/// beyond the limits. After an error the position is the start of the item that failed.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> input, ByteReaderLimits limits = {}) noexcept
      : input_(input), limits_(limits) {}
  explicit ByteReader(std::string_view input, ByteReaderLimits limits = {}) noexcept
      : ByteReader(std::as_bytes(std::span(input.data(), input.size())), limits) {}

  std::size_t position() const noexcept { return position_; }
  std::size_t remaining() const noexcept { return input_.size() - position_; }
  bool at_end() const noexcept { return remaining() == 0; }

  /// An integer or floating-point number of fixed size.
  template <class T>
    requires(std::integral<T> || std::floating_point<T>) && (!std::same_as<T, bool>)
  T fixed() {
    require(sizeof(T));
    T value;
    std::memcpy(&value, input_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }
  std::uint8_t u8() { return fixed<std::uint8_t>(); }
  std::uint16_t u16() { return fixed<std::uint16_t>(); }
  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }
  std::int32_t i32() { return fixed<std::int32_t>(); }
  std::int64_t i64() { return fixed<std::int64_t>(); }
  float f32() { return fixed<float>(); }
  double f64() { return fixed<double>(); }
  /// One byte, 0 or 1; any other is malformed.
  bool boolean();

  /// Base-128 varint of at most 64 bits; a longer one is malformed.
  std::uint64_t varint();
  /// Zigzag varint, as ByteWriter::signed_varint writes it.
  std::int64_t signed_varint();

  /// `size` bytes as they are.
  std::span<const std::byte> bytes(std::size_t size);
  void skip(std::size_t size);
  /// A varint length and that many bytes.
  std::span<const std::byte> blob();
  std::string_view string();

  /// A varint number of items that follow, each at least `min_bytes_each` long, so that the result may size a vector.
  std::size_t count(std::size_t min_bytes_each);

  /// Fails unless all input has been read.
  void expect_end() const;

  /// One level of nesting, left when the guard goes: `const auto level = in.enter();`
  class [[nodiscard]] Level {
   public:
    explicit Level(ByteReader& reader) noexcept : reader_(reader) {}
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --reader_.depth_; }

   private:
    ByteReader& reader_;
  };
  Level enter();

 private:
  void require(std::size_t size) const {
    if (size > remaining()) fail_short(size);
  }
  [[noreturn]] void fail_short(std::uint64_t size) const;
  [[noreturn]] void fail_malformed(const char* what, std::size_t offset) const;

  std::span<const std::byte> input_;
  std::size_t position_ = 0;
  ByteReaderLimits limits_;
  int depth_ = 0;
};

}  // namespace dflow
