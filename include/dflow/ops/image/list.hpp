#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/image/boxes.hpp>
#include <dflow/ops/image/resize.hpp>

namespace dflow {

/// The family's ops in the standard table.
using ImageOps =
    TypeList<DrawBoundingBoxes, NonMaxSuppression, ResizeBilinear, ResizeBilinearGrad, ResizeBicubic, ResizeBicubicGrad,
             ResizeArea, ResizeAreaGrad, ResizeNearestNeighbor, ResizeNearestNeighborGrad>;

}  // namespace dflow
