#include <dflow/ops/random/random.ipp>
#include <dflow/ops/random/shuffle.ipp>
