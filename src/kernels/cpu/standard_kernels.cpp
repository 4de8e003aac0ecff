#include <dflow/kernels/cpu/standard_kernels.ipp>
