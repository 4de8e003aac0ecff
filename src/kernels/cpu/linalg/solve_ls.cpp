#include <dflow/kernels/cpu/linalg/solve_ls.ipp>
