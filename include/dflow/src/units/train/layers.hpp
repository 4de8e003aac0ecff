#pragma once

/// Bodies of the training library: a part of <dflow/src/train.hpp>.

#include <dflow/train/batch_normalization.ipp>
#include <dflow/train/clip.ipp>
#include <dflow/train/convolution_layers.ipp>
#include <dflow/train/initializers.ipp>
#include <dflow/train/layer.ipp>
#include <dflow/train/layer_normalization.ipp>
#include <dflow/train/layers.ipp>
#include <dflow/train/metrics.ipp>
#include <dflow/train/minibatches.ipp>
#include <dflow/train/optimizer.ipp>
#include <dflow/train/optimizers.ipp>
#include <dflow/train/partitioned_variable.ipp>
#include <dflow/train/progress.ipp>
#include <dflow/train/recurrent/attention.ipp>
#include <dflow/train/recurrent/cells.ipp>
#include <dflow/train/recurrent/rnn.ipp>
#include <dflow/train/recurrent/sequences.ipp>
#include <dflow/train/regularizers.ipp>
#include <dflow/train/schedules.ipp>
#include <dflow/train/variables/layer_builder.ipp>
#include <dflow/train/variables/partitioners.ipp>
#include <dflow/train/variables/variable_scope.ipp>
#include <dflow/train/weight_decay.ipp>
