// With its type spelt out a list of attributes says which name is wrong, as docs/training.md promises.
// expect: (no non-static data member named|field designator).*transposed
#include <dflow/ops/math/matmul.hpp>

dflow::Output<float> product(const dflow::Output<float>& a, const dflow::Output<float>& b) {
  return dflow::matmul(a, b, dflow::MatMul::Attrs{.transposed = true});
}
