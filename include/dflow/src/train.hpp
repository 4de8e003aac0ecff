#pragma once

/// Public: bodies of the training library. It builds on the families of the standard op table.

#include <dflow/src/units/train/fitting.hpp>
#include <dflow/src/units/train/layers.hpp>
#include <dflow/src/units/train/replicas.hpp>
