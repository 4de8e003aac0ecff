#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/kernels/cuda/chains/chain_text.hpp>

#include <array>
#include <bit>
#include <string_view>

namespace dflow::cuda {

namespace detail {

using FormulaOperation = Formula::Operation;

/// The type of an element in memory, and the type of its computation: float for floats of 16 bits.
struct ChainType {
  DType dtype = DType::invalid;
  std::string_view stored;
  std::string_view computed;
  std::string_view wrapping = {};  ///< for integers: the type with overflow that wraps around
};

inline const ChainType& chain_type(DType dtype) {
  static constexpr std::array<ChainType, 13> all{{
      {DType::float32, "float", "float"},
      {DType::float64, "double", "double"},
      {DType::float16, "unsigned short", "float"},
      {DType::bfloat16, "unsigned short", "float"},
      {DType::boolean, "bool", "bool"},
      {DType::int8, "signed char", "signed char", "unsigned"},
      {DType::int16, "short", "short", "unsigned"},
      {DType::int32, "int", "int", "unsigned"},
      {DType::int64, "long long", "long long", "unsigned long long"},
      {DType::uint8, "unsigned char", "unsigned char", "unsigned"},
      {DType::uint16, "unsigned short", "unsigned short", "unsigned"},
      {DType::uint32, "unsigned", "unsigned", "unsigned"},
      {DType::uint64, "unsigned long long", "unsigned long long", "unsigned long long"},
  }};
  for (const ChainType& type : all) {
    if (type.dtype == dtype) return type;
  }
  throw_error(Status::internal(str_cat("elements of type ", dtype_name(dtype), " in a chain")));
}

/// The beginning of all texts: `op/half.hpp`, `op/bfloat16.hpp` and the division of integers.
inline constexpr std::string_view chain_prelude = R"(
typedef long long Index;

__device__ inline float float16_from(unsigned short bits) {
  const unsigned sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x0400u) return __uint_as_float(sign | ((magnitude << 13) + 0x38000000u));
  const float value = (float)magnitude * 0x1p-24f;
  return sign != 0 ? -value : value;
}
__device__ inline unsigned short float16_bits(float value) {
  const unsigned word = __float_as_uint(value), sign = word >> 16 & 0x8000u, magnitude = word & 0x7fffffffu;
  unsigned half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {
    half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  } else {
    half = __float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u;
  }
  return (unsigned short)(sign | half);
}
__device__ inline float bfloat16_from(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }
__device__ inline unsigned short bfloat16_bits(float value) {
  const unsigned word = __float_as_uint(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return (unsigned short)(word >> 16 | 0x0040u);
  return (unsigned short)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}
template <class T, class Wrapping>
__device__ inline T quotient(T a, T b) {
  return b == 0 ? (T)0 : b == (T)-1 && (T)-1 < (T)0 ? (T)((Wrapping)0 - (Wrapping)a) : (T)(a / b);
}
template <class To, class From>
__device__ inline To saturated(From x, From above, From lowest, To highest) {
  return x >= above ? highest : x <= lowest ? (lowest < (From)0 ? (To)(-highest - 1) : (To)0) : x == x ? (To)x : (To)0;
}
)";

/// The name of a function of one argument, in float and in double.
inline std::string_view function_name(FormulaOperation operation) {
  switch (operation) {
    case FormulaOperation::absolute:
      return "fabs";
    case FormulaOperation::exp:
      return "exp";
    case FormulaOperation::log:
      return "log";
    case FormulaOperation::log1p:
      return "log1p";
    case FormulaOperation::expm1:
      return "expm1";
    case FormulaOperation::sqrt:
      return "sqrt";
    case FormulaOperation::sin:
      return "sin";
    case FormulaOperation::cos:
      return "cos";
    case FormulaOperation::tan:
      return "tan";
    case FormulaOperation::tanh:
      return "tanh";
    case FormulaOperation::sinh:
      return "sinh";
    case FormulaOperation::cosh:
      return "cosh";
    case FormulaOperation::atan:
      return "atan";
    case FormulaOperation::erf:
      return "erf";
    case FormulaOperation::erfc:
      return "erfc";
    case FormulaOperation::floor:
      return "floor";
    case FormulaOperation::ceil:
      return "ceil";
    case FormulaOperation::rint:
      return "nearbyint";
    case FormulaOperation::lgamma:
      return "lgamma";
    case FormulaOperation::remainder:
      return "fmod";
    case FormulaOperation::power:
      return "pow";
    default:
      return {};
  }
}

/// Writes the steps of one member.
class MemberText {
 public:
  MemberText(std::string& text, const ChainMember& member, std::size_t number, std::size_t num_inputs)
      : text_(text), member_(member), type_(chain_type(member.type)), number_(number), num_inputs_(num_inputs) {}

