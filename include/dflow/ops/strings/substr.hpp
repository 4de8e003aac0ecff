#pragma once

#include <dflow/ops/strings/string_op.hpp>

#include <string>

namespace dflow {

/// A part of each text: input, pos, len. pos and len have one shape, which broadcasts with the input's.
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

/// The part from position `pos` on, of `length` units or as many as there are. A negative `pos` counts from the end. A
/// negative length stands for all the rest if bytes are counted, as in TensorFlow from positions of 0 or more. It
/// stands for nothing if characters are counted.
///
/// Errors: InvalidArgument if pos and length have different shapes or do not broadcast with the texts. In the step,
/// InvalidArgument for a position outside [-units, units] of its text; the message names the position.
///
/// ```cpp
/// auto years = df::substr(dates, 0, 4);
/// ```
template <class A, class B, class C>
  requires Accepts<Substr, A, B, C>
Output<std::string> substr(const A& texts, const B& pos, const C& length, Substr::Attrs attrs = {}, const At& at = {}) {
  return apply<Substr>(texts, pos, length, attrs, at);
}

/// texts [d0, ..., dn] to lengths of the same shape. Errors: InvalidArgument in the step for 2^31 units or more.
Output<std::int32_t> string_length(const Output<std::string>& texts, StringLength::Attrs attrs = {}, const At& at = {});

}  // namespace dflow
