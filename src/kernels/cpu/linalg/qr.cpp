#include <dflow/kernels/cpu/linalg/qr.ipp>
