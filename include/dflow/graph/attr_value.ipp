#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/attr_value.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace dflow {

std::string_view attr_kind_name(AttrKind kind) noexcept {
  constexpr std::array<std::string_view, std::variant_size_v<AttrValue>> names{
      "none",       "bool",      "int",         "float",        "string",     "type",        "shape",   "tensor",
      "list(bool)", "list(int)", "list(float)", "list(string)", "list(type)", "list(shape)", "function"};
  return names[static_cast<std::size_t>(kind)];
}

bool attr_equal(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<AnyTensor>(&a)) return bitwise_equal(*tensor, std::get<AnyTensor>(b));
  const auto same_bits = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  };
  if (const auto* real = std::get_if<double>(&a)) return same_bits(*real, std::get<double>(b));
  if (const auto* reals = std::get_if<std::vector<double>>(&a)) {
    const auto& others = std::get<std::vector<double>>(b);
    return std::equal(reals->begin(), reals->end(), others.begin(), others.end(), same_bits);
  }
  return std::visit(
      [&b]<class T>(const T& value) {
        if constexpr (std::is_same_v<T, AnyTensor>) {
          return false;
        } else {
          return value == std::get<T>(b);
        }
      },
      a);
}

namespace detail {

/// FNV-1a, as a value that is fed piece by piece.
class AttrHasher {
 public:
  void bytes(const void* data, std::size_t size) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) hash_ = (hash_ ^ p[i]) * 0x100000001b3u;
  }
  void number(std::uint64_t value) { bytes(&value, sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    bytes(value.data(), value.size());
  }

  void add(std::monostate) {}
  void add(bool value) { number(value ? 1 : 0); }
  void add(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
  void add(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  void add(const std::string& value) { text(value); }
  void add(DType value) { number(static_cast<std::uint64_t>(value)); }
  void add(const PartialShape& value) {
    number(static_cast<std::uint64_t>(value.rank()));
    for (const std::int64_t dim : value.dims()) add(dim);
  }
  void add(const FunctionName& value) { text(value.name); }
  void add(const AnyTensor& value) {
    add(value.dtype());
    add(PartialShape(value.shape()));
    if (value.dtype() == DType::string) {
      for (const std::string& element : value.span<std::string>()) text(element);
    } else if (value.raw_data() != nullptr) {
      bytes(value.raw_data(), value.bytes());
    }
  }
  template <class T>
  void add(const std::vector<T>& values) {
    number(values.size());
    for (const auto& value : values) add(static_cast<const T&>(value));
  }
  std::uint64_t result() const noexcept { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

std::string attr_text(std::monostate) { return "none"; }
std::string attr_text(bool value) { return value ? "true" : "false"; }
std::string attr_text(std::int64_t value) { return str_cat(value); }
std::string attr_text(double value) { return str_cat(value); }
std::string attr_text(const std::string& value) {
  return str_cat("\"", value.substr(0, 80), value.size() > 80 ? "..." : "", "\"");
}
std::string attr_text(const FunctionName& value) { return value.name; }
std::string attr_text(DType value) { return std::string(dtype_name(value)); }
std::string attr_text(const PartialShape& value) { return value.to_string(); }
std::string attr_text(const AnyTensor& value) { return value.to_string(8); }
template <class T>
std::string attr_text(const std::vector<T>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size() && i < 16; ++i) {
    text += (i == 0 ? "" : ", ") + attr_text(static_cast<const T&>(values[i]));
  }
  return text + (values.size() > 16 ? ", ...]" : "]");
}

}  // namespace detail

std::uint64_t attr_hash(const AttrValue& value) {
  detail::AttrHasher hasher;
  hasher.number(value.index());
  std::visit([&hasher](const auto& held) { hasher.add(held); }, value);
  return hasher.result();
}

std::string attr_to_string(const AttrValue& value) {
  return std::visit([](const auto& held) { return detail::attr_text(held); }, value);
}

}  // namespace dflow
