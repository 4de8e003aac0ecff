// Reads bytes as records of CSV, one a line, by the rules that the first byte says. Records that are read must be read
// alike when each field is put in quotes; columns have the records' shape.
#include <dflow/base/status.hpp>
#include <dflow/io/records/csv_record.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Read>
auto outcome(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::invalid_argument);
    return std::nullopt;
  }
}

std::vector<std::string> fields_of(std::string_view text, const dflow::CsvRules& rules) {
  dflow::CsvRecord record(text, rules.separator, rules.has_quotes);
  std::vector<std::string> fields;
  for (std::string field; record.next(field);) fields.push_back(field);
  return fields;
}

std::string quoted(const std::vector<std::string>& fields, char separator) {
  std::string record;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) record += separator;
    record += '"';
    for (const char c : fields[i]) record += c == '"' ? std::string("\"\"") : std::string(1, c);
    record += '"';
  }
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t choice = data[0];
  dflow::CsvRules rules{.separator = ",;\t "[choice & 3], .has_quotes = (choice & 4) == 0, .missing = "NA"};
  if ((choice & 8) != 0) rules.selected = {0, 2, 3};
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto fields = outcome([&] { return fields_of(text, rules); })) {
    dflow::CsvRules with_quotes = rules;
    with_quotes.has_quotes = true;
    require(fields_of(quoted(*fields, rules.separator), with_quotes) == *fields);
  }
  using dflow::Tensor;
  const std::vector<dflow::AnyTensor> defaults{Tensor<std::string>({1}, {"none"}), Tensor<float>({1}, {1}),
                                               Tensor<std::int64_t>(dflow::Shape{0})};
  const Tensor<std::string> records({2}, {text, text});
  if (const auto columns = outcome([&] { return dflow::decode_csv_records(records, defaults, rules); })) {
    require(columns->size() == defaults.size());
    for (const dflow::AnyTensor& column : *columns) {
      require(bitwise_equal(column.slice(0, 1), column.slice(1, 2)));
    }
  }
  return 0;
}
