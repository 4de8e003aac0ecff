#pragma once

/// Public: datasets: sources of elements, steps that transform them, and iterators over them.

#include <dflow/data/dataset.hpp>
#include <dflow/data/files.hpp>
#include <dflow/data/from.hpp>
