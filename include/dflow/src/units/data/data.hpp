#pragma once

/// Bodies of datasets.

#include <dflow/data/files.ipp>
#include <dflow/data/item.ipp>
#include <dflow/data/iterator.ipp>
#include <dflow/data/replay_limit.ipp>
#include <dflow/data/sources.ipp>
#include <dflow/data/steps/batch.ipp>
#include <dflow/data/steps/cache.ipp>
#include <dflow/data/steps/ignore_errors.ipp>
#include <dflow/data/steps/interleave.ipp>
#include <dflow/data/steps/parallel_map.ipp>
#include <dflow/data/steps/prefetch.ipp>
#include <dflow/data/steps/replayed_input.ipp>
#include <dflow/data/steps/shuffle.ipp>
#include <dflow/data/steps/stack.ipp>
#include <dflow/data/steps/transforms.ipp>
#include <dflow/data/stream.ipp>
