#include <dflow/kernels/chains/elementwise_chain.ipp>
#include <dflow/kernels/elementwise_output.ipp>
#include <dflow/kernels/host_arguments.ipp>
#include <dflow/kernels/kernel.ipp>
#include <dflow/kernels/kernel_context.ipp>
#include <dflow/kernels/kernel_table.ipp>
#include <dflow/kernels/send_recv_kernel.ipp>
#include <dflow/kernels/typed_kernel.ipp>
