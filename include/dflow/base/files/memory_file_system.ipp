#pragma once

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace dflow {

/// A file shares its content with all open handles, so a file that is replaced or removed stays readable.
struct MemoryFileSystem::State {
  struct File {
    std::mutex mutex;
    std::string content;
    std::size_t synced_bytes = 0;  ///< of the content's beginning
  };

  /// The calls that fail; shared with the open files.
  struct Faults {
    std::mutex mutex;
    std::uint64_t changes = 0;
    std::uint64_t failing = 0;  ///< the number of the change that fails; 0 for none
    bool keeps_failing = false;
    Status status;

    /// Counts a change; returns the error to throw if the change is to fail.
    Status next() {
      std::lock_guard lock(mutex);
      ++changes;
      if (failing == 0) return {};
      return changes == failing || (keeps_failing && changes > failing) ? status : Status();
    }
  };

  std::mutex mutex;
  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  std::map<std::string, std::shared_ptr<File>> files;
  std::map<std::string, std::shared_ptr<File>> durable_files;  ///< the names that a loss of power would leave
  std::set<std::string> directories{"/"};

  /// "a//b/" and "/a/b" are one place: the root is where relative paths start. Errors: InvalidArgument for a path with
  /// a zero byte, which the machine does not have either.
  static std::string normalized(std::string_view path) {
    if (path.find('\0') != path.npos) {
      throw_error(Status::invalid_argument(str_cat("'", printable(path), "': a path has no zero byte")));
    }
    std::string result;
    std::size_t at = 0;
    while (at < path.size()) {
      const std::size_t end = std::min(path.find('/', at), path.size());
      const std::string_view part = path.substr(at, end - at);
      if (!part.empty() && part != ".") result += str_cat("/", part);
      at = end + 1;
    }
    return result.empty() ? "/" : result;
  }

  static std::string parent(const std::string& place) {
    const std::size_t slash = place.find_last_of('/');
    return slash == 0 ? "/" : place.substr(0, slash);
  }

  std::shared_ptr<File> find(const char* action, const std::string& path) {
    const std::string place = normalized(path);
    const auto found = files.find(place);
    if (found != files.end()) return found->second;
    if (directories.contains(place)) fail(Code::failed_precondition, action, path, "Is a directory");
    fail(Code::not_found, action, path, "No such file or directory");
  }

  /// Checks that a file may be made or replaced at `path`, and returns the place.
  std::string place_for_file(const char* action, const std::string& path) {
    std::string place = normalized(path);
    if (directories.contains(place)) fail(Code::failed_precondition, action, path, "Is a directory");
    if (!directories.contains(parent(place))) fail(Code::not_found, action, path, "No such file or directory");
    return place;
  }

  bool has_children(const std::string& place) const {
    const std::string prefix = place == "/" ? place : place + "/";
    const auto file = files.lower_bound(prefix);
    const auto directory = directories.upper_bound(prefix);
    return (file != files.end() && file->first.starts_with(prefix)) ||
           (directory != directories.end() && directory->starts_with(prefix));
  }

  [[noreturn]] static void fail(Code code, const char* action, const std::string& path, const char* reason) {
    throw_error(Status(code, str_cat("cannot ", action, " '", path, "': ", reason)));
  }

  class Reader final : public RandomAccessFile {
   public:
    explicit Reader(std::shared_ptr<File> file) : file_(std::move(file)) {}
    std::uint64_t size() const override {
      std::lock_guard lock(file_->mutex);
      return file_->content.size();
    }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const override {
      std::lock_guard lock(file_->mutex);
      if (offset >= file_->content.size()) return 0;
      const std::size_t size = std::min<std::size_t>(into.size(), file_->content.size() - offset);
      if (size != 0) std::memcpy(into.data(), file_->content.data() + offset, size);
      return size;
    }

   private:
    std::shared_ptr<File> file_;
  };

  class Appender final : public WritableFile {
   public:
    Appender(std::shared_ptr<File> file, std::shared_ptr<Faults> faults)
        : file_(std::move(file)), faults_(std::move(faults)) {}
    void append(std::span<const std::byte> bytes) override {
      const Status fault = faults_->next();
      const std::size_t size = fault.ok() ? bytes.size() : bytes.size() / 2;
      {
        std::lock_guard lock(file_->mutex);
        file_->content.append(reinterpret_cast<const char*>(bytes.data()), size);
      }
      throw_if_error(fault);
    }
    void sync() override {
      throw_if_error(faults_->next());
      std::lock_guard lock(file_->mutex);
      file_->synced_bytes = file_->content.size();
    }

   private:
    std::shared_ptr<File> file_;
    std::shared_ptr<Faults> faults_;
  };
};

MemoryFileSystem::MemoryFileSystem() : state_(std::make_unique<State>()) {}

MemoryFileSystem::~MemoryFileSystem() = default;

std::string MemoryFileSystem::read_file(const std::string& path, std::uint64_t max_bytes) {
  std::lock_guard lock(state_->mutex);
  const auto file = state_->find("open", path);
  std::lock_guard file_lock(file->mutex);
  if (file->content.size() > max_bytes) {
    throw_error(Status::resource_exhausted(str_cat("cannot read '", path, "': more than ", max_bytes, " bytes")));
  }
  return file->content;
}

std::unique_ptr<RandomAccessFile> MemoryFileSystem::open_for_reading(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  return std::make_unique<State::Reader>(state_->find("open", path));
}

std::unique_ptr<WritableFile> MemoryFileSystem::open_for_appending(const std::string& path) {
  throw_if_error(state_->faults->next());
  std::lock_guard lock(state_->mutex);
  const std::string place = state_->place_for_file("open", path);
  const auto found = state_->files.find(place);
  auto file = found != state_->files.end() ? found->second : std::make_shared<State::File>();
  auto appender = std::make_unique<State::Appender>(file, state_->faults);
  state_->files.insert_or_assign(place, std::move(file));
  return appender;
}

std::unique_ptr<WritableFile> MemoryFileSystem::create_file(const std::string& path) {
  throw_if_error(state_->faults->next());
  const std::string place = State::normalized(path);
  std::lock_guard lock(state_->mutex);
  if (state_->files.contains(place) || state_->directories.contains(place)) {
    State::fail(Code::already_exists, "create", path, "File exists");
  }
  auto file = std::make_shared<State::File>();
  auto appender = std::make_unique<State::Appender>(file, state_->faults);
  state_->files.emplace(state_->place_for_file("create", path), std::move(file));
  return appender;
}

void MemoryFileSystem::write_file_atomically(const std::string& path, std::span<const std::byte> content) {
  throw_if_error(state_->faults->next());
  auto file = std::make_shared<State::File>();
  file->content.assign(reinterpret_cast<const char*>(content.data()), content.size());
  file->synced_bytes = content.size();
  std::lock_guard lock(state_->mutex);
  const std::string place = state_->place_for_file("create", path);
  state_->files[place] = file;
  state_->durable_files[place] = std::move(file);
}

bool MemoryFileSystem::exists(const std::string& path) {
  const std::string place = State::normalized(path);
  std::lock_guard lock(state_->mutex);
  return state_->files.contains(place) || state_->directories.contains(place);
}

bool MemoryFileSystem::is_directory(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  return state_->directories.contains(State::normalized(path));
}

std::uint64_t MemoryFileSystem::file_size(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  const auto file = state_->find("inspect", path);
  std::lock_guard file_lock(file->mutex);
  return file->content.size();
}

std::vector<std::string> MemoryFileSystem::list_directory(const std::string& path) {
  const std::string place = State::normalized(path);
  std::lock_guard lock(state_->mutex);
  if (state_->files.contains(place)) State::fail(Code::failed_precondition, "list", path, "Not a directory");
  if (!state_->directories.contains(place)) State::fail(Code::not_found, "list", path, "No such file or directory");
  std::vector<std::string> names;
  const auto add_child = [&](const std::string& other) {
    if (other != "/" && State::parent(other) == place) names.push_back(other.substr(other.find_last_of('/') + 1));
  };
  for (const auto& [name, file] : state_->files) add_child(name);
  for (const auto& name : state_->directories) add_child(name);
  std::sort(names.begin(), names.end());
  return names;
}

void MemoryFileSystem::create_directories(const std::string& path) {
  throw_if_error(state_->faults->next());
  const std::string place = State::normalized(path);
  std::lock_guard lock(state_->mutex);
  for (std::size_t end = place.find('/', 1);; end = place.find('/', end + 1)) {
    const std::string prefix = place.substr(0, end);
    if (state_->files.contains(prefix)) {
      State::fail(prefix == place ? Code::already_exists : Code::failed_precondition, "create directory", path,
                  prefix == place ? "File exists" : "Not a directory");
    }
    state_->directories.insert(prefix);
    if (end == std::string::npos) return;
  }
}

void MemoryFileSystem::remove(const std::string& path) {
  throw_if_error(state_->faults->next());
  const std::string place = State::normalized(path);
  std::lock_guard lock(state_->mutex);
  if (state_->files.erase(place) != 0) return;
  if (!state_->directories.contains(place)) State::fail(Code::not_found, "remove", path, "No such file or directory");
  if (place == "/" || state_->has_children(place)) {
    State::fail(Code::failed_precondition, "remove", path, "Directory not empty");
  }
  state_->directories.erase(place);
}

void MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  throw_if_error(state_->faults->next());
  const std::string old_place = State::normalized(from);
  const std::string new_place = State::normalized(to);
  std::lock_guard lock(state_->mutex);
  if (!state_->directories.contains(State::parent(new_place))) {
    State::fail(Code::not_found, "rename to", to, "No such file or directory");
  }
  if (const auto file = state_->files.find(old_place); file != state_->files.end()) {
    const std::string place = state_->place_for_file("rename to", to);
    if (place == old_place) return;
    state_->files.insert_or_assign(place, file->second);
    state_->files.erase(file);
    return;
  }
  if (!state_->directories.contains(old_place)) {
    State::fail(Code::not_found, "rename", from, "No such file or directory");
  }
  if (old_place == new_place) return;
  if (new_place.starts_with(old_place + "/")) State::fail(Code::invalid_argument, "rename", from, "Invalid argument");
  if (state_->files.contains(new_place)) State::fail(Code::failed_precondition, "rename to", to, "Not a directory");
  if (state_->has_children(new_place)) State::fail(Code::failed_precondition, "rename to", to, "Directory not empty");
  const std::string prefix = old_place + "/";
  const auto name_after = [&](const std::string& place) {
    return place == old_place || place.starts_with(prefix) ? new_place + place.substr(old_place.size()) : place;
  };
  // All is made before anything is changed.
  decltype(state_->files) files;
  for (const auto& [place, file] : state_->files) files.emplace(name_after(place), file);
  decltype(state_->directories) directories;
  for (const std::string& place : state_->directories) directories.insert(name_after(place));
  state_->files.swap(files);
  state_->directories.swap(directories);
}

