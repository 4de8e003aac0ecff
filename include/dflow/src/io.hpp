#pragma once

/// Bodies of file formats. The families checkpoint, io, parsing and summary need them, and so do data, trace and train.

#include <dflow/src/units/io/io.hpp>
