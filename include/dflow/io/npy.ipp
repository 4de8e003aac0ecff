#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/permuted.hpp>
#include <dflow/io/npy.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

namespace detail {

inline constexpr std::string_view npy_magic = "\x93NUMPY";
static_assert(npy_magic.size() == npy_magic_bytes);
/// The most bytes of the header's text. NumPy itself writes less than 200 bytes for the types read here, and refuses
/// 10,000.
inline constexpr std::uint32_t npy_max_header = 1 << 16;
inline constexpr std::size_t npy_alignment = 64;

struct NpyType {
  char kind;
  std::uint8_t width;  ///< bytes of an element
  DType dtype;
};
inline constexpr std::array<NpyType, 14> npy_types{{{'b', 1, DType::boolean},
                                                    {'i', 1, DType::int8},
                                                    {'i', 2, DType::int16},
                                                    {'i', 4, DType::int32},
                                                    {'i', 8, DType::int64},
                                                    {'u', 1, DType::uint8},
                                                    {'u', 2, DType::uint16},
                                                    {'u', 4, DType::uint32},
                                                    {'u', 8, DType::uint64},
                                                    {'f', 2, DType::float16},
                                                    {'f', 4, DType::float32},
                                                    {'f', 8, DType::float64},
                                                    {'c', 8, DType::complex64},
                                                    {'c', 16, DType::complex128}}};

struct NpyHeader {
  char kind = 0;            ///< NumPy's letter
  std::uint64_t width = 0;  ///< bytes of an element in the file
  DType dtype = DType::invalid;
  bool is_big_endian = false;
  bool is_fortran_order = false;
  Shape shape;
};

/// The header's text: a dictionary as Python would print it, of three entries. Only that is understood.
class NpyHeaderText {
 public:
  NpyHeaderText(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

  NpyHeader parse() {
    constexpr std::array<std::string_view, 3> keys{"descr", "fortran_order", "shape"};
    std::array<bool, 3> is_seen{};
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      const auto at = static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
      if (at == keys.size() || is_seen[at]) fail(at == keys.size() ? "an unknown key" : "a key twice");
      is_seen[at] = true;
      expect(':');
      if (at == 0) read_descr();
      if (at == 1) header_.is_fortran_order = boolean();
      if (at == 2) read_shape();
      if (!accept(',') && peek() != '}') fail("no ',' and no '}'");
    }
    if (!(is_seen[0] && is_seen[1] && is_seen[2])) fail("an entry is missing");
    if (peek() != 0 || at_ != text_.size()) fail("something after the dictionary");
    return header_;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw_error(Status::data_loss(str_cat("the header of the npy file: ", what, " at offset ", offset_ + at_)));
  }
  /// The next character that is no space; 0 at the end.
  char peek() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(str_cat("no '", wanted, "'"));
  }
  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("no text");
    const std::size_t begin = ++at_;
    const std::size_t end = text_.find_first_of("'\"\\\n", begin);
    if (end == std::string_view::npos || text_[end] != quote) fail("a text that does not end");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  bool boolean() {
    peek();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    fail("neither True nor False");
  }
  std::optional<std::uint64_t> number() {
    peek();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument) return std::nullopt;
    if (error != std::errc()) fail("a number that is too large");
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 prints a long one
    return value;
  }

  void read_descr() {
    if (peek() == '[' || peek() == '(')
      throw_error(Status::unimplemented("the npy file holds records, which are not read"));
    const std::string_view descr = string();
    const auto refuse = [&] {
      throw_error(Status::unimplemented(str_cat("the npy file's elements are '", descr.substr(0, 40),
                                                "' in NumPy's terms, a type that is not read")));
    };
    std::string_view rest = descr;
    if (!rest.empty() && std::string_view("<>|=").find(rest[0]) != std::string_view::npos) {
      header_.is_big_endian = rest[0] == '>';
      rest.remove_prefix(1);
    }
    if (rest.empty()) fail("an empty element type");
    header_.kind = rest[0] == '?' ? 'b' : rest[0];
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), header_.width);
    if (rest == "?") {
      header_.width = 1;
    } else if (error != std::errc() || end != rest.data() + rest.size()) {
      refuse();
    }
    if (header_.kind == 'S' || header_.kind == 'U') {
      header_.dtype = DType::string;
      const std::uint64_t unit = header_.kind == 'U' ? 4 : 1;
      if (header_.width == 0 || header_.width > std::uint64_t{1} << 32) refuse();
      header_.width *= unit;
      return;
    }
    const auto type = std::find_if(npy_types.begin(), npy_types.end(), [&](const NpyType& candidate) {
      return candidate.kind == header_.kind && candidate.width == header_.width;
    });
    if (type == npy_types.end()) refuse();
    header_.dtype = type->dtype;
  }

  void read_shape() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      const std::optional<std::uint64_t> extent = number();
      if (!extent || *extent > std::uint64_t{0x7fffffffffffffff}) fail("no extent");
      extents.push_back(static_cast<std::int64_t>(*extent));
      // Python's "(3)" is a number and no tuple.
      if (!accept(',') && (peek() != ')' || extents.size() == 1)) fail("no ','");
    }
    if (extents.size() > static_cast<std::size_t>(max_rank)) {
      throw_error(Status::unimplemented(
          str_cat("the npy file has ", extents.size(), " dimensions, more than the ", max_rank, " of a tensor")));
    }
    if (!try_product(extents)) fail("extents that multiply past 2^63");
    header_.shape = Shape(std::span<const std::int64_t>(extents));
  }

  std::string_view text_;
  std::size_t offset_;  ///< of the text in the file
  std::size_t at_ = 0;
  NpyHeader header_;
};

