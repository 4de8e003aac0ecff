#include <dflow/kernels/cpu/raw/kernel_cache.ipp>
