// expect: static.assert.*a variable is updated to an edge of its element type
#include <dflow/session/compiled_function.hpp>

dflow::Updates update(const dflow::Variable<float>& w, const dflow::Output<double>& value) {
  return dflow::updates(w, value);
}
