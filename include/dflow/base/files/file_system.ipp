#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/printable.hpp>
#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/status.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <random>
#include <system_error>
#include <utility>

namespace dflow {

RandomAccessFile::~RandomAccessFile() = default;
WritableFile::~WritableFile() = default;
FileSystem::~FileSystem() = default;

void RandomAccessFile::read_exactly_at(std::uint64_t offset, std::span<std::byte> into) const {
  const std::size_t got = read_at(offset, into);
  if (got != into.size()) {
    throw_error(Status::data_loss(
        str_cat("file ends early: ", into.size(), " bytes wanted at offset ", offset, ", ", got, " were there")));
  }
}

std::string read_regular_file(FileSystem& files, const std::string& path, std::uint64_t max_bytes) {
  const std::unique_ptr<RandomAccessFile> file = files.open_for_reading(path);
  if (file->size() > max_bytes) {
    throw_error(Status::resource_exhausted(str_cat("cannot read '", path, "': more than ", max_bytes, " bytes")));
  }
  std::string content(static_cast<std::size_t>(file->size()), '\0');
  file->read_exactly_at(0, std::as_writable_bytes(std::span(content)));
  // Files in /proc have no size, and a file may grow: read until there is no more.
  std::array<std::byte, 4096> more;
  while (const std::size_t got = file->read_at(content.size(), more)) {
    if (content.size() + got > max_bytes) {
      throw_error(Status::resource_exhausted(str_cat("cannot read '", path, "': more than ", max_bytes, " bytes")));
    }
    content.append(reinterpret_cast<const char*>(more.data()), got);
  }
  return content;
}

std::string_view path_scheme(std::string_view path) noexcept {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const std::string_view scheme = path.substr(0, path.find(scheme_end));
  if (scheme.size() == path.size() || scheme.empty() || !is_letter(scheme.front())) return {};
  const bool fits = std::ranges::all_of(
      scheme, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; });
  return fits ? scheme : std::string_view();
}

namespace detail {
/// The same for paths of the machine, in which "a://b" means a directory "a:".
std::string join_machine_path(std::string_view directory, std::string_view name) {
  if (directory.empty() || name.starts_with('/')) return std::string(name);
  return str_cat(directory, directory.ends_with('/') ? "" : "/", name);
}
}  // namespace detail

std::string join_path(std::string_view directory, std::string_view name) {
  return path_scheme(name).empty() ? detail::join_machine_path(directory, name) : std::string(name);
}

std::string parent_directory(const std::string& path) {
  const std::size_t scheme = path_scheme(path).size();
  const std::size_t begin = scheme == 0 ? 0 : scheme + scheme_end.size();
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  if (slash < begin) return path.substr(0, begin);
  return path.substr(0, slash == begin ? slash + 1 : slash);
}

