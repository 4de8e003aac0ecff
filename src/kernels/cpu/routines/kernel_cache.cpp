#include <dflow/kernels/cpu/routines/kernel_cache.ipp>
#include <dflow/kernels/cpu/routines/options.ipp>
