// expect: static.assert.*a compiled function is called with tensors of the element types of its inputs
#include <dflow/session/compiled_function.hpp>

void call(const dflow::CompiledFunction<dflow::Tensor<float>(float)>& f) { f(dflow::Tensor<int>({1}, {2})); }