  void write() {
    const Formula& formula = *member_.formula;
    names_.reserve(formula.steps.size());
    truths_.reserve(formula.steps.size());
    for (std::size_t s = 0; s < formula.steps.size(); ++s) write_step(formula.steps[s], s);
    std::string result = name(formula.result);
    if (formula.rounds_once && !formula.gives_truth) result = rounded(result);
    text_ += str_cat("  const ", chain_type(member_.makes).computed, " v", num_inputs_ + number_, " = ", result, ";\n");
  }

 private:
  const std::string& name(std::int32_t step) const { return names_[static_cast<std::size_t>(step)]; }

  void write_step(const Formula::Step& step, std::size_t s) {
    bool is_a_truth = is_truth(step.operation);
    if (step.operation == FormulaOperation::choose) is_a_truth = truths_[static_cast<std::size_t>(step.b)];
    truths_.push_back(is_a_truth);
    if (step.operation == FormulaOperation::argument) {
      names_.push_back(str_cat("v", member_.reads[static_cast<std::size_t>(step.a)]));
    } else if (step.operation == FormulaOperation::constant) {
      names_.push_back(constant(step));
    } else if (step.operation == FormulaOperation::truth) {
      names_.push_back(step.whole != 0 ? "true" : "false");
    } else {
      std::string value = expression(step);
      if (!member_.formula->rounds_once && rounds(step.operation)) value = rounded(value);
      names_.push_back(str_cat("m", number_, "_", s));
      const std::string_view type = step.operation == FormulaOperation::convert ? chain_type(member_.makes).computed
                                    : is_a_truth                                ? "bool"
                                                                                : type_.computed;
      text_ += str_cat("  const ", type, " ", names_.back(), " = ", value, ";\n");
    }
  }

  /// Choosing and changing the sign are exact.
  static bool rounds(FormulaOperation operation) {
    return operation >= FormulaOperation::add && operation != FormulaOperation::maximum &&
           operation != FormulaOperation::minimum && operation != FormulaOperation::convert;
  }

  std::string rounded(const std::string& value) const {
    if (member_.type == DType::float16) return str_cat("float16_from(float16_bits(", value, "))");
    if (member_.type == DType::bfloat16) return str_cat("bfloat16_from(bfloat16_bits(", value, "))");
    return value;
  }

  std::string expression(const Formula::Step& step) const {
    const auto of_two = [&](std::string_view sign) { return str_cat(name(step.a), " ", sign, " ", name(step.b)); };
    switch (step.operation) {
      case FormulaOperation::choose:
        return str_cat(name(step.a), " ? ", name(step.b), " : ", name(step.c));
      case FormulaOperation::less:
        return of_two("<");
      case FormulaOperation::less_equal:
        return of_two("<=");
      case FormulaOperation::equal:
        return of_two("==");
      case FormulaOperation::not_equal:
        return of_two("!=");
      // As `math::max` and `math::min`.
      case FormulaOperation::maximum:
        return str_cat("((", name(step.a), " < ", name(step.b), ") | (", name(step.b), " != ", name(step.b), ")) ? ",
                       name(step.b), " : ", name(step.a));
      case FormulaOperation::minimum:
        return str_cat("((", name(step.b), " < ", name(step.a), ") | (", name(step.b), " != ", name(step.b), ")) ? ",
                       name(step.b), " : ", name(step.a));
      case FormulaOperation::convert:
        return converted(name(step.a));
      default:
        return type_.wrapping.empty() ? of_floats(step) : of_integers(step);
    }
  }

