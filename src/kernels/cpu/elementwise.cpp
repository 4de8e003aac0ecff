#include <dflow/kernels/cpu/elementwise/kernel.ipp>
