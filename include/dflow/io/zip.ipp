#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/zip.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>
#include <utility>

namespace dflow {

namespace detail {

inline constexpr std::uint32_t zip_local_magic = 0x04034b50, zip_entry_magic = 0x02014b50, zip_end_magic = 0x06054b50,
                               zip_end_64_magic = 0x06064b50, zip_locator_magic = 0x07064b50;
inline constexpr std::size_t zip_local_bytes = 30, zip_entry_bytes = 46, zip_end_bytes = 22, zip_end_64_bytes = 56,
                             zip_locator_bytes = 20;
inline constexpr std::uint32_t zip_more_32 = 0xffffffff;  ///< stands for a number that is in the 64-bit field
inline constexpr std::uint16_t zip_more_16 = 0xffff, zip_64_field = 1;
inline constexpr std::uint16_t zip_stored = 0, zip_deflated = 8;
inline constexpr std::uint16_t zip_encrypted_flag = 1, zip_sizes_follow_flag = 8, zip_utf8_flag = 0x800;
inline constexpr std::uint16_t zip_version = 20, zip_version_64 = 45, zip_first_day = 0x21;
/// The most bytes that a deflated byte unpacks to: 258 bytes for two codes of one bit each.
inline constexpr std::uint64_t zip_most_expansion = 1032;

Status zip_damage(std::string_view what, std::uint64_t offset) {
  return Status::data_loss(str_cat("the ZIP archive is damaged: ", what, ", at offset ", offset));
}
[[noreturn]] void fail_zip(std::string_view what, std::uint64_t offset) { throw_error(zip_damage(what, offset)); }

/// Replaces the numbers that are `zip_more_32`, in their order, by numbers of the 64-bit extra field.
void read_zip_64(std::span<const std::byte> extra, std::span<std::uint64_t* const> numbers) {
  std::vector<std::uint64_t*> wanted;
  for (std::uint64_t* number : numbers) {
    if (*number == zip_more_32) wanted.push_back(number);
  }
  if (wanted.empty()) return;
  ByteReader in(extra);
  while (in.remaining() >= 4) {
    const std::uint16_t id = in.u16(), size = in.u16();
    ByteReader field(in.bytes(size));
    if (id != zip_64_field) continue;
    for (std::uint64_t* number : wanted) *number = field.u64();
    return;
  }
  // Without the field, the number is really `zip_more_32`.
}

bool is_unreadable(const ZipEntry& entry) {
  return entry.is_encrypted || (entry.method != zip_stored && entry.method != zip_deflated);
}

/// Errors also: DataLoss; the directory begins at `directory`.
ZipEntry read_zip_entry(ByteReader& in, std::uint64_t directory) {
  const std::uint64_t at = directory + in.position();
  if (in.u32() != zip_entry_magic) fail_zip("no entry of the directory", at);
  in.skip(4);  // versions
  const std::uint16_t flags = in.u16();
  ZipEntry entry;
  entry.method = in.u16();
  entry.is_encrypted = (flags & zip_encrypted_flag) != 0;
  in.skip(4);  // time and date
  entry.crc = in.u32();
  entry.packed_size = in.u32();
  entry.size = in.u32();
  const std::uint16_t name_size = in.u16(), extra_size = in.u16(), comment_size = in.u16(), disk = in.u16();
  in.skip(6);  // attributes
  entry.offset = in.u32();
  const std::span<const std::byte> name = in.bytes(name_size), extra = in.bytes(extra_size);
  in.skip(comment_size);
  entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  std::uint64_t* const numbers[] = {&entry.size, &entry.packed_size, &entry.offset};
  read_zip_64(extra, numbers);

  if (disk != 0) {
    throw_error(Status::unimplemented(str_cat("entry '", entry.name, "' of the ZIP archive is in another part of it")));
  }
  const bool is_too_small = entry.method == zip_deflated ? entry.size / zip_most_expansion > entry.packed_size
                                                         : entry.size != entry.packed_size;
  if (!is_unreadable(entry) && is_too_small) {
    fail_zip(str_cat("entry '", entry.name, "' cannot hold ", entry.size, " bytes in ", entry.packed_size), at);
  }
  return entry;
}

/// Finds the latest possible end of each entry, and checks that no entries overlap. Their order stays.
void separate_zip_entries(std::vector<ZipEntry>& entries, std::uint64_t directory) {
  std::vector<ZipEntry*> by_offset;
  by_offset.reserve(entries.size());
  for (ZipEntry& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->offset < b->offset; });
  std::uint64_t end = directory;
  for (std::size_t i = by_offset.size(); i-- > 0;) {
    ZipEntry& entry = *by_offset[i];
    entry.end = end;
    const std::uint64_t header = zip_local_bytes + entry.name.size();
    if (entry.offset > end || end - entry.offset < header || end - entry.offset - header < entry.packed_size) {
      fail_zip(str_cat("entry '", entry.name, "' reaches past its end"), entry.offset);
    }
    end = entry.offset;
  }
}

}  // namespace detail

