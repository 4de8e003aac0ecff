#pragma once

/// Public: optimizers, schedules, clipping, layers, metrics, checkpoints and the parts of a training loop.

#include <dflow/train/clip.hpp>
#include <dflow/train/finite.hpp>
#include <dflow/train/fitting/accumulated_gradients.hpp>
#include <dflow/train/fitting/fit.hpp>
#include <dflow/train/fitting/hooks.hpp>
#include <dflow/train/fitting/loss_scale_optimizer.hpp>
#include <dflow/train/fitting/moving_average.hpp>
#include <dflow/train/fitting/summaries.hpp>
#include <dflow/train/initializers.hpp>
#include <dflow/train/input/batch.hpp>
#include <dflow/train/input/bucket.hpp>
#include <dflow/train/input/coordinator.hpp>
#include <dflow/train/input/producers.hpp>
#include <dflow/train/input/queue_runner.hpp>
#include <dflow/train/layers.hpp>
#include <dflow/train/metrics.hpp>
#include <dflow/train/minibatches.hpp>
#include <dflow/train/optimizers.hpp>
#include <dflow/train/partitioned_variable.hpp>
#include <dflow/train/progress.hpp>
#include <dflow/train/recurrent/rnn.hpp>
#include <dflow/train/regularizers.hpp>
#include <dflow/train/replicas/mirrored_replicas.hpp>
#include <dflow/train/replicas/replica_device.hpp>
#include <dflow/train/replicas/stale_sync_replicas.hpp>
#include <dflow/train/replicas/supervisor.hpp>
#include <dflow/train/replicas/sync_replicas.hpp>
#include <dflow/train/saving/checkpoint_state.hpp>
#include <dflow/train/saving/saved_state.hpp>
#include <dflow/train/saving/saver.hpp>
#include <dflow/train/saving/variable_values.hpp>
#include <dflow/train/schedules.hpp>
#include <dflow/train/variables/variable_scope.hpp>
#include <dflow/train/weight_decay.hpp>
