#include <dflow/state/accumulator_state.ipp>
#include <dflow/state/barrier_state.ipp>
#include <dflow/state/flat_state.ipp>
#include <dflow/state/staleness_clock_state.ipp>
#include <dflow/state/tables/lookup_table_state.ipp>
#include <dflow/state/tables/table_file.ipp>
#include <dflow/state/token_barrier_state.ipp>
#include <dflow/state/variable_state.ipp>