void MemoryFileSystem::sync_directory(const std::string& path) {
  throw_if_error(state_->faults->next());
  const std::string place = State::normalized(path);
  std::lock_guard lock(state_->mutex);
  if (state_->files.contains(place)) State::fail(Code::failed_precondition, "open", path, "Not a directory");
  if (!state_->directories.contains(place)) State::fail(Code::not_found, "open", path, "No such file or directory");
  std::erase_if(state_->durable_files, [&](const auto& entry) { return State::parent(entry.first) == place; });
  for (const auto& [name, file] : state_->files) {
    if (State::parent(name) == place) state_->durable_files[name] = file;
  }
}

std::uint64_t MemoryFileSystem::changes() const {
  std::lock_guard lock(state_->faults->mutex);
  return state_->faults->changes;
}

void MemoryFileSystem::fail_change(std::uint64_t number, Status status, bool keeps_failing) {
  std::lock_guard lock(state_->faults->mutex);
  state_->faults->failing = number == 0 ? 0 : state_->faults->changes + number;
  state_->faults->keeps_failing = keeps_failing;
  state_->faults->status = std::move(status);
}

void MemoryFileSystem::crash(const CrashOutcome& outcome) {
  fail_change(0, {});
  std::lock_guard lock(state_->mutex);
  // Open files still belong to the callers that opened them: the content that is left goes into new files.
  decltype(state_->files) left;
  for (const auto& [place, file] : outcome.keeps_names ? state_->files : state_->durable_files) {
    auto copy = std::make_shared<State::File>();
    std::lock_guard file_lock(file->mutex);
    copy->content = file->content.substr(0, outcome.keeps_contents ? std::string::npos : file->synced_bytes);
    copy->synced_bytes = copy->content.size();
    left.emplace(place, std::move(copy));
  }
  state_->files = left;
  state_->durable_files = std::move(left);
}

}  // namespace dflow
