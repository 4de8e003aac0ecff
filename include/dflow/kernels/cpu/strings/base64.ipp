#pragma once

#include <dflow/base/files/base64.hpp>
#include <dflow/kernels/cpu/strings/base64.hpp>

#include <optional>
#include <span>

namespace dflow {

void Kernel<EncodeBase64, Cpu>::operator()(KernelContext& context, const Tensor<std::string>& texts,
                                           Tensor<std::string>& codes) const {
  detail::each_text(context, texts.num_elements(), [&](std::int64_t i) {
    codes.data()[i] = to_base64_url(std::as_bytes(std::span(texts.data()[i])), attrs.pad);
  });
}

void Kernel<DecodeBase64, Cpu>::operator()(KernelContext& context, const Tensor<std::string>& codes,
                                           Tensor<std::string>& texts) const {
  detail::each_text(context, codes.num_elements(), [&](std::int64_t i) {
    std::optional<std::string> bytes = from_base64_url(codes.data()[i]);
    if (!bytes) {
      context.fail(str_cat("string", detail::index_to_string(i, codes.shape()), " = ",
                           detail::quoted_start(codes.data()[i]), " is no base64"));
    }
    texts.data()[i] = *std::move(bytes);
  });
}

}  // namespace dflow
