#include <dflow/kernels/cpu/linalg/svd.ipp>
