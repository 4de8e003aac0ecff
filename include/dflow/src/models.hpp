#pragma once

/// Public: bodies of models. They need <dflow/src/core.hpp>, and no family of kernels.

#include <dflow/src/units/train/models.hpp>
