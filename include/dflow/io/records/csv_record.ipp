#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/text/parse_number.hpp>
#include <dflow/io/records/csv_record.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace dflow {

bool take_quoted(std::string_view& rest, std::string& field) {
  for (;;) {
    const std::size_t quote = rest.find('"');
    field.append(rest.substr(0, quote));
    if (quote == rest.npos) return false;
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) return true;
    field += '"';
    rest.remove_prefix(1);
  }
}

bool CsvRecord::next(std::string& field) {
  field.clear();
  if (rest_.empty()) return std::exchange(is_after_separator_, false);
  rest_.remove_prefix(std::min(rest_.find_first_not_of("\r\n"), rest_.size()));
  if (rest_.empty()) return false;
  if (has_quotes_ && rest_.front() == '"') {
    rest_.remove_prefix(1);
    if (!take_quoted(rest_, field)) throw_error(Status::invalid_argument("a quoted field must end with a quote"));
    if (!rest_.empty() && rest_.front() != separator_) {
      throw_error(Status::invalid_argument("a quote inside a quoted field must be escaped by another quote"));
    }
  } else {
    const std::size_t end =
        std::find_if(rest_.begin(), rest_.end(),
                     [&](char c) { return c == separator_ || c == '\r' || c == '\n' || (has_quotes_ && c == '"'); }) -
        rest_.begin();
    field = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (!rest_.empty() && rest_.front() != separator_) {
      throw_error(Status::invalid_argument("a field without quotes has no quotes and line breaks inside"));
    }
  }
  is_after_separator_ = !rest_.empty();
  if (is_after_separator_) rest_.remove_prefix(1);
  return true;
}

namespace detail {

/// The columns of a batch, and which record is being read into them.
class CsvColumns {
 public:
  CsvColumns(const Shape& shape, std::span<const AnyTensor> defaults, const CsvRules& rules)
      : defaults_(defaults), rules_(rules) {
    columns_.reserve(defaults.size());
    for (const AnyTensor& value : defaults) columns_.emplace_back(value.dtype(), shape);
  }

  /// Record number `record`.
  void read(std::string_view text, std::int64_t record) {
    CsvRecord fields(text, rules_.separator, rules_.has_quotes);
    const auto& selected = rules_.selected;
    std::size_t found = 0;
    for (std::int64_t position = 0; next(fields, record); ++position) {
      if (!selected.empty() && selected[found] != position) continue;
      if (found < columns_.size()) set(found, record);
      ++found;
      if (found == selected.size()) break;  // what follows is not looked at
    }
    if (found != columns_.size()) {
      throw_error(Status::invalid_argument(
          str_cat("Expect ", columns_.size(), " fields but have ", found, " in record ", record)));
    }
  }

  std::vector<AnyTensor> take() && { return std::move(columns_); }

 private:
  bool next(CsvRecord& fields, std::int64_t record) {
    try {
      return fields.next(field_);
    } catch (const Error& error) {
      throw_error(error.status().with_prefix(str_cat("record ", record, ": ")));
    }
  }

  void set(std::size_t column, std::int64_t record) {
    const AnyTensor& value = defaults_[column];
    const bool is_missing = field_.empty() || field_ == rules_.missing;
    if (is_missing && value.num_elements() == 0) {
      throw_error(
          Status::invalid_argument(str_cat("Field ", column, " is required but missing in record ", record, "!")));
    }
    visit_dtype<TypeList<std::int32_t, std::int64_t, float, double, std::string>>(value.dtype(), [&]<class T>() {
      T& to = Tensor<T>::of(columns_[column]).data()[record];
      if (is_missing) {
        to = *Tensor<T>::of(value).data();
      } else if constexpr (std::is_same_v<T, std::string>) {
        to = field_;
      } else if (!parse_number(field_, to)) {
        constexpr std::size_t shown = 40;
        throw_error(Status::invalid_argument(str_cat("Field ", column, " in record ", record, " is not a valid ",
                                                     dtype_name(dtype_of<T>), ": '",
                                                     std::string_view(field_).substr(0, shown), "'")));
      }
    });
  }

  std::span<const AnyTensor> defaults_;
  const CsvRules& rules_;
  std::vector<AnyTensor> columns_;
  std::string field_;
};

}  // namespace detail

std::vector<AnyTensor> decode_csv_records(const Tensor<std::string>& records, std::span<const AnyTensor> defaults,
                                          const CsvRules& rules) {
  detail::CsvColumns columns(records.shape(), defaults, rules);
  std::int64_t i = 0;
  for (const std::string& record : records) columns.read(record, i++);
  return std::move(columns).take();
}

}  // namespace dflow
