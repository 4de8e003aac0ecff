#pragma once

/// Bodies of the ops of family image.

#include <dflow/ops/image/resize.ipp>
