#include <dflow/runtime/cuda/cuda_device.ipp>
