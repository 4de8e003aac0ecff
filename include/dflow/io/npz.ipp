#pragma once

#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/npy.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/zip.hpp>

#include <array>

namespace dflow {

namespace detail {

inline constexpr std::string_view npy_suffix = ".npy";

std::string_view npz_name(std::string_view entry) {
  if (entry.ends_with(npy_suffix)) entry.remove_suffix(npy_suffix.size());
  return entry;
}

AnyTensor read_npz_entry(const ZipReader& archive, const ZipEntry& entry) {
  try {
    ZipContent content = archive.open(entry);
    AnyTensor tensor = read_npy_stream(entry.size, [&](std::span<std::byte> into) { content.read(into); });
    content.finish();
    return tensor;
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("entry '", entry.name, "' at offset ", entry.offset, ": ")));
  }
}

/// The result of `read(archive)`; its errors get the path as a prefix.
auto with_npz(FileSystem& files, const std::string& path, auto&& read) {
  auto file = files.open_for_reading(path);
  try {
    return read(ZipReader(std::move(file)));
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat(path, ": ")));
  }
}

}  // namespace detail

std::vector<NamedTensor> read_npz(FileSystem& files, const std::string& path) {
  return detail::with_npz(files, path, [](const ZipReader& archive) {
    std::vector<NamedTensor> tensors;
    tensors.reserve(archive.entries().size());
    for (const ZipEntry& entry : archive.entries()) {
      tensors.push_back({std::string(detail::npz_name(entry.name)), detail::read_npz_entry(archive, entry)});
    }
    return tensors;
  });
}

AnyTensor read_npz(FileSystem& files, const std::string& path, std::string_view name) {
  return detail::with_npz(files, path, [&](const ZipReader& archive) {
    std::string names;
    for (const ZipEntry& entry : archive.entries()) {
      if (detail::npz_name(entry.name) == name) return detail::read_npz_entry(archive, entry);
      if (names.size() < 1000) names += str_cat(names.empty() ? "'" : ", '", detail::npz_name(entry.name), "'");
    }
    throw_error(Status::not_found(str_cat("there is no array '", name, "', only ", names.empty() ? "none" : names)));
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
