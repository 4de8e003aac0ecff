#include <dflow/kernels/state/accumulator_state.ipp>
#include <dflow/kernels/state/device_files.ipp>
#include <dflow/kernels/state/kept_resource.ipp>
#include <dflow/kernels/state/queue_state.ipp>
#include <dflow/kernels/state/random_stream.ipp>
#include <dflow/kernels/state/staleness_clock_state.ipp>
#include <dflow/kernels/state/token_barrier_state.ipp>
#include <dflow/kernels/state/variable_state.ipp>
