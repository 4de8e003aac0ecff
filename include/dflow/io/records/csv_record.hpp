#pragma once

#include <dflow/base/config.hpp>
#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// The form of a record's fields in its text.
struct CsvRules {
  char separator = ',';
  /// A field may stand in double quotes; inside them two quotes stand for one (RFC 4180).
  bool has_quotes = true;
  /// The text of a missing field. An empty field is missing too.
  std::string missing = {};
  /// The positions of the fields to read, in ascending order; empty: all fields.
  std::vector<std::int64_t> selected = {};
};

/// Takes the rest of a field in quotes off the front of a text, with the quote that ends it, and appends it to `field`;
/// two quotes stand for one. False if it does not end.
bool take_quoted(std::string_view& rest, std::string& field);

/// The fields of a record, one after the other. Line breaks in front of a field count for nothing; within one they
/// need quotes, and a record does not end in one.
///
/// Thread safety: used by one thread.
class CsvRecord {
 public:
  /// `text` outlives this.
  CsvRecord(std::string_view text, char separator, bool has_quotes) noexcept
      : rest_(text), separator_(separator), has_quotes_(has_quotes) {}

  /// The next field; false at the end. Errors: InvalidArgument for a quote that does not end, or is followed by neither
  /// the separator nor the end, and a quote or line break in a field without quotes.
  bool next(std::string& field);

 private:
  std::string_view rest_;
  char separator_;
  bool has_quotes_;
  bool is_after_separator_ = false;
};

/// The columns of records [d0, ..., dn]. Each column has the shape of the records and the element type of its default.
/// A default has one element, or none where the field is required. Memory is as much as the columns.
///
/// Errors, as TensorFlow's DecodeCSV, naming record and field: InvalidArgument if the number of fields is not the
/// number of columns, a required field is missing, or a field is no number of the type.
/// Precondition: the defaults are of int32, int64, float, double or string.
std::vector<AnyTensor> decode_csv_records(const Tensor<std::string>& records, std::span<const AnyTensor> defaults,
                                          const CsvRules& rules);

}  // namespace dflow
