#include <dflow/kernels/cpu/raw/onednn.ipp>
