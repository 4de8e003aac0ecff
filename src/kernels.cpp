#include <dflow/kernels/kernel.ipp>
#include <dflow/kernels/kernel_context.ipp>
#include <dflow/kernels/typed_kernel.ipp>
