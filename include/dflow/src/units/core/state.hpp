#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/state/accumulator_state.ipp>
#include <dflow/state/barrier_state.ipp>
#include <dflow/state/flat_state.ipp>
#include <dflow/state/held_elements.ipp>
#include <dflow/state/queue_state.ipp>
#include <dflow/state/random_stream.ipp>
#include <dflow/state/readers/reader_state.ipp>
#include <dflow/state/readers/work_unit.ipp>
#include <dflow/state/session_tensors_state.ipp>
#include <dflow/state/staleness_clock_state.ipp>
#include <dflow/state/tables/lookup_table_state.ipp>
#include <dflow/state/tables/table_file.ipp>
#include <dflow/state/tensor_list.ipp>
#include <dflow/state/token_barrier_state.ipp>
#include <dflow/state/variable_state.ipp>