/// Reverses the bytes of each of `count` numbers of `size` bytes.
void reverse_each(std::span<std::byte> bytes, std::size_t size) {
  if (size < 2) return;
  for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
  }
}

Shape reversed(const Shape& shape) {
  std::vector<std::int64_t> extents(shape.begin(), shape.end());
  std::reverse(extents.begin(), extents.end());
  return Shape(std::span<const std::int64_t>(extents));
}

/// With the order of the indices reversed: the transpose.
AnyTensor transposed(const AnyTensor& tensor) {
  if (tensor.rank() < 2 || tensor.num_elements() == 0) return tensor.reshaped(reversed(tensor.shape()));
  std::array<int, max_rank> axes{};
  for (int i = 0; i < tensor.rank(); ++i) axes[static_cast<std::size_t>(i)] = tensor.rank() - 1 - i;
  return permuted(tensor, std::span(axes).first(static_cast<std::size_t>(tensor.rank())));
}

Status npy_damage(std::string_view what, std::uint64_t offset) {
  return Status::data_loss(str_cat(what, ", at offset ", offset));
}
[[noreturn]] void fail_npy(std::string_view what, std::uint64_t offset) { throw_error(npy_damage(what, offset)); }

/// Code points of four bytes each, without the zeros at their end, as UTF-8 (RFC 3629). Errors: DataLoss; `offset` is
/// the offset of the first code point.
std::string utf8_of(std::span<const std::byte> utf32, std::uint64_t offset) {
  std::string text;
  std::size_t end = 0;
  for (std::size_t i = 0; i < utf32.size(); i += 4) {
    std::uint32_t point = 0;
    std::memcpy(&point, utf32.data() + i, sizeof(point));
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
      fail_npy("a text of the npy file holds what is no character", offset + i);
    }
    if (point < 0x80) {
      text += static_cast<char>(point);
    } else {
      const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
      constexpr std::array<std::uint32_t, 4> marks{0, 0xc0, 0xe0, 0xf0};
      text += static_cast<char>(marks[static_cast<std::size_t>(more)] | point >> (6 * more));
      for (int k = more - 1; k >= 0; --k) text += static_cast<char>(0x80 | (point >> (6 * k) & 0x3f));
    }
    if (point != 0) end = text.size();
  }
  text.resize(end);
  return text;
}

void read_npy_strings(const NpyHeader& header, FunctionRef<void(std::span<std::byte>)> read,
                      std::span<std::string> into, std::uint64_t offset) {
  if (into.empty()) return;  // and the width is anything
  std::vector<std::byte> element(static_cast<std::size_t>(header.width));
  for (std::string& text : into) {
    read(element);
    if (header.kind == 'U') {
      if (header.is_big_endian) reverse_each(element, 4);
      text = utf8_of(element, offset);
    } else {
      text.assign(reinterpret_cast<const char*>(element.data()), element.size());
      text.resize(text.find_last_not_of('\0') + 1);
    }
    offset += element.size();
  }
}