  /// As `converted` of `op/conversion.hpp`.
  std::string converted(const std::string& x) const {
    const ChainType& to = chain_type(member_.makes);
    if (to.dtype == DType::boolean) return member_.type == DType::boolean ? x : str_cat(x, " != 0");
    if (is_floating(member_.type) && is_integer(to.dtype)) {
      const auto bits = static_cast<int>(size_of(to.dtype) * 8) - (is_signed_integer(to.dtype) ? 1 : 0);
      return str_cat("saturated<", to.computed, ">(", x, ", (", type_.computed, ")0x1p", bits, ", ",
                     is_signed_integer(to.dtype) ? str_cat("-(", type_.computed, ")0x1p", bits)
                                                 : str_cat("(", type_.computed, ")0"),
                     ", (", to.computed, ")", ~std::uint64_t{0} >> (64 - bits), "ull)");
    }
    std::string value = str_cat("(", to.computed, ")", x);
    if (to.dtype == member_.type) return x;
    if (to.dtype == DType::float16) return str_cat("float16_from(float16_bits(", value, "))");
    if (to.dtype == DType::bfloat16) return str_cat("bfloat16_from(bfloat16_bits(", value, "))");
    return value;
  }

  std::string of_floats(const Formula::Step& step) const {
    switch (step.operation) {
      case FormulaOperation::negate:
        return str_cat("-", name(step.a));
      case FormulaOperation::add:
        return str_cat(name(step.a), " + ", name(step.b));
      case FormulaOperation::subtract:
        return str_cat(name(step.a), " - ", name(step.b));
      case FormulaOperation::multiply:
        return str_cat(name(step.a), " * ", name(step.b));
      case FormulaOperation::divide:
        return str_cat(name(step.a), " / ", name(step.b));
      default:
        break;
    }
    const std::string_view function = function_name(step.operation);
    if (function.empty()) throw_error(Status::internal("a step of a formula that there is not"));
    return str_cat(function, member_.type == DType::float64 ? "(" : "f(", name(step.a),
                   step.b >= 0 ? str_cat(", ", name(step.b)) : std::string(), ")");
  }

  std::string of_integers(const Formula::Step& step) const {
    const auto wrap = [&](std::int32_t of) { return str_cat("(", type_.wrapping, ")", name(of)); };
    std::string negated = str_cat("(", type_.computed, ")((", type_.wrapping, ")0 - ", wrap(step.a), ")");
    const auto wrapped = [&](std::string_view sign) {
      return str_cat("(", type_.computed, ")(", wrap(step.a), " ", sign, " ", wrap(step.b), ")");
    };
    switch (step.operation) {
      case FormulaOperation::negate:
        return negated;
      case FormulaOperation::add:
        return wrapped("+");
      case FormulaOperation::subtract:
        return wrapped("-");
      case FormulaOperation::multiply:
        return wrapped("*");
      case FormulaOperation::divide:
        return str_cat("quotient<", type_.computed, ", ", type_.wrapping, ">(", name(step.a), ", ", name(step.b), ")");
      case FormulaOperation::absolute:
        return is_signed_integer(member_.type) ? str_cat(name(step.a), " < 0 ? ", negated, " : ", name(step.a))
                                               : name(step.a);
      default:
        throw_error(Status::internal("a step of a formula that is not for integers"));
    }
  }

  std::string constant(const Formula::Step& step) const {
    const auto as = [&]<class T>() { return step.is_whole ? static_cast<T>(step.whole) : static_cast<T>(step.real); };
    const auto of_float = [](float value) {
      return str_cat("__uint_as_float(", std::bit_cast<std::uint32_t>(value), "u)");
    };
    switch (member_.type) {
      case DType::float64:
        return str_cat("__longlong_as_double((long long)",
                       std::bit_cast<std::uint64_t>(as.template operator()<double>()), "ull)");
      case DType::float16:
        if (!member_.formula->rounds_once) return of_float(static_cast<float>(Half(as.template operator()<float>())));
        return of_float(as.template operator()<float>());
      case DType::bfloat16:
        if (!member_.formula->rounds_once)
          return of_float(static_cast<float>(BFloat16(as.template operator()<float>())));
        return of_float(as.template operator()<float>());
      case DType::float32:
        return of_float(as.template operator()<float>());
      case DType::boolean:
        return (step.is_whole ? step.whole != 0 : step.real != 0) ? "true" : "false";
      default: {
        const auto whole = static_cast<std::uint64_t>(as.template operator()<std::int64_t>());
        return str_cat("(", type_.computed, ")", whole, "ull");
      }
    }
  }

