#pragma once

/// Bodies of the training library: a part of <dflow/src/train.hpp>.

#include <dflow/train/finite.ipp>
#include <dflow/train/fitting/accumulated_gradients.ipp>
#include <dflow/train/fitting/fit.ipp>
#include <dflow/train/fitting/history.ipp>
#include <dflow/train/fitting/hooks.ipp>
#include <dflow/train/fitting/loss_scale_optimizer.ipp>
#include <dflow/train/fitting/moving_average.ipp>
#include <dflow/train/fitting/summaries.ipp>
#include <dflow/train/fitting/train_step.ipp>
#include <dflow/train/input/batch.ipp>
#include <dflow/train/input/bucket.ipp>
#include <dflow/train/input/coordinator.ipp>
#include <dflow/train/input/edges.ipp>
#include <dflow/train/input/producers.ipp>
#include <dflow/train/input/queue_runner.ipp>
