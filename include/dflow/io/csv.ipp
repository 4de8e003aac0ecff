#pragma once

#include <dflow/io/csv.hpp>
#include <dflow/io/gzip.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <vector>

namespace dflow {

DFLOW_INLINE Tensor<float> parse_csv(std::string_view text) {
  std::vector<float> values;
  std::int64_t rows = 0, columns = 0;
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    std::int64_t fields = 0;
    for (const char *at = line.data(), *last = at + line.size();; ++fields) {
      float value = 0;
      const auto [next, error] = std::from_chars(at, last, value);
      const bool is_number = error == std::errc() && std::isfinite(value) && (next == last || *next == ',');
      if (!is_number) throw Error(data_loss(str_cat("line ", line_number, ": field ", fields + 1, " is not a number")));
      values.push_back(value);
      if (next == last) break;
      at = next + 1;
    }
    ++fields;
    if (rows++ == 0) columns = fields;
    if (fields != columns) {
      throw Error(data_loss(str_cat("line ", line_number, " has ", fields, " fields, the first one ", columns)));
    }
  }
  return Tensor<float>({rows, columns}, std::span<const float>(values));
}

DFLOW_INLINE Tensor<float> read_csv(FileSystem& files, const std::string& path) {
  const std::string text = read_maybe_gzip(files, path);
  try {
    return parse_csv(text);
  } catch (const Error& error) {
    throw Error(error.status().with_prefix(str_cat(path, ": ")));
  }
}

}  // namespace dflow