  std::string& text_;
  const ChainMember& member_;
  const ChainType& type_;
  const std::size_t number_;
  const std::size_t num_inputs_;
  std::vector<std::string> names_;  ///< of the steps' values
  std::vector<bool> truths_;
};

/// The function that computes one element of all outputs.
inline void write_element(std::string& text, const ChainForm& form) {
  text += "__device__ inline void compute(const void* const* x, void* const* y, Index i, const Index* at) {\n";
  for (std::size_t k = 0; k < form.inputs.size(); ++k) {
    const ChainType& type = chain_type(form.inputs[k]);
    const std::string element = str_cat("((const ", type.stored, "*)x[", k, "])[at[", k, "]]");
    const bool is_float16 = type.dtype == DType::float16, is_bfloat16 = type.dtype == DType::bfloat16;
    text += str_cat("  const ", type.computed, " v", k, " = ",
                    is_float16    ? str_cat("float16_from(", element, ")")
                    : is_bfloat16 ? str_cat("bfloat16_from(", element, ")")
                                  : element,
                    ";\n");
  }
  for (std::size_t m = 0; m < form.members.size(); ++m) {
    MemberText(text, form.members[m], m, form.inputs.size()).write();
  }
  for (std::size_t o = 0; o < form.gives.size(); ++o) {
    const auto member = static_cast<std::size_t>(form.gives[o]);
    const ChainType& type = chain_type(form.members[member].makes);
    const std::string value = str_cat("v", form.inputs.size() + member);
    text += str_cat("  ((", type.stored, "*)y[", o, "])[i] = ",
                    type.dtype == DType::float16    ? str_cat("float16_bits(", value, ")")
                    : type.dtype == DType::bfloat16 ? str_cat("bfloat16_bits(", value, ")")
                                                    : value,
                    ";\n");
  }
  text += "}\n";
}

inline void write_kernel(std::string& text, const ChainForm& form, bool broadcasts) {
  const std::size_t inputs = form.inputs.size();
  const std::string_view args = broadcasts ? "BroadcastArgs" : "DenseArgs";
  text +=
      str_cat("struct ", args, " {\n  Index n;\n  const void* x[", inputs, "];\n  void* y[", form.gives.size(), "];\n");
  if (broadcasts) {
    text += str_cat("  Index rank, extents[", max_broadcast_rank, "], strides[", inputs, "][", max_broadcast_rank,
                    "];\n};\n");
  } else {
    text += "  Index repeated;\n};\n";
  }
  text += str_cat("extern \"C\" __global__ void __launch_bounds__(256) ", broadcasts ? broadcast_chain : dense_chain,
                  "(const __grid_constant__ ", args,
                  " args) {\n"
                  "  const Index count = (Index)gridDim.x * blockDim.x;\n"
                  "  for (Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x; i < args.n; i += count) {\n");
  if (broadcasts) {
    text += str_cat("    Index at[", inputs,
                    "] = {}, rest = i;\n"
                    "#pragma unroll 1\n"
                    "    for (int d = (int)args.rank - 1; d >= 0; --d) {\n"
                    "      const Index index = d == 0 ? rest : rest % args.extents[d];\n"
                    "      rest /= args.extents[d];\n"
                    "      for (int k = 0; k < ",
                    inputs, "; ++k) at[k] += index * args.strides[k][d];\n    }\n");
  } else {
    text += str_cat("    Index at[", inputs, "];\n    for (int k = 0; k < ", inputs,
                    "; ++k) at[k] = (args.repeated >> k & 1) != 0 ? 0 : i;\n");
  }
  text += "    compute(args.x, args.y, i, at);\n  }\n}\n";
}

}  // namespace detail

std::string chain_text(const ChainForm& form) {
  std::string text(detail::chain_prelude);
  detail::write_element(text, form);
  detail::write_kernel(text, form, false);
  if (form.broadcasts) detail::write_kernel(text, form, true);
  return text;
}

}  // namespace dflow::cuda
