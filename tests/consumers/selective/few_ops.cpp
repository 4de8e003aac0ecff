// An inference-only table: the linker takes the kernels of the listed ops and no others.
#include "program.hpp"

int main() {
  return run_dense_layer(
      {.ops = dflow::ops<dflow::Placeholder, dflow::Const, dflow::Identity, dflow::MatMul, dflow::Relu>});
}
