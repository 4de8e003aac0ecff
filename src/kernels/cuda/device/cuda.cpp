#include <dflow/kernels/cuda/cuda.ipp>
#include <dflow/kernels/cuda/cuda_step.ipp>
#include <dflow/kernels/cuda/driver/error_code.ipp>
#include <dflow/kernels/cuda/elementwise/kernel.ipp>
#include <dflow/kernels/cuda/memory/completions.ipp>
#include <dflow/kernels/cuda/memory/cuda_allocator.ipp>
#include <dflow/kernels/cuda/memory/cuda_memory.ipp>
#include <dflow/kernels/cuda/memory/device_core.ipp>
