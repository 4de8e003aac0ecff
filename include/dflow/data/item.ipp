#pragma once

#include <dflow/data/item.hpp>

namespace dflow::data {

void detail::unshare(AnyTensor& tensor) {
  if (tensor.buffer() && !tensor.buffer_is_unique()) tensor = tensor.deep_copy();
}

}  // namespace dflow::data
