#include <dflow/ops/summary/summary.ipp>
