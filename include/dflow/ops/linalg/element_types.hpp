#pragma once

#include <dflow/core/dtype.hpp>

namespace dflow {

/// What matrices are decomposed and solved in.
using LinalgTypes = concat_t<TypeList<float, double>, ComplexTypes>;

}  // namespace dflow
