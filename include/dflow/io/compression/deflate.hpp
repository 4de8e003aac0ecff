#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/function_ref.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace dflow {

/// Unpacks a raw deflate stream (RFC 1951), as ZIP archives hold it, piece by piece.
///
/// Thread safety: one thread at a time.
/// Errors: Unimplemented in a library built without zlib; ResourceExhausted if zlib has no memory.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills `into`. `more` gives the next packed bytes, none at their end; they stay where they are until it is called
  /// again. Errors also: DataLoss for a stream that is damaged or ends before that.
  void read(std::span<std::byte> into, FunctionRef<std::span<const std::byte>()> more);
  /// Reads on, and requires that the stream ends here and no packed bytes follow it. Errors also: DataLoss.
  void expect_end(FunctionRef<std::span<const std::byte>()> more);

 private:
  struct Stream;
  bool step(std::span<std::byte> into, std::size_t& filled, FunctionRef<std::span<const std::byte>()> more);

  std::unique_ptr<Stream> stream_;
};

/// The deflate stream of pieces that lie one behind the other. Errors: as Inflater.
std::string deflate(std::span<const std::span<const std::byte>> pieces);

}  // namespace dflow
