#include "oracle.hpp"

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

OracleCase parse_case(const json& entry, const std::string& file) {
  OracleCase result;
  result.file = file;
  result.op = entry.at("op");
  result.name = entry.at("name");
  result.attrs = entry.value("attrs", json::object());
  for (const json& input : entry.at("inputs")) result.inputs.push_back(parse_oracle_tensor(input));
  for (const json& output : entry.value("outputs", json::array())) result.outputs.push_back(parse_oracle_tensor(output));
  for (const json& type : entry.value("types", json::array())) result.types.push_back(dtype_from_oracle_name(type));
  result.gradient = entry.value("gradient", false);
  result.gradient_inputs = entry.value("gradient_inputs", std::vector<int>{});
  result.gradient_outputs = entry.value("gradient_outputs", std::vector<int>{});
  result.tolerance_scale = entry.value("tolerance_scale", 1.0);
  result.relative = entry.value("relative", false);
  result.source = entry.value("source", "");
  result.code = entry.value("code", "");
  result.match = entry.value("match", "");
  result.when = entry.value("when", "");
  if (result.types.empty()) result.types.push_back(DType::float64);
  return result;
}

std::vector<OracleCase> read_all(const char* section) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(DFLOW_TEST_ORACLE_DIR)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw std::runtime_error("no oracle files in " DFLOW_TEST_ORACLE_DIR);
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
  tensor.role = role == "T" ? OracleTensor::Role::under_test
                            : role == "param" ? OracleTensor::Role::param : OracleTensor::Role::fixed;
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
  return file + ": " + op + ", " + name + ", " + std::string(dflow::name(t));
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

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::float64: return 2e-12;
    case DType::complex128: return 2e-12;
    case DType::float32: return 4e-6;
    case DType::complex64: return 4e-6;
    case DType::float16: return 4e-3;
    case DType::bfloat16: return 3.2e-2;
    default: return 0;
  }
}

std::string difference(const AnyTensor& got, const OracleTensor& want, DType want_dtype, double scale, bool relative) {
  if (got.dtype() != want_dtype) {
    return str_cat("element type is ", dflow::name(got.dtype()), ", not ", dflow::name(want_dtype));
  }
  if (!(got.shape() == want.shape)) return str_cat("shape is ", got.shape().to_string(), ", not ", want.shape.to_string());
  if (want_dtype == DType::string || is_integer(want_dtype) || want_dtype == DType::boolean) {
    const AnyTensor expected = want.make(want_dtype);
    return bitwise_equal(got, expected) ? "" : str_cat("got ", got.to_string(), ", want ", expected.to_string());
  }
  const double tolerance = tolerance_of(want_dtype) * scale;
  for (std::int64_t i = 0; i < got.num_elements(); ++i) {
    const json& value = want.values.at(static_cast<std::size_t>(i));
    for (const bool imaginary : {false, true}) {
      if (imaginary && !is_complex(want_dtype)) continue;
      const double expected = value.is_array() ? number(value[imaginary ? 1 : 0]) : imaginary ? 0 : number(value);
      const double actual = element_as_double(got, i, imaginary);
      if (std::isnan(expected) && std::isnan(actual)) continue;
      if (expected == actual) continue;
      const double bound = tolerance * (relative ? std::abs(expected) : std::max(1.0, std::abs(expected)));
      if (std::abs(expected - actual) <= bound) continue;
      return str_cat("element ", i, imaginary ? " (imaginary part)" : "", " is ", actual, ", not ", expected);
    }
  }
  return "";
}

}  // namespace dflow::testing
