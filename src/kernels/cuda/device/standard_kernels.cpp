#include <dflow/kernels/cuda/standard_kernels.ipp>