bool is_npy(std::string_view start) noexcept { return start.starts_with(npy_magic); }

/// The header of a stream of `left` bytes; subtracts the header's bytes from `left`.
NpyHeader read_npy_header(std::uint64_t& left, FunctionRef<void(std::span<std::byte>)> read) {
  const std::uint64_t whole = left;
  const auto next = [&](std::size_t size) {
    std::string bytes(size, '\0');
    if (size > left) {
      fail_npy(str_cat("the npy file ends early: ", size, " bytes of its header are due and ", left, " are there"),
               whole - left);
    }
    read(std::as_writable_bytes(std::span(bytes)));
    left -= size;
    return bytes;
  };
  const std::string start = next(npy_magic.size() + 2);
  if (!is_npy(start)) {
    const std::string more = next(static_cast<std::size_t>(std::min<std::uint64_t>(left, file_kind_bytes)));
    throw_error(with_kind_of_file(npy_damage("not an npy file: the magic number is wrong", 0), start + more));
  }
  const auto major = static_cast<unsigned char>(start[6]), minor = static_cast<unsigned char>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw_error(
        Status::unimplemented(str_cat("the npy file is of version ", major, ".", minor, ", not of 1.0, 2.0 or 3.0")));
  }
  const std::string length_bytes = next(major == 1 ? 2 : 4);
  ByteReader in(length_bytes);
  const std::uint32_t length = major == 1 ? in.u16() : in.u32();
  if (length > npy_max_header) {
    fail_npy(str_cat("the header of the npy file would have ", length, " bytes"), start.size());
  }
  return NpyHeaderText(next(length), start.size() + length_bytes.size()).parse();
}

/// The same; errors also: DataLoss unless the elements take the rest of the `left` bytes.
NpyHeader read_checked_npy_header(std::uint64_t& left, FunctionRef<void(std::span<std::byte>)> read) {
  const std::uint64_t size = left;
  NpyHeader header = read_npy_header(left, read);
  const auto count = static_cast<std::uint64_t>(header.shape.num_elements());
  const std::optional<std::uint64_t> total = try_mul(count, header.width);
  if (!total || *total != left) {
    fail_npy(str_cat("the npy file declares ", count, " elements of ", header.width, " bytes and holds ", left,
                     " bytes of them"),
             size - left);
  }
  return header;
}

NpyDescription describe_npy_stream(std::uint64_t size, FunctionRef<void(std::span<std::byte>)> read) {
  const NpyHeader header = read_checked_npy_header(size, read);
  return {header.dtype, header.shape};
}

AnyTensor read_npy_stream(std::uint64_t size, FunctionRef<void(std::span<std::byte>)> read) {
  std::uint64_t left = size;
  const NpyHeader header = read_checked_npy_header(left, read);
  AnyTensor tensor(header.dtype, header.is_fortran_order ? reversed(header.shape) : header.shape);
  if (header.dtype == DType::string) {
    read_npy_strings(header, read, tensor.span<std::string>(), size - left);
  } else {
    const std::span<std::byte> bytes(static_cast<std::byte*>(tensor.raw_data()), tensor.bytes());
    if (!bytes.empty()) read(bytes);
    if (header.is_big_endian) {
      reverse_each(bytes, static_cast<std::size_t>(header.width) / (is_complex(header.dtype) ? 2 : 1));
    }
    if (header.dtype == DType::boolean) {
      const std::size_t wrong = first_no_truth_value(bytes);
      if (wrong < bytes.size()) fail_npy("a truth value of the npy file is neither 0 nor 1", size - left + wrong);
    }
  }
  return header.is_fortran_order ? transposed(tensor) : tensor;
}

/// Strings side by side, each padded to `width` bytes.
std::string npy_text(std::span<const std::string> strings, std::size_t width) {
  const std::optional<std::size_t> total = try_mul(strings.size(), width);
  if (!total || *total > FileSystem::default_max_bytes) {
    throw_error(
        Status::resource_exhausted(str_cat("an npy file of ", strings.size(), " strings of ", width, " bytes each")));
  }
  std::string text(*total, '\0');
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].ends_with('\0')) {
      throw_error(Status::invalid_argument("NumPy would cut off the zero byte at the end of a string"));
    }
    std::copy(strings[i].begin(), strings[i].end(), text.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  return text;
}

