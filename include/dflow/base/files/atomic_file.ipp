#pragma once

#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/str_cat.hpp>

#include <utility>

namespace dflow {

namespace detail {

std::string temporary_name(const std::string& path) { return str_cat(path, ".tmp"); }

}  // namespace detail

AtomicFile::AtomicFile(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {
  files_.create_directories(parent_directory(path_));
  const std::string temporary = detail::temporary_name(path_);
  if (files_.exists(temporary)) files_.remove(temporary);
  file_ = files_.open_for_appending(temporary);
}

AtomicFile::~AtomicFile() {
  if (is_finished_) return;
  file_.reset();
  try {
    files_.remove(detail::temporary_name(path_));
  } catch (...) {  // a file left behind is in nobody's way
  }
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  file_->append(bytes);
  size_ += bytes.size();
}

void AtomicFile::finish() {
  file_->sync();
  file_.reset();
  files_.rename(detail::temporary_name(path_), path_);
  is_finished_ = true;
  files_.sync_directory(parent_directory(path_));
}

}  // namespace dflow
