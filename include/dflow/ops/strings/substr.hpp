#pragma once

#include <dflow/ops/strings/string_op.hpp>

#include <string>

namespace dflow {

/// A part of each text: input, pos, len, the latter two of one shape, which broadcasts with the input's.
struct Substr : TextOp<"Substr", IndexTypes> {
  struct Attrs {
    TextUnit unit = TextUnit::byte;
  };
  using Inputs = In<std::string, T, T>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// How long each text is, elementwise.
struct StringLength : TextOp<"StringLength"> {
  struct Attrs {
    TextUnit unit = TextUnit::byte;
  };
  using Inputs = In<std::string>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

/// From position `pos` on, which counts from the end if it is negative, `length` units or as many as there are. A
/// negative length stands, as in TensorFlow from positions of 0 or more, for all the rest if bytes are counted, and for
/// nothing if characters are.
///
/// Errors: InvalidArgument if pos and length have different shapes or do not broadcast with the texts; in the step for
/// a position outside [-units, units] of its text, which it names.
template <AllowedFor<Substr> I>
Output<std::string> substr(const Output<std::string>& texts, const Output<I>& pos, const Output<I>& length,
                           Substr::Attrs attrs = {}, const At& at = {}) {
  return Output<std::string>::unchecked(build<Substr>({texts, pos, length}, attrs, at));
}

/// The same part of all texts.
Output<std::string> substr(const Output<std::string>& texts, std::int64_t pos, std::int64_t length,
                           Substr::Attrs attrs = {}, const At& at = {});

/// texts [d0, ..., dn] to lengths of the same shape. Errors: InvalidArgument in the step for 2^31 units or more.
Output<std::int32_t> string_length(const Output<std::string>& texts, StringLength::Attrs attrs = {}, const At& at = {});

}  // namespace dflow
