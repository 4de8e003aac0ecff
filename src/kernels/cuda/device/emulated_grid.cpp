// The checked longjmp takes a jump to another stack for a mistake.
#undef _FORTIFY_SOURCE

#include <dflow/kernels/cuda/grid/emulated_grid.ipp>
