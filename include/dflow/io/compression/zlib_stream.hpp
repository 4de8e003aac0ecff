#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/function_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

/// The frame of deflated bytes (RFC 1951): none, as in ZIP archives, RFC 1950, or RFC 1952.
enum class CompressionFormat : std::uint8_t { raw, zlib, gzip };

/// Unpacks one compressed stream piece by piece. It knows neither where the bytes come from nor their name in an error:
/// its caller does.
///
/// Thread safety: one thread at a time.
/// Errors: Unimplemented in a library built without zlib; ResourceExhausted if zlib has no memory.
class Inflater {
 public:
  /// The outcome of a call.
  struct Step {
    std::size_t taken = 0;    ///< bytes of `packed`
    std::size_t made = 0;     ///< bytes of `into`
    bool is_end = false;      ///< the stream ends here
    std::string_view damage;  ///< zlib's words for what is wrong with the stream, else empty

    /// Nothing more comes without more packed bytes: if there are none, the stream is cut short.
    bool is_stuck() const noexcept { return taken == 0 && made == 0 && !is_end && damage.empty(); }
  };

  explicit Inflater(CompressionFormat format);
  ~Inflater();
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) noexcept;

  /// Unpacks some of `packed` into `into`, which is not empty. A stream that has ended, or is damaged, takes nothing
  /// more until `reset`.
  Step step(std::span<const std::byte> packed, std::span<std::byte> into);
  /// Another stream begins: a gzip file's next member, or the first one again.
  void reset();

 private:
  struct Stream;

  std::unique_ptr<Stream> stream_;
};

/// Packs one stream piece by piece.
///
/// Thread safety: one thread at a time.
/// Errors: as Inflater; InvalidArgument for a level that zlib does not have.
class Deflater {
 public:
  /// The bytes that `run` gives out: all that are ready, all that were put in, or these with the stream's end.
  enum class Flush : std::uint8_t { none, sync, finish };
  using Out = FunctionRef<void(std::span<const std::byte>)>;

  /// `level`: 0 (stored) to 9, or -1 for zlib's own choice.
  explicit Deflater(CompressionFormat format, int level = -1);
  ~Deflater();
  Deflater(Deflater&&) noexcept;
  Deflater& operator=(Deflater&&) noexcept;

  /// Packs `bytes` and calls `out` with the packed bytes, piece by piece. If `out` throws, the stream is broken.
  /// Errors also: FailedPrecondition for bytes after the stream's end.
  void run(std::span<const std::byte> bytes, Flush flush, Out out);

 private:
  struct Stream;

  std::unique_ptr<Stream> stream_;
};

/// The compressed stream of pieces that lie one behind the other. Errors: as Deflater.
std::string deflated(std::span<const std::span<const std::byte>> pieces, CompressionFormat format);

}  // namespace dflow
