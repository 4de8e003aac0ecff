#pragma once

/// Public: a file system in memory, for tests and simulations.

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dflow {

/// The changes without a sync that survive a loss of power: a real disk may keep or lose each kind.
struct CrashOutcome {
  bool keeps_names = false;     ///< files made, renamed and removed since the last `sync_directory`
  bool keeps_contents = false;  ///< bytes appended since the last `sync` of the file
};

/// Files in memory, for tests and simulations: the same results and error codes as PosixFileSystem. It can simulate a
/// loss of power and failing calls. Directories and `write_file_atomically` are durable at once.
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
  void sync_directory(const std::string& path) override;
  std::unique_ptr<WritableFile> create_file(const std::string& path) override;

  /// The number of calls that have changed or synced something, or have tried to. Openings for appending, appends and
  /// syncs of files count as well.
  std::uint64_t changes() const;
  /// The `number`-th call from now on that `changes` counts, counted from 1, throws `status` (an append after half of
  /// its bytes). With `keeps_failing` all later calls throw too. Replaces the previous request; with 0 no call fails.
  void fail_change(std::uint64_t number, Status status, bool keeps_failing = false);
  /// Simulates a loss of power: changes that are not durable are lost, except as `outcome` says. Open files are cut off
  /// from the file system: nobody finds bytes that are appended to them later. Ends the request of `fail_change`.
  void crash(const CrashOutcome& outcome = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dflow
