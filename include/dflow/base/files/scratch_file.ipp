#pragma once

#include <dflow/base/files/scratch_file.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/system_seed.hpp>

#include <cstdlib>

namespace dflow {

std::string scratch_directory() {
  const char* const directory = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return directory == nullptr || *directory == '\0' ? "/tmp" : directory;
}

ScratchFile::ScratchFile(FileSystem& files, const std::string& directory) {
  files.create_directories(directory);
  const std::string path = join_path(directory, str_cat("dflow-scratch-", system_seed()));
  writer_ = files.create_file(path);
  try {
    reader_ = files.open_for_reading(path);
  } catch (...) {
    files.remove(path);
    throw;
  }
  files.remove(path);
}

std::uint64_t ScratchFile::append(std::span<const std::byte> bytes) {
  if (!status_.ok()) throw_error(status_);
  try {
    writer_->append(bytes);
  } catch (...) {  // a part of them may be there
    status_ = status_of_current_exception();
    throw;
  }
  const std::uint64_t offset = size_;
  size_ += bytes.size();
  return offset;
}

}  // namespace dflow
