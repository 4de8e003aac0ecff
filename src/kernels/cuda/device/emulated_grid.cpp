#include <dflow/kernels/cuda/grid/emulated_grid.ipp>
