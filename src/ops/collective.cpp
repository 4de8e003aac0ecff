#include <dflow/ops/collective/collective.ipp>
