#pragma once

/// Public: all CPU kernels of family nn, for programs that use the standard op table.

#include <dflow/src/units/kernels/nn_activations.hpp>
#include <dflow/src/units/kernels/nn_convolutions.hpp>
#include <dflow/src/units/kernels/nn_fused.hpp>
#include <dflow/src/units/kernels/nn_losses.hpp>
#include <dflow/src/units/kernels/nn_normalisation.hpp>
#include <dflow/src/units/kernels/nn_sequences.hpp>
