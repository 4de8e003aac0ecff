#pragma once

/// The standard op table.

#include <dflow/ops/standard_ops.ipp>
