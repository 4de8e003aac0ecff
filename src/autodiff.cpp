#include <dflow/autodiff/gradients.ipp>
