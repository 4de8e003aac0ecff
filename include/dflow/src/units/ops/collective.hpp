#pragma once

/// Bodies of the ops of family collective.

#include <dflow/ops/collective/collective.ipp>
