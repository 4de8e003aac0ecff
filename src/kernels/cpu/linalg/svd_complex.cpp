#include <dflow/kernels/cpu/linalg/svd_complex.ipp>