struct ZipReader::Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
};

std::string ZipReader::read_at(std::uint64_t offset, std::uint64_t size) const {
  if (file_ == nullptr) throw_error(Status::failed_precondition("the ZIP reader was moved from"));
  std::string bytes(static_cast<std::size_t>(size), '\0');
  file_->read_exactly_at(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void ZipReader::fail_without_end(std::string_view what) const {
  const Status damage = detail::zip_damage(what, file_->size());
  const std::string start = read_at(0, std::min<std::uint64_t>(file_->size(), file_kind_bytes));
  throw_error(start.starts_with("PK") ? damage : with_kind_of_file(damage, start));
}

ZipReader::Directory ZipReader::find_directory() const {
  using namespace detail;
  const std::uint64_t size = file_->size();
  if (size < zip_end_bytes) fail_without_end("it is shorter than an empty one");
  const std::uint64_t tail_size = std::min<std::uint64_t>(size, zip_end_bytes + zip_more_16);
  const std::string tail = read_at(size - tail_size, tail_size);
  std::size_t found = tail.size() - zip_end_bytes;
  const auto is_end = [&](std::size_t at) {
    ByteReader in(std::string_view(tail).substr(at));
    if (in.u32() != zip_end_magic) return false;
    in.skip(zip_end_bytes - 6);
    return in.u16() == in.remaining();  // the comment's length
  };
  while (!is_end(found)) {
    if (found-- == 0) fail_without_end("its end is missing");
  }
  std::uint64_t end = size - tail_size + found;  // of the directory
  ByteReader in(std::string_view(tail).substr(found + 4));
  std::uint32_t disk = in.u16(), first_disk = in.u16();
  Directory directory;
  std::uint64_t here = in.u16();
  directory.count = in.u16();
  directory.size = in.u32();
  directory.offset = in.u32();

  if (end >= zip_locator_bytes + zip_end_64_bytes) {
    const std::string locator_bytes = read_at(end - zip_locator_bytes, zip_locator_bytes);
    ByteReader locator(locator_bytes);
    if (locator.u32() == zip_locator_magic) {
      locator.skip(4);
      const std::uint64_t at = locator.u64();
      if (at != end - zip_locator_bytes - zip_end_64_bytes) {
        fail_zip("its 64-bit end is not where it should be", end - zip_locator_bytes);
      }
      const std::string end_bytes = read_at(at, zip_end_64_bytes);
      ByteReader end_64(end_bytes);
      if (end_64.u32() != zip_end_64_magic || end_64.u64() != zip_end_64_bytes - 12) {
        fail_zip("its 64-bit end", at);
      }
      end_64.skip(4);  // versions
      disk = end_64.u32();
      first_disk = end_64.u32();
      here = end_64.u64();
      directory.count = end_64.u64();
      directory.size = end_64.u64();
      directory.offset = end_64.u64();
      end = at;
    }
  }
  if (disk != 0 || first_disk != 0) throw_error(Status::unimplemented("the ZIP archive is in several parts"));
  if (here != directory.count) fail_zip("the number of its entries", end);
  if (directory.offset > end || directory.size != end - directory.offset) {
    fail_zip("its directory is not at its end", end);
  }
  if (directory.count > directory.size / zip_entry_bytes) {
    fail_zip("its directory is too short for its entries", directory.offset);
  }
  return directory;
}

ZipReader::ZipReader(std::unique_ptr<RandomAccessFile> file) : file_(std::move(file)) {
  const Directory directory = find_directory();
  const std::string bytes = read_at(directory.offset, directory.size);
  ByteReader in(bytes);
  std::unordered_set<std::string_view> names;
  entries_.reserve(static_cast<std::size_t>(directory.count));
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const std::uint64_t at = directory.offset + in.position();
    entries_.push_back(detail::read_zip_entry(in, directory.offset));
    if (!names.insert(entries_.back().name).second) {
      detail::fail_zip(str_cat("entry '", entries_.back().name, "' stands twice"), at);
    }
  }
  if (!in.at_end()) detail::fail_zip("bytes follow the entries of its directory", directory.offset + in.position());
  detail::separate_zip_entries(entries_, directory.offset);
}

const ZipEntry* ZipReader::find(std::string_view name) const noexcept {
  const auto at =
      std::find_if(entries_.begin(), entries_.end(), [&](const ZipEntry& entry) { return entry.name == name; });
  return at == entries_.end() ? nullptr : &*at;
}

ZipContent ZipReader::open(const ZipEntry& entry) const {
  const auto bad = [&](std::string_view what) {
    detail::fail_zip(str_cat("entry '", entry.name, "' ", what), entry.offset);
  };
  const std::string bytes = read_at(entry.offset, detail::zip_local_bytes + entry.name.size());
  ByteReader in(bytes);
  if (in.u32() != detail::zip_local_magic) bad("has no header");
  in.skip(2);  // version
  const std::uint16_t flags = in.u16(), method = in.u16();
  in.skip(4);  // time and date
  const std::uint32_t crc = in.u32(), packed_size = in.u32(), size = in.u32();
  const std::uint16_t name_size = in.u16(), extra_size = in.u16();
  const std::string_view name = std::string_view(bytes).substr(detail::zip_local_bytes);
  if (name_size != entry.name.size() || name != entry.name || method != entry.method ||
      entry.is_encrypted != ((flags & detail::zip_encrypted_flag) != 0)) {
    bad("is described in two ways");
  }
  const auto differs = [](std::uint32_t own, std::uint64_t listed) {
    return own != detail::zip_more_32 && own != listed;
  };
  if ((flags & detail::zip_sizes_follow_flag) == 0 &&
      (crc != entry.crc || differs(packed_size, entry.packed_size) || differs(size, entry.size))) {
    bad("is described in two ways");
  }
  const std::uint64_t begin = entry.offset + bytes.size() + extra_size;
  if (begin > entry.end || entry.end - begin < entry.packed_size) bad("reaches past its end");
  if (detail::is_unreadable(entry)) {
    throw_error(Status::unimplemented(
        str_cat("entry '", entry.name, "' of the ZIP archive is ",
                entry.is_encrypted ? std::string("encrypted") : str_cat("packed in way ", entry.method))));
  }
  return {*file_, entry, begin};
}

ZipContent::ZipContent(const RandomAccessFile& file, const ZipEntry& entry, std::uint64_t begin)
    : file_(file), entry_(entry), at_(begin), left_(entry.packed_size) {
  if (entry.method == detail::zip_deflated) inflater_.emplace(CompressionFormat::raw);
}

void ZipContent::fail(std::string_view what, std::uint64_t offset) const {
  detail::fail_zip(str_cat("entry '", entry_.name, "' ", what), offset);
}

void ZipContent::refill() {
  constexpr std::uint64_t most = 1 << 16;
  chunk_.resize(static_cast<std::size_t>(std::min(left_, most)));
  if (!chunk_.empty()) file_.read_exactly_at(at_, chunk_);
  at_ += chunk_.size();
  left_ -= chunk_.size();
  packed_ = chunk_;
}

/// Unpacks into `into`, and fills it unless the stream ends before.
std::size_t ZipContent::unpack(std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size() && !is_unpacked_) {
    if (packed_.empty()) refill();
    const Inflater::Step step = inflater_->step(packed_, into.subspan(done));
    packed_ = packed_.subspan(step.taken);
    done += step.made;
    is_unpacked_ = step.is_end;
    if (!step.damage.empty()) fail(str_cat("is damaged: ", step.damage), at_ - packed_.size());
    if (step.is_stuck()) fail("is cut short", at_);
  }
  return done;
}

