#pragma once

/// Public: bodies of datasets.

#include <dflow/src/units/data/data.hpp>
