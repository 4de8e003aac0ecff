#pragma once

/// Bodies of datasets.

#include <dflow/src/units/data/data.hpp>
