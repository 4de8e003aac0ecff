#include <dflow/ops/nn/activation.ipp>
