#pragma once

#include <dflow/base/files/file_kind.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace dflow {

namespace detail {

struct FileKind {
  std::string_view start;  ///< in lower case if it is a text
  std::string_view kind;
  bool is_text = false;  ///< letters of either case, with spaces or a byte order mark before them
};

inline constexpr std::string_view web_page = "a web page (HTML), not the file itself: download it from another link";
inline constexpr std::string_view python_pickle = "a Python pickle, which is not read: save it in another format";

inline constexpr std::array<FileKind, 9> file_kinds{
    {{"version https://git-lfs.github.com/spec/",
      "a Git LFS pointer, not the file itself: `git lfs pull` downloads the file", true},
     {"<!doctype html", web_page, true},
     {"<html", web_page, true},
     {"<?xml", "an XML document, maybe a server's error message, not the file itself", true},
     {"pk\3\4", "a ZIP archive, as are .npz, PyTorch's .pt and Keras's .keras", false},
     {"\x89hdf\r\n\x1a\n", "an HDF5 file, as is Keras's .h5, which is not read: save it in another format", false},
     {"\x1f\x8b\x08", "compressed by gzip", false},
     {"\x80\2\x8a\x0a", python_pickle, false},  // as PyTorch's older files begin
     {"\x80\4\x95", python_pickle, false}}};

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool begins_with(std::string_view text, std::string_view start) noexcept {
  return text.size() >= start.size() &&
         std::equal(start.begin(), start.end(), text.begin(), [](char a, char b) { return a == lower(b); });
}

}  // namespace detail

std::string_view kind_of_file(std::string_view start) noexcept {
  std::string_view text = start;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const auto found = std::find_if(
      detail::file_kinds.begin(), detail::file_kinds.end(),
      [&](const detail::FileKind& each) { return detail::begins_with(each.is_text ? text : start, each.start); });
  return found == detail::file_kinds.end() ? std::string_view() : found->kind;
}

Status with_kind_of_file(const Status& error, std::string_view start) noexcept {
  const std::string_view kind = kind_of_file(start);
  if (error.ok() || kind.empty()) return error;
  try {
    return {error.code(), str_cat("the file is ", kind)};
  } catch (...) {
    return error;
  }
}

Status with_kind_of_file(const Status& error, const RandomAccessFile& file) noexcept {
  if (error.ok()) return error;
  try {
    std::array<char, file_kind_bytes> start;
    const std::size_t size = file.read_at(0, std::as_writable_bytes(std::span(start)));
    return with_kind_of_file(error, std::string_view(start.data(), size));
  } catch (...) {
    return error;
  }
}

Status with_kind_of_file(const Status& error, ByteSource& source) noexcept {
  if (error.ok()) return error;
  try {
    std::array<char, file_kind_bytes> start;
    source.seek(0);
    const std::size_t size = source.read(std::as_writable_bytes(std::span(start)));
    return with_kind_of_file(error, std::string_view(start.data(), size));
  } catch (...) {
    return error;
  }
}

}  // namespace dflow
