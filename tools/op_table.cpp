// Prints a Markdown table of every op of the library: name, builder, element types, attributes, gradient, kernels.

#include <dflow/base/function_ref.hpp>
#include <dflow/kernels/cpu/standard_kernels.hpp>
#include <dflow/kernels/cuda/all.hpp>
#include <dflow/op/op_table.hpp>
#include <dflow/ops/standard_ops.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using dflow::FunctionRef;
using dflow::OpDef;
using dflow::OpTable;
using dflow::TypeArgs;

/// The element types of a mask: the name of the list with exactly the same types, else the types themselves.
std::string types_text(std::uint32_t mask) {
  static constexpr std::pair<std::uint32_t, std::string_view> known[] = {
      {dflow::dtype_mask<dflow::AllTypes>, "all"},
      {dflow::dtype_mask<dflow::PlainTypes>, "numbers, bool"},
      {dflow::dtype_mask<dflow::NumberTypes>, "numbers"},
      {dflow::dtype_mask<dflow::RealTypes>, "reals"},
      {dflow::dtype_mask<dflow::SignedRealTypes>, "signed reals"},
      {dflow::dtype_mask<dflow::FloatTypes>, "floats"},
      {dflow::dtype_mask<dflow::IntTypes>, "integers"},
      {dflow::dtype_mask<dflow::SignedIntTypes>, "signed integers"},
      {dflow::dtype_mask<dflow::ComplexTypes>, "complex"},
      {dflow::dtype_mask<dflow::concat_t<dflow::FloatTypes, dflow::ComplexTypes>>, "floats, complex"},
      {dflow::dtype_mask<dflow::concat_t<dflow::SignedRealTypes, dflow::ComplexTypes>>, "signed reals, complex"},
  };
  for (const auto& [types, text] : known) {
    if (types == mask) return std::string(text);
  }
  const std::string list = dflow::mask_to_string(mask);
  return list.size() > 2 ? list.substr(1, list.size() - 2) : list;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string element_types(const OpDef& op) {
  std::vector<std::string> parts;
  for (const auto& param : op.type_params) parts.push_back(std::string(param.name) + ": " + types_text(param.allowed));
  return join(parts, "; ");
}

std::string attributes(const OpDef& op) {
  std::vector<std::string> parts;
  for (const auto& field : op.attr_fields) parts.push_back("`" + std::string(field.name) + "`");
  return join(parts, ", ");
}

std::string gradient(const OpDef& op) {
  if (op.gradient_stops) return "stops";
  return op.gradient != nullptr ? "yes" : "no";
}

/// The element types of the first type parameter for which some types of the others are supported, of the allowed ones.
std::uint32_t supported_types(const OpDef& op, FunctionRef<bool(const TypeArgs&)> supports) {
  std::uint32_t found = 0;
  TypeArgs types;
  types.size = static_cast<std::uint8_t>(op.type_params.size());
  const auto bind = [&](const auto& self, std::size_t param) -> void {
    if (param == op.type_params.size()) {
      if (supports(types)) found |= 1u << static_cast<unsigned>(types[0]);
      return;
    }
    for (unsigned dtype = 0; dtype < 32; ++dtype) {
      types.values[param] = static_cast<dflow::DType>(dtype);
      if (op.type_params[param].allows(types.values[param])) self(self, param + 1);
    }
  };
  bind(bind, 0);
  return found;
}

/// The element types with a kernel: "yes" for all that the op allows, "" for none. An op that the runtime carries out
/// itself is on all devices.
std::string kernels(const OpDef& op, FunctionRef<bool(const TypeArgs&)> supports) {
  if (!op.needs_kernel) return "any";
  if (op.type_params.empty()) return supports(TypeArgs()) ? "yes" : "";
  const std::uint32_t types = supported_types(op, supports);
  if (types == op.type_params[0].allowed) return "yes";
  return types == 0 ? "" : types_text(types);
}

std::string cpu_kernels(const OpDef& op) {
  const dflow::KernelEntry* const entry = dflow::standard_cpu_kernels().find(op.name);
  return kernels(op, [&](const TypeArgs& types) { return entry != nullptr && entry->supports_types(types); });
}

/// The rows of a GPU's table, without the kernels: these need nvcc.
struct CudaRow {
  std::string_view op;
  bool (*supports)(const TypeArgs&);
};
template <class O>
constexpr CudaRow cuda_row() {
  if constexpr (O::has_kernel) {
    return {O::name, &dflow::detail::supports_types<O, dflow::Cuda>};
  } else {
    return {O::name, nullptr};
  }
}
template <class List>
struct CudaRows;
template <class... Ops>
struct CudaRows<dflow::TypeList<Ops...>> {
  static constexpr CudaRow all[] = {cuda_row<Ops>()...};
};

std::string cuda_kernels(const OpDef& op) {
  static const auto by_name = [] {
    std::map<std::string_view, CudaRow> rows;
    for (const CudaRow& row : CudaRows<dflow::detail::WithAllDerivatives<dflow::StandardOps>::type>::all) {
      rows.emplace(row.op, row);
    }
    return rows;
  }();
  const auto found = by_name.find(op.name);
  return kernels(op, [&](const TypeArgs& types) {
    return found != by_name.end() && found->second.supports != nullptr && found->second.supports(types);
  });
}

// ---- builders, from the headers of the ops ----

/// A function or type that a header declares outside of `detail`, and its text.
struct Declared {
  std::string name;
  std::string text;
};

/// The declarations of a header as clang-format lays it out: each begins in the first column.
std::vector<Declared> declarations_of(const std::filesystem::path& header) {
  static const std::regex name_of_function(R"((\w+)\()"), name_of_type(R"(^(?:struct|class) (\w+))");
  std::ifstream in(header);
  std::vector<Declared> all;
  Declared current;
  bool is_open = false, is_in_detail = false;
  int depth = 0;
  for (std::string line; std::getline(in, line);) {
    if (!is_open) {
      if (line == "namespace detail {") is_in_detail = true;
      if (line == "}  // namespace detail") is_in_detail = false;
      const bool begins = !line.empty() && std::isalpha(static_cast<unsigned char>(line[0])) != 0;
      if (!begins || line.starts_with("namespace ")) continue;
      is_open = true;
      current = {};
    }
    std::smatch match;
    const bool is_head = current.name.empty() && line[0] != ' ' && !line.starts_with("template ");
    if (is_head && (std::regex_search(line, match, name_of_type) || std::regex_search(line, match, name_of_function))) {
      current.name = match[1].str();
    }
    current.text += line + "\n";
    depth += static_cast<int>(std::count(line.begin(), line.end(), '{') - std::count(line.begin(), line.end(), '}'));
    if (depth != 0 || line.empty() || (line.back() != ';' && line.back() != '}')) continue;
    is_open = false;
    if (!current.name.empty() && !is_in_detail) all.push_back(std::move(current));
  }
  return all;
}

/// "MatrixSolve" as a function is spelled: "matrix_solve".
std::string snake_case(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(name[i])) != 0;
    const bool after_lower = i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    const bool before_lower =
        i > 0 && i + 1 < name.size() && std::islower(static_cast<unsigned char>(name[i + 1])) != 0;
    if (is_upper && (after_lower || before_lower)) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return out;
}