std::string npy_header(const AnyTensor& tensor, std::string_view descr, const NpyOptions& options) {
  std::string shape;
  for (const std::int64_t extent : tensor.shape()) shape += str_cat(shape.empty() ? "" : ", ", extent);
  if (tensor.rank() == 1) shape += ',';
  std::string text = str_cat("{'descr': '", descr, "', 'fortran_order': ", options.is_fortran_order ? "True" : "False",
                             ", 'shape': (", shape, "), }");
  const std::size_t start = npy_magic.size() + 2 + (options.version == 1 ? 2 : 4);
  const std::size_t over = (start + text.size() + 1) % npy_alignment;
  if (over != 0) text.append(npy_alignment - over, ' ');
  text += '\n';

  std::string header(npy_magic);
  ByteWriter out(header);
  out.u8(static_cast<std::uint8_t>(options.version));
  out.u8(0);
  if (options.version == 1) {
    out.u16(static_cast<std::uint16_t>(text.size()));
  } else {
    out.u32(static_cast<std::uint32_t>(text.size()));
  }
  return header + text;
}

std::span<const std::byte> NpyParts::elements() const noexcept {
  if (tensor.dtype() == DType::string) return std::as_bytes(std::span(text));
  return {static_cast<const std::byte*>(tensor.raw_data()), tensor.bytes()};
}

NpyParts npy_parts(const AnyTensor& tensor, const NpyOptions& options) {
  if (options.version < 1 || options.version > 3) {
    throw_error(Status::invalid_argument(str_cat("there is no version ", options.version, " of npy files")));
  }
  const auto type = std::find_if(npy_types.begin(), npy_types.end(),
                                 [&](const NpyType& candidate) { return candidate.dtype == tensor.dtype(); });
  if (type == npy_types.end() && tensor.dtype() != DType::string) {
    throw_error(Status::invalid_argument(str_cat("NumPy has no element type ", dtype_name(tensor.dtype()))));
  }
  NpyParts parts;
  parts.tensor = options.is_fortran_order ? transposed(tensor) : tensor;
  if (tensor.dtype() == DType::string) {
    const std::span<const std::string> strings = std::as_const(parts.tensor).span<std::string>();
    std::size_t width = 1;
    for (const std::string& text : strings) width = std::max(width, text.size());
    parts.text = npy_text(strings, width);
    parts.header = npy_header(tensor, str_cat("|S", width), options);
    return parts;
  }
  if (options.is_big_endian && type->width > 1) {
    parts.tensor = parts.tensor.deep_copy();
    reverse_each({static_cast<std::byte*>(parts.tensor.raw_data()), parts.tensor.bytes()},
                 type->width / (is_complex(type->dtype) ? 2u : 1u));
  }
  const char order = type->width == 1 ? '|' : options.is_big_endian ? '>' : '<';
  parts.header = npy_header(tensor, str_cat(order, type->kind, type->width), options);
  return parts;
}

}  // namespace detail

AnyTensor parse_npy(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  return detail::read_npy_stream(bytes.size(), [&](std::span<std::byte> into) {
    const std::span<const std::byte> next = in.bytes(into.size());
    std::copy(next.begin(), next.end(), into.begin());
  });
}

AnyTensor read_npy(FileSystem& files, const std::string& path) {
  const std::unique_ptr<RandomAccessFile> file = files.open_for_reading(path);
  std::uint64_t at = 0;
  try {
    return detail::read_npy_stream(file->size(), [&](std::span<std::byte> into) {
      file->read_exactly_at(at, into);
      at += into.size();
    });
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat(path, ": ")));
  }
}

std::string to_npy(const AnyTensor& tensor, const NpyOptions& options) {
  const detail::NpyParts parts = detail::npy_parts(tensor, options);
  const std::span<const std::byte> elements = parts.elements();
  return parts.header + std::string(reinterpret_cast<const char*>(elements.data()), elements.size());
}

void write_npy(FileSystem& files, const std::string& path, const AnyTensor& tensor, const NpyOptions& options) {
  const detail::NpyParts parts = detail::npy_parts(tensor, options);
  AtomicFile file(files, path);
  file.append(parts.header);
  file.append(parts.elements());
  file.finish();
}

}  // namespace dflow
