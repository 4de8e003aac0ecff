#include <dflow/kernels/state/variable_state.ipp>
