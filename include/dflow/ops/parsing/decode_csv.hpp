#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/ops/parsing/parsing_op.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

using CsvTypes = TypeList<float, double, std::int32_t, std::int64_t, std::string>;

/// Reads texts that are each one line of comma-separated values. Inputs: records [d0, ..., dn], and a default per
/// column: one element, or no elements if the field is required. Outputs: columns of the records' shape.
struct DecodeCsv : ParsingOp<"DecodeCSV"> {
  struct Attrs {
    std::vector<DType> OUT_TYPE = {};
    std::string field_delim = ",";
    bool use_quote_delim = true;
    std::string na_value = {};
    std::vector<std::int64_t> select_cols = {};
  };
  using Inputs = In<std::string, TypedList<"OUT_TYPE">>;
  using Outputs = Out<TypedList<"OUT_TYPE">>;
  static void infer(InferContext& context);
};

/// A column of CSV: its element type, and the value of an empty field. Without a default value the field is required.
template <Element T>
  requires contains_v<T, CsvTypes>
struct CsvField {
  std::optional<T> default_value = {};
};

struct CsvFormat {
  /// The separator of two fields, one character.
  std::string_view field_delim = ",";
  /// A field may be in double quotes. Inside them, two double quotes stand for one (RFC 4180).
  bool use_quote_delim = true;
  /// A field with this text counts as empty.
  std::string_view na_value = {};
  /// The columns to read, by position, in ascending order; empty: all.
  std::vector<std::int64_t> select_cols = {};
};

namespace detail {
BuiltNode build_decode_csv(const Output<std::string>& records, std::vector<AnyTensor> defaults, const CsvFormat& format,
                           const At& at);

template <class T>
AnyTensor csv_default(const CsvField<T>& field) {
  return field.default_value ? Tensor<T>(Shape{1}, {*field.default_value}) : Tensor<T>(Shape{0});
}
}  // namespace detail

/// records: [d0, ..., dn]; gives an output of the same shape for each field. Spaces around a number are ignored.
///
/// ```cpp
/// auto [age, name] = df::decode_csv(lines, std::tuple{df::CsvField<float>{0.0f}, df::CsvField<std::string>{}});
/// ```
/// Errors: InvalidArgument if the separator is not one character or is a quote or line break, and if columns are not in
/// ascending order. In the step, InvalidArgument that names record and field: for a wrong number of fields, a missing
/// required field, a field that is no number of its type, and a misplaced quote.
template <class... Ts>
std::tuple<Output<Ts>...> decode_csv(const Output<std::string>& records, const std::tuple<CsvField<Ts>...>& fields,
                                     const CsvFormat& format = {}, const At& at = {}) {
  const BuiltNode node = detail::build_decode_csv(
      records, std::apply([](const auto&... field) { return std::vector{detail::csv_default(field)...}; }, fields),
      format, at);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple{Output<Ts>::unchecked(node.output(static_cast<int>(I)))...};
  }(std::index_sequence_for<Ts...>{});
}

}  // namespace dflow
