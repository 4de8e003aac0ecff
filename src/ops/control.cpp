#include <dflow/ops/control/no_op.ipp>
