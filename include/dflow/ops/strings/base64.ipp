#pragma once

#include <dflow/ops/strings/base64.hpp>

namespace dflow {

void EncodeBase64::infer(InferContext& context) { context.set_output(0, context.input(0)); }
void DecodeBase64::infer(InferContext& context) { context.set_output(0, context.input(0)); }

Output<std::string> encode_base64(const Output<std::string>& texts, EncodeBase64::Attrs attrs, const At& at) {
  return Output<std::string>::unchecked(build<EncodeBase64>({texts}, attrs, at));
}

Output<std::string> decode_base64(const Output<std::string>& codes, const At& at) {
  return Output<std::string>::unchecked(build<DecodeBase64>({codes}, {}, at));
}

}  // namespace dflow
