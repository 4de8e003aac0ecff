#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/op/import.ipp>
#include <dflow/op/merge.ipp>
