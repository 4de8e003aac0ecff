#include <dflow/kernels/cpu/cpu_kernel.ipp>
