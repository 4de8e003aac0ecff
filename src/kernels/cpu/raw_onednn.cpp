#include <dflow/kernels/cpu/raw/onednn.ipp>
#include <dflow/kernels/cpu/raw/onednn_conv2d.ipp>
