#pragma once

/// Bodies of the training library: a part of <dflow/src/train.hpp>.

#include <dflow/train/replicas/mirrored_replicas.ipp>
#include <dflow/train/replicas/replica.ipp>
#include <dflow/train/replicas/replica_device.ipp>
#include <dflow/train/replicas/stale_sync_replicas.ipp>
#include <dflow/train/replicas/supervisor.ipp>
#include <dflow/train/replicas/sync_replicas.ipp>
#include <dflow/train/saving/checkpoint_state.ipp>
#include <dflow/train/saving/random_streams.ipp>
#include <dflow/train/saving/savable_resources.ipp>
#include <dflow/train/saving/saved_state.ipp>
#include <dflow/train/saving/saver.ipp>
#include <dflow/train/saving/variable_values.ipp>
#include <dflow/train/saving/weight_layouts.ipp>
#include <dflow/train/saving/weights.ipp>
