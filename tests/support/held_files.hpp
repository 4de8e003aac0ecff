// Files in memory that wait where a test tells them to.
#pragma once

#include <dflow/base/files/memory_file_system.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow::testing {

/// An event that any thread waits for, and that happens once or more.
class Gate {
 public:
  void set() {
    is_open_.store(true);
    is_open_.notify_all();
  }
  void wait_blocking() const { is_open_.wait(false); }

 private:
  std::atomic<bool> is_open_{false};
};

/// Files in memory with behaviour that a test changes.
class ChangedFiles : public FileSystem {
 public:
  using FileSystem::write_file_atomically;
  std::string read_file(const std::string& path, std::uint64_t max_bytes) override {
    return files.read_file(path, max_bytes);
  }
  std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) override {
    return files.open_for_reading(path);
  }
  std::unique_ptr<WritableFile> open_for_appending(const std::string& path) override {
    return files.open_for_appending(path);
  }
  void write_file_atomically(const std::string& path, std::span<const std::byte> content) override {
    files.write_file_atomically(path, content);
  }
  bool exists(const std::string& path) override { return files.exists(path); }
  bool is_directory(const std::string& path) override { return files.is_directory(path); }
  std::uint64_t file_size(const std::string& path) override { return files.file_size(path); }
  std::vector<std::string> list_directory(const std::string& path) override { return files.list_directory(path); }
  void create_directories(const std::string& path) override { files.create_directories(path); }
  void remove(const std::string& path) override { files.remove(path); }
  void rename(const std::string& from, const std::string& to) override { files.rename(from, to); }
  void sync_directory(const std::string& path) override { files.sync_directory(path); }
  std::unique_ptr<WritableFile> create_file(const std::string& path) override { return files.create_file(path); }

  MemoryFileSystem files;
};

/// Files that are created only when they may go.
class HeldFiles final : public ChangedFiles {
 public:
  std::unique_ptr<WritableFile> create_file(const std::string& path) override {
    is_held.set();
    may_go.wait_blocking();
    return files.create_file(path);
  }

  Gate is_held, may_go;
};

/// Files that are read only when they may go.
class HeldReads final : public ChangedFiles {
 public:
  std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) override {
    return std::make_unique<File>(*this, files.open_for_reading(path));
  }

  Gate is_held, may_go;

 private:
  class File final : public RandomAccessFile {
   public:
    File(HeldReads& held, std::unique_ptr<RandomAccessFile> file) : held_(held), file_(std::move(file)) {}
    std::uint64_t size() const override { return file_->size(); }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const override {
      held_.is_held.set();
      held_.may_go.wait_blocking();
      return file_->read_at(offset, into);
    }

   private:
    HeldReads& held_;
    const std::unique_ptr<RandomAccessFile> file_;
  };
};

}  // namespace dflow::testing
