#pragma once

#include <dflow/base/files/matching_files.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>

#include <algorithm>
#include <cstddef>

namespace dflow {

namespace detail {

/// Whether the element of a pattern at `at` fits a character; `at` goes to the next one.
bool fits_element(char c, std::string_view pattern, std::size_t& at) noexcept {
  const char first = pattern[at++];
  if (first == '?') return true;
  if (first == '\\' && at < pattern.size()) return pattern[at++] == c;
  if (first != '[') return first == c;
  const bool is_excluded = at < pattern.size() && (pattern[at] == '^' || pattern[at] == '!');
  if (is_excluded) ++at;
  const auto code = [](char of) { return static_cast<unsigned char>(of); };
  bool is_in_set = false;
  for (bool is_first = true; at < pattern.size() && (pattern[at] != ']' || is_first); is_first = false) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    const char low = pattern[at++];
    char high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      ++at;
      if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
      high = pattern[at++];
    }
    if (code(low) <= code(c) && code(c) <= code(high)) is_in_set = true;
  }
  if (at == pattern.size()) return false;
  ++at;
  return is_in_set != is_excluded;
}

bool has_wildcards(std::string_view pattern) noexcept {
  return pattern.find_first_of("*?[\\") != std::string_view::npos;
}

/// Whether an error says that nobody here can see the files of a path.
bool hides_files(Code code) noexcept {
  return code == Code::not_found || code == Code::permission_denied || code == Code::failed_precondition;
}

/// The names in a directory; nothing if it is not a directory.
std::vector<std::string> names_in(FileSystem& files, const std::string& directory) {
  try {
    return files.list_directory(directory.empty() ? "." : directory);
  } catch (const Error& error) {
    if (!hides_files(error.code())) throw;
    return {};
  }
}

/// False also for links in a circle and the like.
bool is_found(FileSystem& files, const std::string& path) {
  try {
    return files.exists(path);
  } catch (const Error& error) {
    if (!hides_files(error.code()) && error.code() != Code::invalid_argument) throw;
    return false;
  }
}

}  // namespace detail

bool matches(std::string_view name, std::string_view pattern) noexcept {
  // The last star takes one character more each time the part after it does not fit.
  constexpr std::size_t none = std::string_view::npos;
  std::size_t at = 0, in = 0, star = none, star_end = 0;
  while (in < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_end = in;
      continue;
    }
    if (at < pattern.size() && detail::fits_element(name[in], pattern, at)) {
      ++in;
      continue;
    }
    if (star == none) return false;
    at = star;
    in = ++star_end;
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

std::vector<std::string> matching_files(FileSystem& files, const std::string& pattern) {
  // Paths that fit as far as the pattern has been followed; each part is followed in all of them. They are in different
  // directories: the way back up, behind a wildcard, would list one once for each way down.
  std::vector<std::string> found{""};
  bool is_behind_wildcard = false;
  for (std::size_t begin = 0; begin <= pattern.size() && !found.empty();) {
    const std::size_t end = std::min(pattern.find('/', begin), pattern.size());
    const std::string part = pattern.substr(begin, end - begin);
    const std::string slash = end < pattern.size() ? "/" : "";
    begin = end + 1;
    if (is_behind_wildcard && part == "..") return {};
    const bool has_wildcards = detail::has_wildcards(part);
    is_behind_wildcard |= has_wildcards;
    std::vector<std::string> further;
    for (const std::string& before : found) {
      if (!has_wildcards) {
        further.push_back(str_cat(before, part, slash));
        continue;
      }
      for (const std::string& name : detail::names_in(files, before)) {
        if (matches(name, part)) further.push_back(str_cat(before, name, slash));
      }
    }
    found = std::move(further);
  }
  std::erase_if(found, [&](const std::string& path) { return path.empty() || !detail::is_found(files, path); });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace dflow
