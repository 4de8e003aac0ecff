#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/graph/attr_value.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace dflow::testing {

/// A tensor of an oracle file; see tests/oracle/README.md.
struct OracleTensor {
  enum class Role { under_test, param, fixed };
  Role role = Role::fixed;
  DType dtype = DType::invalid;  ///< the element type in which the reference was computed
  Shape shape;
  nlohmann::json values;

  /// The element type of this tensor when the case runs for element type `t`.
  DType dtype_for(DType t) const;
  /// The values converted to `dtype`.
  AnyTensor make(DType dtype) const;
};

struct OracleCase {
  std::string file, op, name, source;
  nlohmann::json attrs;
  std::vector<OracleTensor> inputs, outputs;
  std::vector<DType> types;
  bool gradient = false;
  std::vector<int> gradient_inputs, gradient_outputs;  ///< empty: all tensors under test
  double tolerance_scale = 1;                          ///< factor on the error that the computation may have
  double terms = 0;       ///< size of terms that may cancel: errors are relative to it where it is the larger
  int roundings = 1;      ///< how often a value is rounded to a 16-bit type on its way
  bool any_zero = false;  ///< the sign of a zero is not specified

  // TensorFlow's gradients, where the case has them: one entry per output and per input, empty where there is none.
  std::vector<std::optional<OracleTensor>> dy, dx;
  std::vector<DType> gradient_types;
  double gradient_terms = 0;

  // For cases that must fail.
  std::string code, match, when;

  std::string title(DType t) const;
};

/// All cases (or errors) of all files of the oracle directory. Throws if it cannot be read.
const std::vector<OracleCase>& oracle_cases();
const std::vector<OracleCase>& oracle_errors();

DType dtype_from_oracle_name(const std::string& name);
OracleTensor parse_oracle_tensor(const nlohmann::json& json);

/// Elements as doubles (real part; the imaginary part with `imaginary`), for comparison.
double element_as_double(const AnyTensor& tensor, std::int64_t i, bool imaginary = false);

/// Compares an output of the case element by element. Integers, bool and strings must be equal; +0 and -0 are two
/// numbers. Floats may differ by a relative error, which follows from the type that computes them (float for 16-bit
/// types), and by one rounding to their own type. tests/oracle/README.md has the rule. Returns a description of the
/// first difference, or nothing.
std::string difference(const AnyTensor& got, const OracleTensor& want, DType want_dtype, const OracleCase& oracle_case);

}  // namespace dflow::testing
