#pragma once

/// Public: several file systems behind one, chosen by the scheme of a path.

#include <dflow/base/files/file_system.hpp>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// Hands each call to the file system of its path's scheme: "mem://runs/1" is "runs/1" of the file system "mem". A
/// path without a scheme belongs to "file". Give one object to all that share files: sessions, servers, savers,
/// datasets, event files.
///
/// ```cpp
/// auto files = std::make_shared<df::FileSystems>(df::FileSystems::Schemes{{"xyz", std::make_shared<MyFiles>()}});
/// df::Session session(graph, {.files = files});
/// df::train::Saver saver(graph, {.files = files});
/// saver.save(session, "xyz://models/digits", step);
/// ```
///
/// The top directory of a file system, "xyz://", is "." in its own terms.
///
/// Thread safety: safe; the schemes never change.
/// Errors: those of the path's file system, after "SCHEME://: ". Unimplemented for a path whose scheme is unknown, with
/// a list of the known ones, and for a rename from one file system to another.
class FileSystems final : public FileSystem {
 public:
  using Schemes = std::map<std::string, std::shared_ptr<FileSystem>, std::less<>>;

  /// "file" is the machine's files and "mem" a MemoryFileSystem of this object, unless `schemes` has others. A null
  /// file system takes a scheme away: without "file" no file of the machine can be reached. Errors: InvalidArgument for
  /// a scheme that is not a letter followed by letters, digits, '+', '-' and '.'.
  explicit FileSystems(Schemes schemes = {});

  /// The file system of a scheme, or null.
  std::shared_ptr<FileSystem> find(std::string_view scheme) const;

  using FileSystem::write_file_atomically;
  std::string read_file(const std::string& path, std::uint64_t max_bytes = default_max_bytes) override;
  std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) override;
  std::unique_ptr<WritableFile> open_for_appending(const std::string& path) override;
  void write_file_atomically(const std::string& path, std::span<const std::byte> content) override;
  bool exists(const std::string& path) override;
  bool is_directory(const std::string& path) override;
  std::uint64_t file_size(const std::string& path) override;
  std::vector<std::string> list_directory(const std::string& path) override;
  void create_directories(const std::string& path) override;
  void remove(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void sync_directory(const std::string& path) override;
  std::string absolute_path(const std::string& path) override;
  std::unique_ptr<WritableFile> create_file(const std::string& path) override;
  FileReplacement begin_replacing(const std::string& path) override;

 private:
  struct Place;
  Place place_of(const std::string& path) const;
  template <class Call>
  auto at(const std::string& path, const Call& call) const;

  Schemes schemes_;
};

/// The file systems of everything that was given none: "file" alone, so that a path with another scheme is an error.
std::shared_ptr<FileSystem> machine_files();

}  // namespace dflow