/// For each op its header, below include/dflow/ops/, and before that the functions there that build it: those that name
/// the op's struct, else the one that is named like the op.
std::map<std::string, std::string> builders(const std::filesystem::path& include) {
  static const std::regex op(R"re(struct (\w+)\s*:\s*[\w:]+<(?:\w+, )?"(\w+)")re");
  const std::filesystem::path root = include / "dflow" / "ops";
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".hpp") continue;
    const std::vector<Declared> declared = declarations_of(entry.path());
    std::map<std::string, std::string> structs;  // by the names of ops
    std::set<std::string> types;
    for (const Declared& each : declared) {
      std::smatch match;
      if (!std::regex_search(each.text, match, op)) continue;
      structs.emplace(match[2].str(), match[1].str());
      types.insert(match[1].str());
    }
    for (const auto& [name, type] : structs) {
      const std::regex mention("\\b" + type + "\\b");
      std::vector<std::string> functions;
      const auto add = [&](const std::string& function) {
        const std::string text = "`" + function + "`";
        if (types.count(function) == 0 && std::find(functions.begin(), functions.end(), text) == functions.end()) {
          functions.push_back(text);
        }
      };
      for (const Declared& each : declared) {
        if (std::regex_search(each.text, mention)) add(each.name);
      }
      for (const Declared& each : declared) {
        if (functions.empty() && each.name == snake_case(name)) add(each.name);
      }
      functions.push_back(std::filesystem::relative(entry.path(), root).generic_string());
      found[name] = join(functions, ", ");
    }
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: dflow_op_table FOLDER\nThe folder has dflow/ops/ with the headers of the ops.\n";
    return 2;
  }
  const std::map<std::string, std::string> builder_of = builders(argv[1]);
  const OpTable& table = dflow::standard_op_table();
  std::cout
      << "# Ops\n\n"
      << "The library has " << table.size() << " ops. `dflow_op_table` writes this page: `cmake --build build/release "
      << "--target dflow_ops_page`.\n\n"
      << "- **builder**: the C++ functions that build the op, and their header below `dflow/ops/`. An op without a "
      << "function is built by a class of\n  the header, or is a part of other ops or of a gradient.\n"
      << "- **element types**: the types that each type parameter of the op allows.\n"
      << "- **gradient**: *yes*; *stops* if the result does not depend smoothly on the inputs, or if the op changes "
      << "state; *no* if\n  differentiating the op is an error.\n"
      << "- **CPU**, **CUDA**: *yes* if the device has a kernel for all element types, else the types of the first "
      << "parameter that have a\n  kernel. *any* is for ops that the runtime carries out itself, on all devices.\n\n"
      << "| op | builder | element types | attributes | gradient | CPU | CUDA |\n"
      << "|---|---|---|---|---|---|---|\n";
  table.for_each([&](const OpDef& op) {
    const auto builder = builder_of.find(std::string(op.name));
    std::cout << "| " << op.name << " | " << (builder == builder_of.end() ? "" : builder->second) << " | "
              << element_types(op) << " | " << attributes(op) << " | " << gradient(op) << " | " << cpu_kernels(op)
              << " | " << cuda_kernels(op) << " |\n";
  });
}
