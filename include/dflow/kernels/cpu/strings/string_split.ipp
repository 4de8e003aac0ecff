#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/strings/string_split.hpp>

#include <algorithm>
#include <vector>

namespace dflow {

namespace detail {

using TextParts = std::vector<std::string_view>;

inline constexpr std::string_view white_space = " \t\n\v\f\r";

/// Each character of the delimiter ends a part.
void append_parts(std::string_view text, std::string_view delimiter, bool skip_empty, TextParts& parts) {
  if (delimiter.empty()) {
    for (std::size_t i = 0; i < text.size(); ++i) parts.push_back(text.substr(i, 1));
    return;
  }
  for (bool is_over = text.empty(); !is_over;) {
    const std::size_t end = text.find_first_of(delimiter);
    const std::string_view part = text.substr(0, end);
    if (!part.empty() || !skip_empty) parts.push_back(part);
    is_over = end == text.npos;
    if (!is_over) text.remove_prefix(end + 1);
  }
}

/// As Python's `str.split`.
void append_separated(std::string_view text, std::string_view separator, std::int64_t max_splits, TextParts& parts) {
  if (max_splits == 0) return parts.push_back(text);
  const auto skip_spaces = [&] { text.remove_prefix(std::min(text.find_first_not_of(white_space), text.size())); };
  const bool by_spaces = separator.empty();
  if (by_spaces) skip_spaces();
  for (std::int64_t splits = 0; splits != max_splits; ++splits) {
    if (by_spaces && text.empty()) return;
    const std::size_t end = by_spaces ? text.find_first_of(white_space) : text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos && !by_spaces) return;
    text.remove_prefix(end == text.npos ? text.size() : end + separator.size());
    if (by_spaces) skip_spaces();
  }
  parts.push_back(text);
}

/// Splits each text, and returns the parts as a sparse matrix.
void run_split(KernelContext& context,
               FunctionRef<void(std::string_view text, std::string_view separator, TextParts& parts)> append) {
  static_cast<void>(inferred_shape(context, 2));
  const Tensor<std::string>& texts = context.input<std::string>(0);
  const std::string& separator = *context.input<std::string>(1).data();
  TextParts parts;
  std::vector<std::size_t> ends;
  ends.reserve(static_cast<std::size_t>(texts.num_elements()));
  std::size_t most = 0;
  for (const std::string& text : texts) {
    const std::size_t before = parts.size();
    append(text, separator, parts);
    ends.push_back(parts.size());
    most = std::max(most, parts.size() - before);
  }
  const auto count = static_cast<std::int64_t>(parts.size());
  std::int64_t* index = context.allocate_output<std::int64_t>(0, {count, 2}).data();
  std::string* value = context.allocate_output<std::string>(1, {count}).data();
  std::size_t part = 0;
  for (std::size_t row = 0; row < ends.size(); ++row) {
    for (std::int64_t column = 0; part < ends[row]; ++column, ++part) {
      *index++ = static_cast<std::int64_t>(row);
      *index++ = column;
      *value++ = parts[part];
    }
  }
  std::int64_t* const shape = context.allocate_output<std::int64_t>(2, {2}).data();
  shape[0] = texts.num_elements();
  shape[1] = static_cast<std::int64_t>(most);
}

}  // namespace detail

void Kernel<StringSplit, Cpu>::operator()(KernelContext& context) const {
  detail::run_split(context, [&](std::string_view text, std::string_view delimiter, detail::TextParts& parts) {
    detail::append_parts(text, delimiter, attrs.skip_empty, parts);
  });
}

void Kernel<StringSplitV2, Cpu>::operator()(KernelContext& context) const {
  detail::run_split(context, [&](std::string_view text, std::string_view separator, detail::TextParts& parts) {
    detail::append_separated(text, separator, attrs.maxsplit, parts);
  });
}

}  // namespace dflow
