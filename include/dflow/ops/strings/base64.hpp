#pragma once

#include <dflow/ops/strings/string_op.hpp>

#include <string>

namespace dflow {

/// The base64 code of each text, elementwise, in the form that is safe in URLs (RFC 4648, section 5).
struct EncodeBase64 : TextOp<"EncodeBase64"> {
  struct Attrs {
    bool pad = false;
  };
  using Inputs = In<std::string>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// The bytes of each code in this form, padded or not, elementwise.
struct DecodeBase64 : TextOp<"DecodeBase64"> {
  using Inputs = In<std::string>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// texts [d0, ..., dn] to codes of the same shape.
Output<std::string> encode_base64(const Output<std::string>& texts, EncodeBase64::Attrs attrs = {}, const At& at = {});

/// codes [d0, ..., dn] to bytes of the same shape. Errors: InvalidArgument in the step for a text that is no code. The
/// message names the text.
Output<std::string> decode_base64(const Output<std::string>& codes, const At& at = {});

}  // namespace dflow
