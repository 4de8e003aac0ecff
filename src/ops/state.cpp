#include <dflow/ops/state/count.ipp>
#include <dflow/ops/state/update.ipp>
#include <dflow/ops/state/variable.ipp>
