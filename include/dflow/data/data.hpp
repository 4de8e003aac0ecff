#pragma once

/// Public: datasets: where elements come from, what becomes of them, and how they are gone through.

#include <dflow/data/dataset.hpp>
#include <dflow/data/files.hpp>
#include <dflow/data/from.hpp>
