#pragma once

/// TFRecord files, which the kernels of readers use too.

#include <dflow/base/records/record_file.hpp>
