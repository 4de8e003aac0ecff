#include <dflow/kernels/cpu/elementwise.ipp>
