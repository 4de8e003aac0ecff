#include <dflow/kernels/cpu/raw/transpose.ipp>
