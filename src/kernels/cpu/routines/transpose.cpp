#include <dflow/kernels/cpu/routines/array/transpose.ipp>
