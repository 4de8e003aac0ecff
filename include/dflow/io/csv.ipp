#pragma once

#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/printable.hpp>
#include <dflow/base/text/parse_number.hpp>
#include <dflow/io/compression/gzip.hpp>
#include <dflow/io/csv.hpp>
#include <dflow/io/records/csv_record.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <utility>

namespace dflow {

namespace detail {

/// Takes fields off the front of a text, and knows the line of the last row.
class CsvReader {
 public:
  CsvReader(std::string_view text, char separator) : rest_(text), separator_(separator) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  }

  /// The fields of the next line that is not empty; false at the end.
  bool next_row(std::vector<std::string>& fields) {
    fields.clear();
    while (skip_spaces(), is_at_line_end()) end_line();
    if (rest_.empty()) return false;
    row_line_ = line_;
    do {
      field_ = static_cast<std::int64_t>(fields.size()) + 1;
      fields.push_back(next_field());
    } while (take(separator_));
    end_line();
    return true;
  }

  /// The line of the row that was read last.
  std::int64_t line() const noexcept { return row_line_; }

 private:
  static bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }
  bool is_at_line_end() const noexcept { return rest_.starts_with('\n') || rest_.starts_with('\r'); }

  static std::int64_t num_line_ends(std::string_view text) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      count += text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'));
    }
    return count;
  }
  void skip_spaces() {
    while (!rest_.empty() && is_space(rest_.front()) && rest_.front() != separator_) rest_.remove_prefix(1);
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// LF, CR LF or CR.
  void end_line() {
    const bool has_return = take('\r'), has_feed = take('\n');
    if (has_return || has_feed) ++line_;
  }

  /// Leaves the separator, the end of the line or of the text in front.
  std::string next_field() {
    skip_spaces();
    if (!rest_.empty() && rest_.front() == '"') return quoted_field();
    const std::size_t end = std::min(rest_.find_first_of(std::string{separator_, '\n', '\r'}), rest_.size());
    std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(end);
    while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
    return std::string(field);
  }

  std::string quoted_field() {
    std::string field;
    rest_.remove_prefix(1);
    const std::string_view before = rest_;
    if (!take_quoted(rest_, field)) fail("has a quote that does not end");
    line_ += num_line_ends(before.substr(0, before.size() - rest_.size()));
    skip_spaces();
    if (!rest_.empty() && rest_.front() != separator_ && !is_at_line_end()) fail("goes on after its quotes");
    return field;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw_error(Status::data_loss(str_cat("line ", row_line_, ": field ", field_, " ", what)));
  }

  std::string_view rest_;
  char separator_;
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;
  std::int64_t field_ = 0;
};

/// False unless the field is a finite decimal number in the range of T. A number that is nearer to 0 than to any other
/// T becomes a zero.
template <std::floating_point T>
bool parse_csv_number(std::string_view field, T& value) {
  return field.find_first_of("xX") == field.npos && parse_number(field, value) && std::isfinite(value);
}

/// A list of names for a message; a long list is cut.
std::string quoted_names(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 20;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i) list += str_cat(i == 0 ? "'" : ", '", names[i], "'");
  return names.size() > shown ? str_cat(list, " and ", names.size() - shown, " more") : list;
}