namespace detail {

Code code_of_errno(int error) noexcept {
  switch (error) {
    case ENOENT:
      return Code::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::permission_denied;
    case EEXIST:
      return Code::already_exists;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EFBIG:
      return Code::resource_exhausted;
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
      return Code::failed_precondition;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
      return Code::invalid_argument;
    default:
      return Code::unavailable;
  }
}

[[noreturn]] void fail_with_errno(const char* action, const std::string& path, int error) {
  throw_error(Status(code_of_errno(error),
                     str_cat("cannot ", action, " '", printable(path), "': ", std::generic_category().message(error))));
}

constexpr int max_replacements = 16;

std::string temporary_name(const std::string& target, int number) { return str_cat(target, ".dflow-", number, ".tmp"); }

/// Has `create` make a file under the first name that nobody has; it may give null for the next name. Where all names
/// are taken, by writers that were killed on a file system without locks say, the last ones are random names.
template <class Create>
FileReplacement with_temporary_name(const std::string& target, const Create& create) {
  constexpr int max_names = 2 * max_replacements;
  for (int number = 0; number < max_names; ++number) {
    std::string temporary = number < max_replacements ? temporary_name(target, number)
                                                      : str_cat(target, ".dflow-", std::random_device()(), ".tmp");
    try {
      if (std::unique_ptr<WritableFile> file = create(temporary)) {
        return {target, std::move(temporary), std::move(file)};
      }
    } catch (const Error& error) {
      if (error.code() != Code::already_exists || number > max_replacements) throw;
    }
  }
  throw_error(Status::unavailable(str_cat("cannot replace '", target, "': no temporary file could be had beside it")));
}

/// A path with a zero byte inside would silently name another file.
void refuse_zero_byte(const char* action, const std::string& path) {
  if (path.find('\0') == std::string::npos) return;
  throw_error(
      Status::invalid_argument(str_cat("cannot ", action, " '", printable(path), "': a path has no zero byte")));
}

/// What the path leads to. False for what is missing. Errors: as FileSystem where the system cannot say.
bool is_there(const std::string& path, struct stat& info) {
  refuse_zero_byte("inspect", path);
  if (::stat(path.c_str(), &info) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail_with_errno("inspect", path, errno);
  return false;
}

/// Owns an open file descriptor.
class FileDescriptor {
 public:
  /// Blocks. Errors: as FileSystem; an interrupted call is repeated.
  FileDescriptor(const char* action, const std::string& path, int flags, mode_t mode = 0666) : path_(path) {
    refuse_zero_byte(action, path);
    may_block("opening a file");
    do {
      descriptor_ = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) fail_with_errno(action, path_, errno);
  }
  FileDescriptor(FileDescriptor&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int get() const noexcept { return descriptor_; }
  const std::string& path() const noexcept { return path_; }

  /// The size of a regular file; FailedPrecondition for a directory, 0 for pipes and devices.
  std::uint64_t size() const {
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0) fail_with_errno("inspect", path_, errno);
    if (S_ISDIR(info.st_mode)) fail_with_errno("read", path_, EISDIR);
    return S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
  }

  /// Errors also: FailedPrecondition if it is not a regular file.
  std::uint64_t size_of_regular() const {
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0) fail_with_errno("inspect", path_, errno);
    if (S_ISDIR(info.st_mode)) fail_with_errno("read", path_, EISDIR);
    if (S_ISREG(info.st_mode)) return static_cast<std::uint64_t>(info.st_size);
    throw_error(Status::failed_precondition(str_cat("cannot read '", path_, "': it is not a regular file")));
  }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const {
    may_block("reading a file");
    if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return 0;
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got =
          ::pread(descriptor_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_with_errno("read", path_, errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  void write_all(std::span<const std::byte> bytes) const {
    may_block("writing a file");
    while (!bytes.empty()) {
      const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail_with_errno("write", path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }

  void sync() const {
    may_block("syncing a file");
    while (::fsync(descriptor_) != 0) {
      if (errno != EINTR) fail_with_errno("sync", path_, errno);
    }
  }

  /// Locks the file until it is closed. False if another process or thread has locked it, or its path leads to another
  /// file by now; `without_locks` where the file system has no locks.
  bool take_hold(bool without_locks) const {
    while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return false;
      if (errno != EINTR) return without_locks;
    }
    struct stat mine {
    }, there{};
    return ::fstat(descriptor_, &mine) == 0 && ::lstat(path_.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

class PosixRandomAccessFile final : public RandomAccessFile {
 public:
  /// Does not wait for another process to write into a pipe.
  explicit PosixRandomAccessFile(const std::string& path)
      : file_("open", path, O_RDONLY | O_NONBLOCK), size_(file_.size_of_regular()) {}
  std::uint64_t size() const override { return size_; }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    return file_.read_at(offset, into);
  }

 private:
  FileDescriptor file_;
  std::uint64_t size_;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(const char* action, const std::string& path, int flags)
      : file_(action, path, O_WRONLY | O_CREAT | O_APPEND | flags) {}
  explicit PosixWritableFile(FileDescriptor file) noexcept : file_(std::move(file)) {}
  void append(std::span<const std::byte> bytes) override { file_.write_all(bytes); }
  void sync() override { file_.sync(); }

 private:
  FileDescriptor file_;
};

/// Removes a temporary file whose writer has died, and a link or another thing that no writer makes.
void remove_if_abandoned(const std::string& temporary) {
  struct stat info {};
  if (::lstat(temporary.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return;
  if (S_ISREG(info.st_mode)) {
    try {
      const bool is_writable = ::access(temporary.c_str(), W_OK) == 0;  // some file systems lock no others
      const FileDescriptor file("open", temporary, (is_writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW);
      if (file.take_hold(false)) ::unlink(temporary.c_str());
    } catch (const Error&) {  // another user's file: the next name is tried
    }
    return;
  }
  ::unlink(temporary.c_str());
}

/// Gives the file the permissions of the one that it replaces, and its owner and group where that is allowed. Without
/// the group, group members get no more than everybody, so that the content is not opened to another group. A file
/// system that changes no permissions is an error only if the file would be more open than the old one.
void copy_permissions(const FileDescriptor& file, const struct stat& replaced) {
  struct stat made {};
  if (::fstat(file.get(), &made) != 0) fail_with_errno("inspect", file.path(), errno);
  mode_t mode = replaced.st_mode & 07777;
  const bool has_owner =
      made.st_uid == replaced.st_uid || ::fchown(file.get(), replaced.st_uid, static_cast<gid_t>(-1)) == 0;
  const bool has_group =
      made.st_gid == replaced.st_gid || ::fchown(file.get(), static_cast<uid_t>(-1), replaced.st_gid) == 0;
  if (!has_group) mode &= ~mode_t{070} | (mode & 07) << 3;
  if (!has_owner || !has_group) mode &= 01777;
  const mode_t now = made.st_mode & 07777;
  if (now != mode && ::fchmod(file.get(), mode) != 0 && (now & ~mode) != 0) {
    fail_with_errno("set the permissions of", file.path(), errno);
  }
}

/// The path that the symbolic links at `path` lead to, whether there is a file or not. Blocks. Errors: as FileSystem;
/// FailedPrecondition if the path holds something that is not a regular file, InvalidArgument for too many links.
std::string file_to_replace(std::string path) {
  constexpr int max_links = 40;  // as Linux has it
  const std::string given = path;
  refuse_zero_byte("replace", given);
  for (int links = 0;; ++links) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) return path;
      fail_with_errno("replace", given, errno);
    }
    if (S_ISDIR(info.st_mode)) fail_with_errno("replace", given, EISDIR);
    if (S_ISREG(info.st_mode)) return path;
    if (!S_ISLNK(info.st_mode)) {
      throw_error(Status::failed_precondition(str_cat("cannot replace '", given, "': it is not a regular file")));
    }
    if (links == max_links) fail_with_errno("replace", given, ELOOP);
    std::string target(4096, '\0');
    const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
    if (length < 0) fail_with_errno("replace", given, errno);
    target.resize(static_cast<std::size_t>(length));
    path = join_machine_path(parent_directory(path), target);
  }
}

void sync_directory(const std::string& path) { FileDescriptor("open", path, O_RDONLY | O_DIRECTORY).sync(); }

}  // namespace detail

FileReplacement FileSystem::begin_replacing(const std::string& path) {
  FileReplacement begun =
      detail::with_temporary_name(path, [&](const std::string& temporary) { return create_file(temporary); });
  begun.closes_first = true;
  return begun;
}

std::string PosixFileSystem::read_file(const std::string& path, std::uint64_t max_bytes) {
  const detail::FileDescriptor file("open", path, O_RDONLY);
  const std::uint64_t size = file.size();
  const auto too_large = [&] {
    return Error(Status::resource_exhausted(str_cat("cannot read '", path, "': more than ", max_bytes, " bytes")));
  };
  if (size > max_bytes) throw too_large();
  std::string content(static_cast<std::size_t>(size), '\0');
  std::size_t done = 0;
  // Pipes and files in /proc have no size, and a file may grow: read until there is no more.
  while (true) {
    if (done == content.size()) {
      char probe[4096];
      const ssize_t got = ::read(file.get(), probe, sizeof(probe));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) detail::fail_with_errno("read", path, errno);
      if (got == 0) return content;
      content.append(probe, static_cast<std::size_t>(got));
      done = content.size();
    } else {
      const ssize_t got = ::read(file.get(), content.data() + done, content.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) detail::fail_with_errno("read", path, errno);
      if (got == 0) {
        content.resize(done);
        return content;
      }
      done += static_cast<std::size_t>(got);
    }
    if (done > max_bytes) throw too_large();
  }
}

std::unique_ptr<RandomAccessFile> PosixFileSystem::open_for_reading(const std::string& path) {
  return std::make_unique<detail::PosixRandomAccessFile>(path);
}

std::unique_ptr<WritableFile> PosixFileSystem::open_for_appending(const std::string& path) {
  return std::make_unique<detail::PosixWritableFile>("open", path, 0);
}

std::unique_ptr<WritableFile> PosixFileSystem::create_file(const std::string& path) {
  return std::make_unique<detail::PosixWritableFile>("create", path, O_EXCL);
}

FileReplacement PosixFileSystem::begin_replacing(const std::string& path) {
  const std::string target = detail::file_to_replace(path);
  struct stat replaced {};
  const bool is_there = detail::is_there(target, replaced);
  return detail::with_temporary_name(target, [&](const std::string& temporary) -> std::unique_ptr<WritableFile> {
    detail::remove_if_abandoned(temporary);
    detail::FileDescriptor file("create", temporary, O_WRONLY | O_CREAT | O_EXCL | O_APPEND,
                                is_there ? replaced.st_mode & 0600 : 0666);
    // Between the two calls another writer may have taken the file for an abandoned one.
    if (!file.take_hold(true)) return nullptr;
    try {
      if (is_there) detail::copy_permissions(file, replaced);
      return std::make_unique<detail::PosixWritableFile>(std::move(file));
    } catch (...) {
      ::unlink(temporary.c_str());
      throw;
    }
  });
}

void PosixFileSystem::write_file_atomically(const std::string& path, std::span<const std::byte> content) {
  const FileReplacement replacement = begin_replacing(path);
  try {
    replacement.file->append(content);
    replacement.file->sync();
    rename(replacement.temporary, replacement.target);
  } catch (...) {
    ::unlink(replacement.temporary.c_str());
    throw;
  }
  detail::sync_directory(parent_directory(replacement.target));
}

bool PosixFileSystem::exists(const std::string& path) {
  struct stat info {};
  return detail::is_there(path, info);
}

bool PosixFileSystem::is_directory(const std::string& path) {
  struct stat info {};
  return detail::is_there(path, info) && S_ISDIR(info.st_mode);
}

std::uint64_t PosixFileSystem::file_size(const std::string& path) {
  struct stat info {};
  if (!detail::is_there(path, info)) detail::fail_with_errno("inspect", path, errno);
  if (S_ISDIR(info.st_mode)) detail::fail_with_errno("inspect", path, EISDIR);
  return static_cast<std::uint64_t>(info.st_size);
}

std::vector<std::string> PosixFileSystem::list_directory(const std::string& path) {
  struct Closer {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  detail::refuse_zero_byte("list", path);
  const std::unique_ptr<DIR, Closer> directory(::opendir(path.c_str()));
  if (directory == nullptr) detail::fail_with_errno("list", path, errno);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) detail::fail_with_errno("list", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

void PosixFileSystem::create_directories(const std::string& path) {
  detail::refuse_zero_byte("create directory", path);
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    if (!prefix.empty() && ::mkdir(prefix.c_str(), 0777) != 0) {
      int error = errno;
      if (error == EEXIST && end != std::string::npos) error = ENOTDIR;
      if (!is_directory(prefix)) detail::fail_with_errno("create directory", prefix, error);
    }
    if (end == std::string::npos) return;
  }
}

void PosixFileSystem::remove(const std::string& path) {
  detail::refuse_zero_byte("remove", path);
  if (std::remove(path.c_str()) != 0) {
    // Both are allowed for a directory that is not empty.
    detail::fail_with_errno("remove", path, errno == EEXIST ? ENOTEMPTY : errno);
  }
}

void PosixFileSystem::rename(const std::string& from, const std::string& to) {
  for (const std::string* path : {&from, &to}) detail::refuse_zero_byte("rename", *path);
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    const int error = errno;
    throw_error(Status(detail::code_of_errno(error == EEXIST ? ENOTEMPTY : error),
                       str_cat("cannot rename '", printable(from), "' to '", printable(to),
                               "': ", std::generic_category().message(error))));
  }
}

std::string PosixFileSystem::absolute_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::string directory(256, '\0');
  while (::getcwd(directory.data(), directory.size()) == nullptr) {
    if (errno != ERANGE) detail::fail_with_errno("find the working directory for", path, errno);
    directory.resize(2 * directory.size());
  }
  directory.resize(directory.find('\0'));
  return detail::join_machine_path(directory, path);
}

void PosixFileSystem::sync_directory(const std::string& path) { detail::sync_directory(path); }

}  // namespace dflow
