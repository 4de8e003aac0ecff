#include <dflow/kernels/contract/inferred_shape.ipp>
