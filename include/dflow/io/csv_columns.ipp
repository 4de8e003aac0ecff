#pragma once

#include <dflow/base/text/parse_number.hpp>
#include <dflow/io/compression/gzip.hpp>
#include <dflow/io/csv.ipp>
#include <dflow/io/csv_columns.hpp>

#include <type_traits>
#include <utility>
#include <variant>

namespace dflow {

namespace detail {

/// The fields of one column, as numbers or texts.
class ReadColumn {
 public:
  ReadColumn(DType dtype, std::size_t index) : index_(index) {
    visit_dtype<TypeList<float, double, std::int32_t, std::int64_t, std::string>>(
        dtype, [&]<class T>() { values_ = std::vector<T>(); });
  }

  std::size_t index() const noexcept { return index_; }

  /// False if the field is no number of the element type.
  [[nodiscard]] bool add(const std::string& field) {
    return std::visit([&](auto& values) { return add_to(values, field); }, values_);
  }
  AnyTensor tensor() const {
    return std::visit(
        []<class T>(const std::vector<T>& values) -> AnyTensor {
          return Tensor<T>({static_cast<std::int64_t>(values.size())}, std::span<const T>(values));
        },
        values_);
  }

 private:
  static bool add_to(std::vector<std::string>& values, const std::string& field) {
    values.push_back(field);
    return true;
  }
  template <class T>
  static bool add_to(std::vector<T>& values, const std::string& field) {
    T value{};
    bool is_number = false;
    if constexpr (std::is_floating_point_v<T>) {
      is_number = parse_csv_number(field, value);
    } else {
      is_number = parse_number(field, value);
    }
    if (is_number) values.push_back(value);
    return is_number;
  }

  std::size_t index_;
  std::variant<std::vector<float>, std::vector<double>, std::vector<std::int32_t>, std::vector<std::int64_t>,
               std::vector<std::string>>
      values_;
};

std::size_t index_of_column(const CsvColumn& column, const CsvTable& header, std::size_t count) {
  if (const auto* name = std::get_if<std::string>(&column.key)) {
    return static_cast<std::size_t>(header.index_of(*name));
  }
  const std::int64_t number = std::get<std::int64_t>(column.key);
  if (number >= 0 && static_cast<std::size_t>(number) < count) return static_cast<std::size_t>(number);
  throw_error(Status::invalid_argument(str_cat("the table has no column ", number, ", it has ", count, " columns")));
}

std::vector<AnyTensor> parse_csv_columns(std::string_view text, std::span<const CsvColumn> columns,
                                         std::span<const DType> dtypes, const CsvOptions& options) {
  CsvRows rows(text, options);
  std::vector<ReadColumn> read;
  std::vector<std::string> fields;
  while (rows.next(fields)) {
    rows.require_whole(fields);
    for (std::size_t i = read.size(); i < columns.size(); ++i) {
      read.emplace_back(dtypes[i], index_of_column(columns[i], rows.header(), rows.columns()));
    }
    for (std::size_t i = 0; i < read.size(); ++i) {
      const std::string& field = fields[read[i].index()];
      if (!read[i].add(field)) {
        rows.fail(read[i].index(), field, str_cat("is not of type ", dtype_name(dtypes[i])));
      }
    }
  }
  if (rows.count() == 0) throw_no_rows(!rows.header().names.empty());
  std::vector<AnyTensor> tensors;
  tensors.reserve(read.size());
  for (const ReadColumn& column : read) tensors.push_back(column.tensor());
  return tensors;
}

std::vector<AnyTensor> read_csv_columns(FileSystem& files, const std::string& path, std::span<const CsvColumn> columns,
                                        std::span<const DType> dtypes, const CsvOptions& options) {
  const std::string text = read_maybe_gzip(files, path);
  try {
    return parse_csv_columns(text, columns, dtypes, options);
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat(path, ": ")));
  }
}

}  // namespace detail

}  // namespace dflow
