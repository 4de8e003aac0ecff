#include <dflow/kernels/cpu/cpu_kernel.ipp>
#include <dflow/kernels/cpu/file_kernel.ipp>
