#pragma once

/// Bodies of the ops of family summary.

#include <dflow/ops/summary/summary.ipp>
