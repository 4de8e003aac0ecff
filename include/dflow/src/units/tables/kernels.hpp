#pragma once

/// The table of the CPU's kernels for the standard op table.

#include <dflow/kernels/cpu/standard_kernels.ipp>
