#pragma once

/// Public: the bodies of the component `dflow::image`. They need <dflow/src/core.hpp>, libjpeg and libpng, and are no
/// part of <dflow/src.hpp>.

#include <dflow/src/units/image/codec.hpp>
