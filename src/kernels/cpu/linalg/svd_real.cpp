#include <dflow/kernels/cpu/linalg/svd_real.ipp>
