#include <dflow/kernels/cpu/raw/kernel_cache.ipp>
#include <dflow/kernels/cpu/raw/options.ipp>
