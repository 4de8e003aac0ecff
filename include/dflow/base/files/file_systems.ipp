#pragma once

#include <dflow/base/files/file_systems.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>

#include <cstddef>
#include <utility>

namespace dflow {

/// Where a path leads.
struct FileSystems::Place {
  FileSystem& files;
  std::string prefix;  ///< "mem://", or empty
  std::string path;    ///< in the terms of `files`
};

FileSystems::FileSystems(Schemes schemes) : schemes_(std::move(schemes)) {
  if (!schemes_.contains("file")) schemes_.emplace("file", std::make_shared<PosixFileSystem>());
  if (!schemes_.contains("mem")) schemes_.emplace("mem", std::make_shared<MemoryFileSystem>());
  for (const auto& [scheme, files] : schemes_) {
    if (path_scheme(scheme + "://") != scheme || scheme.empty()) {
      throw_error(Status::invalid_argument(str_cat("FileSystems: '", printable(scheme),
                                                   "' is no scheme: a scheme is a letter followed by letters, digits, "
                                                   "'+', '-' and '.'")));
    }
  }
  std::erase_if(schemes_, [](const auto& entry) { return entry.second == nullptr; });
}

std::shared_ptr<FileSystem> FileSystems::find(std::string_view scheme) const {
  const auto found = schemes_.find(scheme);
  return found == schemes_.end() ? nullptr : found->second;
}

FileSystems::Place FileSystems::place_of(const std::string& path) const {
  const std::string_view scheme = path_scheme(path);
  const auto found = schemes_.find(scheme.empty() ? std::string_view("file") : scheme);
  if (found == schemes_.end()) {
    std::string known;
    for (const auto& [name, files] : schemes_) known += str_cat(known.empty() ? "" : ", ", name);
    throw_error(Status::unimplemented(
        str_cat("'", printable(path), "' has ", scheme.empty() ? "no scheme" : str_cat("the scheme '", scheme, "'"),
                ", for which there is no file system here; known schemes: ", known.empty() ? "none" : known)));
  }
  if (scheme.empty()) return {*found->second, "", path};
  const std::size_t begin = scheme.size() + scheme_end.size();
  return {*found->second, path.substr(0, begin), path.size() == begin ? "." : path.substr(begin)};
}

/// What `call(files, path)` returns. An error says which file system the path in it belongs to.
template <class Call>
auto FileSystems::at(const std::string& path, const Call& call) const {
  const Place place = place_of(path);
  try {
    return call(place.files, place.path);
  } catch (const Error& error) {
    if (place.prefix.empty()) throw;
    throw_error(error.status().with_prefix(place.prefix + ": "));
  }
}

std::string FileSystems::read_file(const std::string& path, std::uint64_t max_bytes) {
  return at(path, [&](FileSystem& files, const std::string& own) { return files.read_file(own, max_bytes); });
}

std::unique_ptr<RandomAccessFile> FileSystems::open_for_reading(const std::string& path) {
  return at(path, [](FileSystem& files, const std::string& own) { return files.open_for_reading(own); });
}

std::unique_ptr<WritableFile> FileSystems::open_for_appending(const std::string& path) {
  return at(path, [](FileSystem& files, const std::string& own) { return files.open_for_appending(own); });
}

void FileSystems::write_file_atomically(const std::string& path, std::span<const std::byte> content) {
  at(path, [&](FileSystem& files, const std::string& own) { files.write_file_atomically(own, content); });
}

bool FileSystems::exists(const std::string& path) {
  return at(path, [](FileSystem& files, const std::string& own) { return files.exists(own); });
}

bool FileSystems::is_directory(const std::string& path) {
  return at(path, [](FileSystem& files, const std::string& own) { return files.is_directory(own); });
}

std::uint64_t FileSystems::file_size(const std::string& path) {
  return at(path, [](FileSystem& files, const std::string& own) { return files.file_size(own); });
}

std::vector<std::string> FileSystems::list_directory(const std::string& path) {
  return at(path, [](FileSystem& files, const std::string& own) { return files.list_directory(own); });
}

void FileSystems::create_directories(const std::string& path) {
  at(path, [](FileSystem& files, const std::string& own) { files.create_directories(own); });
}

void FileSystems::remove(const std::string& path) {
  at(path, [](FileSystem& files, const std::string& own) { files.remove(own); });
}

void FileSystems::rename(const std::string& from, const std::string& to) {
  const Place target = place_of(to);
  at(from, [&](FileSystem& files, const std::string& own) {
    if (&files != &target.files) {
      throw_error(Status::unimplemented(
          str_cat("cannot rename '", from, "' to '", to, "': they are in two file systems. Copy the file instead")));
    }
    files.rename(own, target.path);
  });
}

void FileSystems::sync_directory(const std::string& path) {
  at(path, [](FileSystem& files, const std::string& own) { files.sync_directory(own); });
}

std::string FileSystems::absolute_path(const std::string& path) {
  const std::string prefix = place_of(path).prefix;
  return prefix + at(path, [](FileSystem& files, const std::string& own) { return files.absolute_path(own); });
}

std::unique_ptr<WritableFile> FileSystems::create_file(const std::string& path) {
  return at(path, [](FileSystem& files, const std::string& own) { return files.create_file(own); });
}

FileReplacement FileSystems::begin_replacing(const std::string& path) {
  const std::string prefix = place_of(path).prefix;
  FileReplacement begun =
      at(path, [](FileSystem& files, const std::string& own) { return files.begin_replacing(own); });
  begun.target = prefix + begun.target;
  begun.temporary = prefix + begun.temporary;
  return begun;
}

std::shared_ptr<FileSystem> machine_files() {
  return std::make_shared<FileSystems>(FileSystems::Schemes{{"mem", nullptr}});
}

}  // namespace dflow