/// The rows of a table below its header.
class CsvRows {
 public:
  CsvRows(std::string_view text, const CsvOptions& options)
      : reader_(text, options.separator), has_header_(options.has_header) {
    if (std::string_view("\n\r\"").find(options.separator) != std::string_view::npos) {
      throw_error(Status::invalid_argument(
          str_cat("a CSV's fields cannot be separated by '", printable(std::string_view(&options.separator, 1)), "'")));
    }
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
      throw_error(Status::data_loss("the text is UTF-16: save it as UTF-8"));
    }
    std::vector<std::string> fields;
    if (has_header_ && reader_.next_row(fields)) header_.names = std::move(fields);
    columns_ = header_.names.size();
  }

  /// The names of the columns, and no values.
  const CsvTable& header() const noexcept { return header_; }
  std::size_t columns() const noexcept { return columns_; }
  std::int64_t count() const noexcept { return count_; }

  bool next(std::vector<std::string>& fields) {
    if (!reader_.next_row(fields)) return false;
    if (count_++ == 0 && header_.names.empty()) columns_ = fields.size();
    return true;
  }
  void require_whole(const std::vector<std::string>& fields) const {
    if (fields.size() == columns_) return;
    throw_error(Status::data_loss(str_cat("line ", reader_.line(), " has ", fields.size(), " fields, the ",
                                          header_.names.empty() ? "first one " : "header ", columns_)));
  }
  /// Throws that a field of the row that was read last "is not ...".
  [[noreturn]] void fail(std::size_t index, const std::string& field, std::string_view what) const {
    constexpr std::size_t shown = 40;
    const bool may_be_header = count_ == 1 && !has_header_;
    const std::string name = header_.names.empty() ? "" : str_cat(" ('", header_.names[index], "')");
    const std::string text = printable(field.substr(0, shown)) + (field.size() > shown ? "..." : "");
    throw_error(Status::data_loss(
        str_cat("line ", reader_.line(), ": field ", index + 1, name, " ", what, ": '", text, "'",
                may_be_header ? "; CsvOptions::has_header says that the first line holds names" : "")));
  }

 private:
  CsvReader reader_;
  bool has_header_;
  CsvTable header_;
  std::size_t columns_ = 0;
  std::int64_t count_ = 0;
};

[[noreturn]] void throw_no_rows(bool has_header) {
  throw_error(Status::data_loss(str_cat("the file holds no row", has_header ? ", only a header" : "")));
}

}  // namespace detail

CsvTable parse_csv_table(std::string_view text, const CsvOptions& options) {
  detail::CsvRows rows(text, options);
  std::vector<std::string> fields;
  std::vector<float> values;
  while (rows.next(fields)) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      float value = 0;
      if (!detail::parse_csv_number(fields[i], value) && i < rows.columns()) rows.fail(i, fields[i], "is not a number");
      values.push_back(value);
    }
    rows.require_whole(fields);
  }
  CsvTable table = rows.header();
  table.values =
      Tensor<float>({rows.count(), static_cast<std::int64_t>(rows.columns())}, std::span<const float>(values));
  return table;
}

Tensor<float> parse_csv(std::string_view text, const CsvOptions& options) {
  return parse_csv_table(text, options).values;
}

CsvTable read_csv_table(FileSystem& files, const std::string& path, const CsvOptions& options) {
  const std::string text = read_maybe_gzip(files, path);
  try {
    CsvTable table = parse_csv_table(text, options);
    if (table.values.dim(0) == 0) detail::throw_no_rows(!table.names.empty());
    table.path = path;
    return table;
  } catch (const Error& error) {
    throw_error(with_kind_of_file(error.status(), text).with_prefix(str_cat(path, ": ")));
  }
}

Tensor<float> read_csv(FileSystem& files, const std::string& path, const CsvOptions& options) {
  return read_csv_table(files, path, options).values;
}

std::int64_t CsvTable::index_of(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return found - names.begin();
  const std::string prefix = path.empty() ? "" : path + ": ";
  if (names.empty()) {
    throw_error(Status::not_found(
        str_cat(prefix, "the table has no column '", name,
                "': its columns have no names; CsvOptions::has_header says that the first line holds them")));
  }
  throw_error(Status::not_found(
      str_cat(prefix, "the table has no column '", name, "', its columns are ", detail::quoted_names(names))));
}

Tensor<float> CsvTable::column(std::string_view name) const { return dflow::column(values, index_of(name)); }

Tensor<float> columns(const Tensor<float>& table, std::int64_t begin, std::int64_t end) {
  if (table.rank() != 2 || begin < 0 || begin > end || end > table.dim(1)) {
    throw_error(Status::invalid_argument(
        str_cat("columns [", begin, ", ", end, ") are not in a table of shape ", table.shape().to_string())));
  }
  Tensor<float> taken({table.dim(0), end - begin});
  float* to = taken.data();
  for (std::int64_t row = 0; row < table.dim(0); ++row) {
    const float* const from = table.data() + row * table.dim(1);
    to = std::copy(from + begin, from + end, to);
  }
  return taken;
}

Tensor<float> column(const Tensor<float>& table, std::int64_t index) {
  return columns(table, index, index + 1).reshaped({table.dim(0)});
}

}  // namespace dflow
