#include <dflow/ops/checkpoint/resource_state.ipp>
#include <dflow/ops/checkpoint/save_restore.ipp>
