#include "oracle.hpp"

#include "support/source_folder.hpp"

#include <dflow/base/status.hpp>

#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <stdexcept>

namespace dflow::testing {

namespace {

using nlohmann::json;

double number(const json& value) {
  if (value.is_string()) {
    const std::string text = value;
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    return text == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.get<double>();
}

template <class T>
T convert(const json& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value.get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.is_boolean() ? value.get<bool>() : number(value) != 0;
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    using Part = typename T::value_type;
    if (!value.is_array()) return T(static_cast<Part>(number(value)));
    return T(static_cast<Part>(number(value[0])), static_cast<Part>(number(value[1])));
  } else if constexpr (std::is_integral_v<T>) {
    if (value.is_number_unsigned()) return static_cast<T>(value.get<std::uint64_t>());
    if (value.is_number_integer()) return static_cast<T>(value.get<std::int64_t>());
    return static_cast<T>(number(value));
  } else if constexpr (std::is_same_v<T, double>) {
    return number(value);
  } else {
    return T(static_cast<float>(number(value)));
  }
}

std::vector<std::optional<OracleTensor>> parse_optional_tensors(const json& entries) {
  std::vector<std::optional<OracleTensor>> result;
  for (const json& entry : entries) {
    result.push_back(entry.is_null() ? std::nullopt : std::optional(parse_oracle_tensor(entry)));
  }
  return result;
}

std::vector<DType> parse_dtypes(const json& entries) {
  std::vector<DType> result;
  for (const json& type : entries) result.push_back(dtype_from_oracle_name(type));
  return result;
}

OracleCase parse_case(const json& entry, const std::string& file) {
  OracleCase result;
  result.file = file;
  result.op = entry.at("op");
  result.name = entry.at("name");
  result.attrs = entry.value("attrs", json::object());
  for (const json& input : entry.at("inputs")) result.inputs.push_back(parse_oracle_tensor(input));
  for (const json& output : entry.value("outputs", json::array()))
    result.outputs.push_back(parse_oracle_tensor(output));
  result.types = parse_dtypes(entry.value("types", json::array()));
  result.gradient = entry.value("gradient", false);
  result.gradient_inputs = entry.value("gradient_inputs", std::vector<int>{});
  result.gradient_outputs = entry.value("gradient_outputs", std::vector<int>{});
  result.tolerance_scale = entry.value("tolerance_scale", 1.0);
  result.terms = entry.value("terms", 0.0);
  result.roundings = entry.value("roundings", 1);
  result.any_zero = entry.value("any_zero", false);
  result.dy = parse_optional_tensors(entry.value("dy", json::array()));
  result.dx = parse_optional_tensors(entry.value("dx", json::array()));
  result.gradient_types = parse_dtypes(entry.value("gradient_types", json::array()));
  result.gradient_terms = entry.value("gradient_terms", 0.0);
  result.source = entry.value("source", "");
  result.code = entry.value("code", "");
  result.match = entry.value("match", "");
  result.when = entry.value("when", "");
  if (result.types.empty()) result.types.push_back(DType::float64);
  return result;
}

std::vector<OracleCase> read_all(const char* section) {
  std::vector<std::filesystem::path> paths;
  const std::string folder = testing::source_folder() + "/tests/oracle";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw std::runtime_error("no oracle files in " + folder);
  std::vector<OracleCase> cases;
  for (const auto& path : paths) {
    std::ifstream stream(path);
    const json file = json::parse(stream);
    for (const json& entry : file.at(section)) cases.push_back(parse_case(entry, path.stem().string()));
  }
  return cases;
}

}  // namespace

DType dtype_from_oracle_name(const std::string& name) {
  static const std::map<std::string, DType> renamed{
      {"float32", DType::float32}, {"float64", DType::float64}, {"float16", DType::float16}};
  if (const auto found = renamed.find(name); found != renamed.end()) return found->second;
  if (const auto dtype = parse_dtype(name)) return *dtype;
  throw std::runtime_error("unknown element type " + name);
}

OracleTensor parse_oracle_tensor(const json& entry) {
  OracleTensor tensor;
  const std::string role = entry.value("role", "fixed");
  tensor.role = role == "T"       ? OracleTensor::Role::under_test
                : role == "param" ? OracleTensor::Role::param
                                  : OracleTensor::Role::fixed;
  tensor.dtype = dtype_from_oracle_name(entry.at("dtype"));
  tensor.shape = Shape(std::span<const std::int64_t>(entry.at("shape").get<std::vector<std::int64_t>>()));
  tensor.values = entry.at("values");
  return tensor;
}

DType OracleTensor::dtype_for(DType t) const {
  if (role == Role::fixed) return dtype;
  if (role == Role::param && (t == DType::float16 || t == DType::bfloat16)) return DType::float32;
  return t;
}

AnyTensor OracleTensor::make(DType wanted) const {
  AnyTensor tensor(wanted, shape);
  visit_dtype<AllTypes>(wanted, [&]<class T>() {
    auto elements = tensor.span<T>();
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = convert<T>(values.at(i));
  });
  return tensor;
}

std::string OracleCase::title(DType t) const {
  return file + ": " + op + ", " + name + ", " + std::string(dflow::dtype_name(t));
}

const std::vector<OracleCase>& oracle_cases() {
  static const std::vector<OracleCase> cases = read_all("cases");
  return cases;
}

const std::vector<OracleCase>& oracle_errors() {
  static const std::vector<OracleCase> errors = read_all("errors");
  return errors;
}

double element_as_double(const AnyTensor& tensor, std::int64_t i, bool imaginary) {
  const auto index = static_cast<std::size_t>(i);
  return visit_dtype<PlainTypes>(tensor.dtype(), [&]<class T>() -> double {
    const T value = tensor.span<T>()[index];
    if constexpr (is_complex_element<T>) {
      return static_cast<double>(imaginary ? value.imag() : value.real());
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return static_cast<double>(static_cast<float>(value));
    } else {
      return static_cast<double>(value);
    }
  });
}

namespace {

/// Half the distance of 1 to the next larger number of the element type.
double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      return 0x1p-53;
    case DType::float32:
    case DType::complex64:
      return 0x1p-24;
    case DType::float16:
      return 0x1p-11;
    case DType::bfloat16:
      return 0x1p-8;
    default:
      return 0;
  }
}

