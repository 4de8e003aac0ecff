#include <dflow/ops/random/random.ipp>
