#pragma once

#include <dflow/ops/parsing/parsing_op.hpp>

#include <array>
#include <complex>
#include <cstdint>
#include <string>
#include <string_view>

namespace dflow {

using RawTypes = TypeList<Half, float, double, std::int32_t, std::uint16_t, std::uint8_t, std::int16_t, std::int8_t,
                          std::int64_t, std::complex<float>, std::complex<double>, bool, BFloat16>;

/// Reads the bytes of each text as numbers: bytes [d0, ..., dn] -> [d0, ..., dn, numbers]. All texts have the same
/// length.
struct DecodeRaw : ParsingOp<"DecodeRaw", RawTypes> {
  struct Attrs {
    bool little_endian = true;
  };
  using Inputs = In<std::string>;
  using Outputs = Out<T>;
  static constexpr std::array<std::string_view, 1> type_names{"out_type"};
  static void infer(InferContext& context);
};

/// bytes: [d0, ..., dn], all of the same length. Any byte but 0 is a true bool. If there are no texts, `numbers` is 0.
///
/// ```cpp
/// auto pixels = df::decode_raw<std::uint8_t>(images);   // [batch] to [batch, dynamic]
/// ```
/// Errors: InvalidArgument in the step for texts of different lengths, and a length that is no multiple of T's size.
template <AllowedFor<DecodeRaw> T>
Output<T> decode_raw(const Output<std::string>& bytes, DecodeRaw::Attrs attrs = {}, const At& at = {}) {
  return Output<T>::unchecked(build<DecodeRaw>({bytes}, attrs, at, type_args<T>()));
}

}  // namespace dflow
