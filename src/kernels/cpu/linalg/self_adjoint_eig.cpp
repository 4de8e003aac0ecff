#include <dflow/kernels/cpu/linalg/self_adjoint_eig.ipp>
