#include <dflow/kernels/state/kept_resource.ipp>
#include <dflow/kernels/state/random_stream.ipp>
#include <dflow/kernels/state/variable_state.ipp>
