#include <dflow/ops/parsing/decode_csv.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

using namespace dflow;

// The results of all records, and the refused records, were tried with tf.raw_ops.DecodeCSV of TensorFlow 2.21.0.

namespace {

using Fields = std::tuple<CsvField<std::string>, CsvField<std::int32_t>>;

const Fields text_and_number{CsvField<std::string>{"none"}, CsvField<std::int32_t>{7}};

/// One record read as a text and a number: "text|number".
std::string read_record(const std::string& record, const CsvFormat& format = {},
                        const Fields& fields = text_and_number) {
  Graph graph;
  const auto fed = placeholder<std::string>(graph, {dynamic});
  const auto [text, number] = decode_csv(fed, fields, format);
  Session session(graph);
  const auto [t, n] = session.run({{fed, Tensor<std::string>({1}, {record})}}, text, number);
  return t(0) + "|" + std::to_string(n(0));
}

bool is_refused(const std::string& record, const std::string& why, const CsvFormat& format = {},
                const Fields& fields = text_and_number) {
  const Status status = status_of([&] { return read_record(record, format, fields); });
  if (!mentions(status, why)) UNSCOPED_INFO(status.to_string());
  return status.code() == Code::invalid_argument && mentions(status, why);
}

}  // namespace

TEST_CASE("records are columns of every type", "[parsing]") {
  Graph graph;
  const auto records = constant(graph, Tensor<std::string>({2, 1}, {"1,-2, 0x1p3 ,1e400,a b", "3,,4,5,"}));
  const auto [i, l, f, d, s] =
      decode_csv(records, std::tuple{CsvField<std::int32_t>{}, CsvField<std::int64_t>{std::int64_t{1} << 40},
                                     CsvField<float>{}, CsvField<double>{}, CsvField<std::string>{"none"}});
  static_assert(std::same_as<std::remove_cvref_t<decltype(d)>, Output<double>>);
  CHECK(s.shape() == PartialShape({2, 1}));
  Session session(graph);
  CHECK(bitwise_equal(session.run(i), Tensor<std::int32_t>({2, 1}, {1, 3})));
  CHECK(bitwise_equal(session.run(l), Tensor<std::int64_t>({2, 1}, {-2, std::int64_t{1} << 40})));
  CHECK(bitwise_equal(session.run(f), Tensor<float>({2, 1}, {8, 4})));
  CHECK(bitwise_equal(session.run(d), Tensor<double>({2, 1}, {std::numeric_limits<double>::infinity(), 5})));
  CHECK(bitwise_equal(session.run(s), Tensor<std::string>({2, 1}, {"a b", "none"})));
}

TEST_CASE("fields may stand in quotes", "[parsing]") {
  CHECK(read_record("\"a,b\",2") == "a,b|2");
  CHECK(read_record("\"a\"\"b\",2") == "a\"b|2");
  CHECK(read_record("\"a\nb\",2") == "a\nb|2");
  CHECK(read_record("\"\",\"3\"") == "none|3");
  CHECK(read_record("\"a\",") == "a|7");
  CHECK(read_record(",") == "none|7");
  CHECK(read_record("\na,\r2") == "a|2");
  CHECK(read_record("\"a\";2", {.field_delim = ";", .use_quote_delim = false}) == "\"a\"|2");
  CHECK(read_record("NA,\"NA\"", {.na_value = "NA"}) == "none|7");
}

TEST_CASE("columns may be left out", "[parsing]") {
  CHECK(read_record("a,b,c,4,e", {.select_cols = {1, 3}}) == "b|4");
  CHECK(read_record("a,2,\"what follows is not looked at", {.select_cols = {0, 1}}) == "a|2");
  CHECK(is_refused("a,b", "Expect 2 fields but have 1 in record 0", {.select_cols = {1, 2}}));
}

TEST_CASE("records that are none are refused by record and field", "[parsing]") {
  CHECK(is_refused("a", "Expect 2 fields but have 1 in record 0"));
  CHECK(is_refused("", "Expect 2 fields but have 0 in record 0"));
  CHECK(is_refused("\n", "Expect 2 fields but have 0 in record 0"));
  CHECK(is_refused("a,\n", "Expect 2 fields but have 1 in record 0"));
  CHECK(is_refused("a,1,b", "Expect 2 fields but have 3 in record 0"));
  CHECK(is_refused("a,x", "Field 1 in record 0 is not a valid int32: 'x'"));
  CHECK(is_refused("a,2147483648", "Field 1 in record 0 is not a valid int32"));
  CHECK(is_refused("a,", "Field 1 is required but missing in record 0!", {},
                   {CsvField<std::string>{"none"}, CsvField<std::int32_t>{}}));
  CHECK(is_refused("\"a\"b,2", "must be escaped by another quote"));
  CHECK(is_refused("\"a,2", "a quoted field must end with a quote"));
  CHECK(is_refused("a\"b,2", "a field without quotes"));
  CHECK(is_refused("a\nb,2", "a field without quotes"));
  CHECK(is_refused("a,2\n", "a field without quotes"));
}

TEST_CASE("a format that is none is refused when the node is built", "[parsing]") {
  Graph graph;
  const auto records = placeholder<std::string>(graph, {dynamic});
  for (const std::string_view separator : {"", ";;", "\"", "\n"}) {
    CHECK(code_of([&] { return decode_csv(records, text_and_number, {.field_delim = separator}); }) ==
          Code::invalid_argument);
  }
  for (const std::vector<std::int64_t>& columns :
       std::vector<std::vector<std::int64_t>>{{2, 1}, {1, 1}, {-1, 1}, {0}}) {
    CHECK(code_of([&] { return decode_csv(records, text_and_number, {.select_cols = columns}); }) ==
          Code::invalid_argument);
  }
  const std::vector<AnyOutput> two_defaults{records, constant(graph, Tensor<float>({2}, {1, 2}))};
  CHECK(code_of([&] { return build<DecodeCsv>(std::span(two_defaults), {.OUT_TYPE = {DType::float32}}); }) ==
        Code::invalid_argument);
}
