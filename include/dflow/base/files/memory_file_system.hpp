#pragma once

#include <dflow/base/files/file_system.hpp>

namespace dflow {

/// Files in memory, for tests and simulations: the same results and error codes as PosixFileSystem.
///
/// Thread safety: safe.
class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem();
  MemoryFileSystem(const MemoryFileSystem&) = delete;
  MemoryFileSystem& operator=(const MemoryFileSystem&) = delete;
  ~MemoryFileSystem() override;

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

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/base/files/memory_file_system.ipp>
#endif
