#pragma once

#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/function_ref.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/npy.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/zip.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace dflow {

namespace detail {

inline constexpr std::string_view npy_suffix = ".npy";

std::string_view npz_name(std::string_view entry) {
  if (entry.ends_with(npy_suffix)) entry.remove_suffix(npy_suffix.size());
  return entry;
}

/// The result of `read()`; its errors get the entry as a prefix.
auto with_npz_place(const ZipEntry& entry, auto&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("entry '", entry.name, "' at offset ", entry.offset, ": ")));
  }
}

/// What `use(content, read)` makes of an entry's npy file, which `read` gives it. As in NumPy, an entry is an array if
/// it is named so or begins so. Errors also: Unimplemented for another entry.
auto with_npz_entry(const ZipReader& archive, const ZipEntry& entry, auto&& use) {
  return with_npz_place(entry, [&] {
    ZipContent content = archive.open(entry);
    std::string start(std::min<std::size_t>(static_cast<std::size_t>(content.remaining()), npy_magic_bytes), '\0');
    content.read(std::as_writable_bytes(std::span(start)));
    if (!entry.name.ends_with(npy_suffix) && !is_npy(start)) throw_error(Status::unimplemented("it is no array"));
    std::size_t given = 0;  // of the start
    return use(content, [&](std::span<std::byte> into) {
      const std::size_t count = std::min(start.size() - given, into.size());
      std::memcpy(into.data(), start.data() + given, count);
      given += count;
      content.read(into.subspan(count));
    });
  });
}

AnyTensor read_npz_entry(const ZipReader& archive, const ZipEntry& entry) {
  return with_npz_entry(archive, entry, [&](ZipContent& content, FunctionRef<void(std::span<std::byte>)> read) {
    AnyTensor tensor = read_npy_stream(entry.size, read);
    content.finish();
    return tensor;
  });
}

NpzEntry describe_npz_entry(const ZipReader& archive, const ZipEntry& entry) {
  NpzEntry description{std::string(npz_name(entry.name)), DType::invalid, {}, {}};
  try {
    const NpyDescription array =
        with_npz_entry(archive, entry, [&](ZipContent&, FunctionRef<void(std::span<std::byte>)> read) {
          return describe_npy_stream(entry.size, read);
        });
    description.dtype = array.dtype;
    description.shape = array.shape;
  } catch (const Error& error) {
    if (error.code() != Code::unimplemented && error.code() != Code::data_loss) throw;
    description.problem = error.status();
  }
  return description;
}

/// Errors: DataLoss unless the entry's bytes are as they were written; Unimplemented for a way to pack them.
void check_npz_entry(const ZipReader& archive, const ZipEntry& entry) {
  with_npz_place(entry, [&] {
    ZipContent content = archive.open(entry);
    std::array<std::byte, 4096> chunk;
    while (content.remaining() != 0) {
      const std::uint64_t size = std::min<std::uint64_t>(content.remaining(), chunk.size());
      content.read(std::span(chunk).first(static_cast<std::size_t>(size)));
    }
    content.finish();
  });
}

/// The result of `read()`; its errors get the path as a prefix.
auto with_npz_path(const std::string& path, auto&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat(path, ": ")));
  }
}

/// Errors: DataLoss if two entries, "a" and "a.npy", have one name without the suffix.
void require_names_once(const std::vector<ZipEntry>& entries) {
  std::unordered_set<std::string_view> names;
  for (const ZipEntry& entry : entries) {
    if (names.insert(npz_name(entry.name)).second) continue;
    throw_error(Status::data_loss(
        str_cat("array '", npz_name(entry.name), "' stands twice, at offset ", entry.offset, " too")));
  }
}

[[noreturn]] void reject_missing_array(std::string_view name, const std::vector<ZipEntry>& entries) {
  std::string names;
  for (const ZipEntry& entry : entries) {
    if (names.size() < 1000) names += str_cat(names.empty() ? "'" : ", '", npz_name(entry.name), "'");
  }
  throw_error(Status::not_found(str_cat("there is no array '", name, "', only ", names.empty() ? "none" : names)));
}

}  // namespace detail

NpzReader::NpzReader(FileSystem& files, std::string path) : path_(std::move(path)) {
  auto file = files.open_for_reading(path_);
  detail::with_npz_path(path_, [&] {
    archive_ = std::make_shared<const ZipReader>(std::move(file));
    detail::require_names_once(archive_->entries());
    entries_.reserve(archive_->entries().size());
    for (const ZipEntry& entry : archive_->entries()) {
      entries_.push_back(detail::describe_npz_entry(*archive_, entry));
      entries_.back().problem = entries_.back().problem.with_prefix(str_cat(path_, ": "));
      by_name_.emplace(entries_.back().name, entries_.size() - 1);
    }
  });
}

AnyTensor NpzReader::read(std::string_view name) const {
  if (archive_ == nullptr) throw_error(Status::failed_precondition("the npz reader was moved from"));
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) throw_if_error(entries_[found->second].problem);
  return detail::with_npz_path(path_, [&] {
    if (found == by_name_.end()) detail::reject_missing_array(name, archive_->entries());
    return detail::read_npz_entry(*archive_, archive_->entries()[found->second]);
  });
}

std::vector<NamedTensor> read_npz(FileSystem& files, const std::string& path) {
  auto file = files.open_for_reading(path);
  return detail::with_npz_path(path, [&] {
    const ZipReader archive(std::move(file));
    detail::require_names_once(archive.entries());
    std::vector<NamedTensor> tensors;
    tensors.reserve(archive.entries().size());
    for (const ZipEntry& entry : archive.entries()) {
      try {
        tensors.push_back({std::string(detail::npz_name(entry.name)), detail::read_npz_entry(archive, entry)});
      } catch (const Error& error) {
        if (error.code() != Code::unimplemented) throw;
        detail::check_npz_entry(archive, entry);  // a damaged array must not be left out
      }
    }
    return tensors;
  });
}

AnyTensor read_npz(FileSystem& files, const std::string& path, std::string_view name) {
  auto file = files.open_for_reading(path);
  return detail::with_npz_path(path, [&] {
    const ZipReader archive(std::move(file));
    detail::require_names_once(archive.entries());
    for (const ZipEntry& entry : archive.entries()) {
      if (detail::npz_name(entry.name) == name) return detail::read_npz_entry(archive, entry);
    }
    detail::reject_missing_array(name, archive.entries());
  });
}

void write_npz(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors,
               const NpzOptions& options) {
  AtomicFile file(files, path);
  ZipWriter archive(file, {.is_deflated = options.is_compressed});
  for (const auto& [name, tensor] : tensors) {
    if (name.empty()) throw_error(Status::invalid_argument("an array of an npz file needs a name"));
    try {
      const detail::NpyParts parts = detail::npy_parts(tensor, {});
      const std::array<std::span<const std::byte>, 2> pieces{std::as_bytes(std::span(parts.header)), parts.elements()};
      archive.add(str_cat(name, detail::npy_suffix), pieces);
    } catch (const Error& error) {
      throw_error(error.status().with_prefix(str_cat("array '", name, "': ")));
    }
  }
  archive.finish();
  file.finish();
}

}  // namespace dflow