/// The element type in which kernels compute values that are stored as `dtype`.
DType computing_type(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

/// The smallest positive number of the element type, if it has less range than the reference; nothing is nearer to it.
double smallest_positive(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::complex64:
      return 0x1p-149;
    case DType::float16:
      return 0x1p-24;
    case DType::bfloat16:
      return 0x1p-133;
    default:
      return 0;
  }
}

/// The largest difference between an element of type `dtype` and `expected`. Kernels compute in the computing type and
/// then round to `dtype`. Their error is some units in the last place of the expected value, or of the terms that
/// cancel in it.
double largest_error(DType dtype, double expected, const OracleCase& oracle_case) {
  const double size = std::max(expected, oracle_case.terms);
  double error = 8 * oracle_case.tolerance_scale * unit_roundoff(computing_type(dtype)) * size;
  if (computing_type(dtype) != dtype) {
    error += 1.01 * unit_roundoff(dtype) * (expected + (oracle_case.roundings - 1) * size);
  }
  return error + smallest_positive(dtype) / 2;
}

/// Whether both are a zero of the same sign, or neither is zero.
bool same_zero(double a, double b) { return (a == 0) == (b == 0) && (a != 0 || std::signbit(a) == std::signbit(b)); }

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

std::string difference(const AnyTensor& got, const OracleTensor& want, DType want_dtype,
                       const OracleCase& oracle_case) {
  if (got.dtype() != want_dtype) {
    return str_cat("element type is ", dflow::dtype_name(got.dtype()), ", not ", dflow::dtype_name(want_dtype));
  }
  if (!(got.shape() == want.shape))
    return str_cat("shape is ", got.shape().to_string(), ", not ", want.shape.to_string());
  if (want_dtype == DType::string || is_integer(want_dtype) || want_dtype == DType::boolean) {
    const AnyTensor expected = want.make(want_dtype);
    return bitwise_equal(got, expected) ? "" : str_cat("got ", got.to_string(), ", want ", expected.to_string());
  }
  for (std::int64_t i = 0; i < got.num_elements(); ++i) {
    const json& value = want.values.at(static_cast<std::size_t>(i));
    const std::complex<double> expected(number(value.is_array() ? value[0] : value),
                                        value.is_array() ? number(value[1]) : 0);
    const std::complex<double> actual(element_as_double(got, i),
                                      is_complex(want_dtype) ? element_as_double(got, i, true) : 0);
    const bool same = same_number(expected.real(), actual.real()) && same_number(expected.imag(), actual.imag());
    const bool zeros_agree =
        is_complex(want_dtype) || oracle_case.any_zero || !same || same_zero(expected.real(), actual.real());
    const double error = std::abs(expected - actual);
    if (same ? zeros_agree : error <= largest_error(want_dtype, std::abs(expected), oracle_case)) continue;
    if (!is_complex(want_dtype)) return str_cat("element ", i, " is ", actual.real(), ", not ", expected.real());
    return str_cat("element ", i, " is (", actual.real(), ", ", actual.imag(), "), not (", expected.real(), ", ",
                   expected.imag(), ")");
  }
  return "";
}

}  // namespace dflow::testing
