// Prints a Markdown table of every op of the library: name, element types, attributes, gradient, devices.

#include <dflow/kernels/cpu/standard_kernels.hpp>
#include <dflow/op/op_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using dflow::ArgDef;
using dflow::OpDef;
using dflow::OpTable;

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

/// An op that the runtime carries out itself needs no kernel and is everywhere.
std::string devices(const OpDef& op) {
  return op.needs_kernel && dflow::standard_cpu_kernels().find(op.name) != nullptr ? "CPU" : "any";
}

}  // namespace

int main() {
  const OpTable& table = dflow::standard_op_table();
  std::cout
      << "# Ops\n\n"
      << table.size() << " ops. Element types are those of each type parameter. Gradient: *yes*; *stops* where the "
      << "result does not depend\nsmoothly on the inputs, or the op changes state; *no* where differentiating is an "
      << "error.\n\n"
      << "| op | element types | attributes | gradient | devices |\n"
      << "|---|---|---|---|---|\n";
  table.for_each([&](const OpDef& op) {
    std::cout << "| " << op.name << " | " << element_types(op) << " | " << attributes(op) << " | " << gradient(op)
              << " | " << devices(op) << " |\n";
  });
}
