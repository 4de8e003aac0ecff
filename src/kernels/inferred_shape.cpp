#include <dflow/kernels/inferred_shape.ipp>
