#pragma once

/// Bodies of the ops of family image.

#include <dflow/ops/image/boxes.ipp>
#include <dflow/ops/image/color.ipp>
#include <dflow/ops/image/crop_and_resize.ipp>
#include <dflow/ops/image/geometry.ipp>
#include <dflow/ops/image/resize.ipp>