void ZipContent::read(std::span<std::byte> into) {
  if (into.size() > remaining()) fail(str_cat("has only ", entry_.size, " bytes"), entry_.offset);
  if (inflater_) {
    if (unpack(into) < into.size()) fail("holds less than it should", at_ - packed_.size());
  } else if (!into.empty()) {
    file_.read_exactly_at(at_, into);
    at_ += into.size();
    left_ -= into.size();
  }
  crc_ = crc32_extend(crc_, into);
  read_ += into.size();
}

void ZipContent::finish() {
  if (remaining() != 0) fail("holds more than is wanted", entry_.offset);
  if (inflater_) {
    std::array<std::byte, 1> probe{};
    if (unpack(probe) != 0) fail("holds more than it should", at_ - packed_.size());
    if (!packed_.empty() || left_ != 0) fail("has bytes behind its end", at_ - packed_.size());
  }
  if (crc_ != entry_.crc) {
    detail::fail_zip(str_cat("the checksum of entry '", entry_.name, "' is wrong"), entry_.offset);
  }
}

namespace detail {

/// Writes the part that an entry's header and its line in the directory share, from the version on.
void write_zip_numbers(ByteWriter& out, const ZipEntry& entry, bool is_64, std::uint16_t extra_size) {
  const bool is_ascii =
      std::all_of(entry.name.begin(), entry.name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  out.u16(is_64 ? zip_version_64 : zip_version);
  out.u16(is_ascii ? 0 : zip_utf8_flag);
  out.u16(entry.method);
  out.u16(0);  // midnight
  out.u16(zip_first_day);
  out.u32(entry.crc);
  out.u32(is_64 ? zip_more_32 : static_cast<std::uint32_t>(entry.packed_size));
  out.u32(is_64 ? zip_more_32 : static_cast<std::uint32_t>(entry.size));
  out.u16(static_cast<std::uint16_t>(entry.name.size()));
  out.u16(extra_size);
}

}  // namespace detail

void ZipWriter::add(std::string_view name, std::span<const std::span<const std::byte>> pieces) {
  if (name.empty() || name.size() > std::numeric_limits<std::uint16_t>::max()) {
    throw_error(Status::invalid_argument(str_cat("an entry of a ZIP archive with a name of ", name.size(), " bytes")));
  }
  if (!names_.emplace(name).second) {
    throw_error(Status::invalid_argument(str_cat("two entries of a ZIP archive are named '", name, "'")));
  }
  ZipEntry entry;
  entry.name = name;
  entry.method = options_.is_deflated ? detail::zip_deflated : detail::zip_stored;
  entry.offset = file_.size();
  for (const std::span<const std::byte> piece : pieces) {
    entry.crc = crc32_extend(entry.crc, piece);
    entry.size += piece.size();
  }
  const std::string packed = options_.is_deflated ? deflated(pieces, CompressionFormat::raw) : std::string();
  entry.packed_size = options_.is_deflated ? packed.size() : entry.size;

  const bool is_64 = options_.always_64_bit || std::max(entry.size, entry.packed_size) >= detail::zip_more_32;
  std::string header;
  ByteWriter out(header);
  out.u32(detail::zip_local_magic);
  detail::write_zip_numbers(out, entry, is_64, is_64 ? 20 : 0);
  header += name;
  if (is_64) {
    out.u16(detail::zip_64_field);
    out.u16(16);
    out.u64(entry.size);
    out.u64(entry.packed_size);
  }
  file_.append(header);
  if (options_.is_deflated) {
    file_.append(packed);
  } else {
    for (const std::span<const std::byte> piece : pieces) file_.append(piece);
  }
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  using namespace detail;
  const std::uint64_t begin = file_.size();
  std::string bytes;
  ByteWriter out(bytes);
  for (const ZipEntry& entry : entries_) {
    const bool is_64 = options_.always_64_bit || std::max({entry.size, entry.packed_size, entry.offset}) >= zip_more_32;
    out.u32(zip_entry_magic);
    out.u16(zip_version_64);  // made by
    write_zip_numbers(out, entry, is_64, is_64 ? 28 : 0);
    out.u16(0);                             // no comment
    out.u16(0);                             // the first and only part
    out.u16(0);                             // its content is no text
    out.u32(std::uint32_t{0100644} << 16);  // a file that its owner may write, as Unix says it
    out.u32(is_64 ? zip_more_32 : static_cast<std::uint32_t>(entry.offset));
    bytes += entry.name;
    if (!is_64) continue;
    out.u16(zip_64_field);
    out.u16(24);
    out.u64(entry.size);
    out.u64(entry.packed_size);
    out.u64(entry.offset);
  }
  const std::uint64_t size = bytes.size(), count = entries_.size();
  const bool is_64 = options_.always_64_bit || begin >= zip_more_32 || size >= zip_more_32 || count >= zip_more_16;
  if (is_64) {
    out.u32(zip_end_64_magic);
    out.u64(zip_end_64_bytes - 12);
    out.u16(zip_version_64);
    out.u16(zip_version_64);
    out.u32(0);
    out.u32(0);
    for (const std::uint64_t number : {count, count, size, begin}) out.u64(number);
    out.u32(zip_locator_magic);
    out.u32(0);
    out.u64(begin + size);
    out.u32(1);
  }
  out.u32(zip_end_magic);
  out.u32(0);  // parts
  for (int i = 0; i < 2; ++i) out.u16(is_64 ? zip_more_16 : static_cast<std::uint16_t>(count));
  out.u32(is_64 ? zip_more_32 : static_cast<std::uint32_t>(size));
  out.u32(is_64 ? zip_more_32 : static_cast<std::uint32_t>(begin));
  out.u16(0);  // no comment
  file_.append(bytes);
}

}  // namespace dflow
