#pragma once

#include <dflow/core/dtype.hpp>

namespace dflow {

/// The element types of matrices that can be decomposed and solved.
using LinalgTypes = concat_t<TypeList<float, double>, ComplexTypes>;

}  // namespace dflow
