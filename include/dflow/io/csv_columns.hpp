#pragma once

/// Public: columns of CSV files, each of an element type of its own.

#include <dflow/core/tensor.hpp>
#include <dflow/io/csv.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace dflow {

/// A column of a table: by its name in the header, or by its number, which counts from 0.
struct CsvColumn {
  CsvColumn(const char* name) : key(std::string(name)) {}
  CsvColumn(std::string name) : key(std::move(name)) {}
  template <std::integral T>
  CsvColumn(T number) : key(static_cast<std::int64_t>(number)) {}

  std::variant<std::string, std::int64_t> key;
};

/// The element types of columns.
template <class T>
concept CsvElement = contains_v<T, TypeList<float, double, std::int32_t, std::int64_t, std::string>>;

namespace detail {
std::vector<AnyTensor> read_csv_columns(FileSystem& files, const std::string& path, std::span<const CsvColumn> columns,
                                        std::span<const DType> dtypes, const CsvOptions& options);
}  // namespace detail

/// The columns of a table, [rows] each. Other columns may hold anything. The form of the file is as for `read_csv`. A
/// field of text is taken as it is, without the spaces around it; it may be empty. Blocks.
///
/// ```cpp
/// auto [price, city] = df::read_csv_columns<float, std::string>(files, "houses.csv", {"price", "city"});
/// ```
/// Errors: as `read_csv`; DataLoss, with line and field, for a number that the element type cannot hold. NotFound for a
/// name that no column has, InvalidArgument for a number that none has; the message names the path.
template <CsvElement... Ts>
  requires(sizeof...(Ts) > 0)
std::tuple<Tensor<Ts>...> read_csv_columns(FileSystem& files, const std::string& path,
                                           const std::array<CsvColumn, sizeof...(Ts)>& columns,
                                           const CsvOptions& options = {.has_header = true}) {
  constexpr std::array<DType, sizeof...(Ts)> dtypes{dtype_of<Ts>...};
  std::vector<AnyTensor> read = detail::read_csv_columns(files, path, columns, dtypes, options);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<Tensor<Ts>...>(Tensor<Ts>(std::move(read[I]))...);
  }(std::index_sequence_for<Ts...>());
}

}  // namespace dflow
