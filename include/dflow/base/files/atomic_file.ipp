#pragma once

#include <dflow/base/files/atomic_file.hpp>

namespace dflow {

AtomicFile::AtomicFile(FileSystem& files, const std::string& path) : files_(files) {
  files_.create_directories(parent_directory(path));
  replacement_ = files_.begin_replacing(path);
}

AtomicFile::~AtomicFile() {
  if (is_finished_) return;
  if (replacement_.closes_first) replacement_.file.reset();
  try {
    files_.remove(replacement_.temporary);
  } catch (...) {  // a file left behind is in nobody's way
  }
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  replacement_.file->append(bytes);
  size_ += bytes.size();
}

void AtomicFile::finish() {
  replacement_.file->sync();
  if (replacement_.closes_first) replacement_.file.reset();
  files_.rename(replacement_.temporary, replacement_.target);
  is_finished_ = true;
  replacement_.file.reset();
  files_.sync_directory(parent_directory(replacement_.target));
}

}  // namespace dflow
