#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/graph/graph_def_json.hpp>
#include <dflow/graph/saved_attr.hpp>

#include <cereal/cereal.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace dflow::detail {

/// A cereal archive over a ByteWriter: fixed numbers little-endian, sizes as varints.
class GraphDefWriter : public cereal::OutputArchive<GraphDefWriter, cereal::AllowEmptyClassElision> {
 public:
  explicit GraphDefWriter(std::string& out) : OutputArchive(this), writer(out) {}
  ByteWriter writer;
  ShapeAllowance shapes;
  bool has_functions = false;  ///< the version has
};

/// A cereal archive over a ByteReader: a size is believed only if as many bytes remain.
class GraphDefReader : public cereal::InputArchive<GraphDefReader, cereal::AllowEmptyClassElision> {
 public:
  explicit GraphDefReader(std::span<const std::byte> bytes)
      : InputArchive(this), reader(bytes), memory_left_(GraphDef::memory_for(bytes.size())) {}

  /// Before an item of a list is kept, which may take a byte here and a hundred in memory.
  void take_memory(std::uint64_t bytes) {
    if (bytes > memory_left_)
      throw_error(Status::out_of_range("the saved graph lists far more than it says of what it lists"));
    memory_left_ -= bytes;
  }

  ByteReader reader;
  ShapeAllowance shapes;
  bool has_functions = false;  ///< the version has

 private:
  std::uint64_t memory_left_;
};

// ---- parts of both directions of the binary form; cereal finds them by the archive's namespace ----

template <class T>
  requires std::is_arithmetic_v<T>
void save(GraphDefWriter& archive, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    archive.writer.boolean(value);
  } else {
    archive.writer.fixed(value);
  }
}
template <class T>
  requires std::is_arithmetic_v<T>
void load(GraphDefReader& archive, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = archive.reader.boolean();
  } else {
    value = archive.reader.fixed<T>();
  }
}

template <class T>
void save(GraphDefWriter& archive, const cereal::SizeTag<T>& tag) {
  archive.writer.count(static_cast<std::size_t>(tag.size));
}
template <class T>
void load(GraphDefReader& archive, cereal::SizeTag<T>& tag) {
  tag.size = archive.reader.count(1);
}

inline void save(GraphDefWriter& archive, const std::string& text) { archive.writer.string(text); }
inline void load(GraphDefReader& archive, std::string& text) { text = archive.reader.string(); }

/// A list grows as its items arrive, so that a count without items allocates nothing.
template <class T>
void save(GraphDefWriter& archive, const std::vector<T>& items) {
  archive(cereal::make_size_tag(static_cast<cereal::size_type>(items.size())));
  for (const auto& item : items) archive(static_cast<const T&>(item));
}
template <class T>
void load(GraphDefReader& archive, std::vector<T>& items) {
  cereal::size_type size = 0;
  archive(cereal::make_size_tag(size));
  for (; size > 0; --size) {
    T item{};
    archive.take_memory(sizeof(T));
    archive(item);
    items.push_back(std::move(item));
  }
}

template <class A, class B>
void save(GraphDefWriter& archive, const std::pair<A, B>& pair) {
  archive(pair.first, pair.second);
}
template <class A, class B>
void load(GraphDefReader& archive, std::pair<A, B>& pair) {
  archive(pair.first, pair.second);
}

/// An element type as cereal sees it: it has an opinion of its own about enumerations.
struct SavedDType {
  DType value = DType::invalid;
};
inline void save(GraphDefWriter& archive, const SavedDType& dtype) {
  archive.writer.u8(static_cast<std::uint8_t>(dtype.value));
}
inline void load(GraphDefReader& archive, SavedDType& dtype) {
  const std::uint8_t number = archive.reader.u8();
  if (number != 0 && !dtype_from_number(number)) throw_error(Status::data_loss(str_cat(number, " is no element type")));
  dtype.value = static_cast<DType>(number);
}

inline std::vector<SavedDType> to_saved(const std::vector<DType>& dtypes) {
  std::vector<SavedDType> saved;
  saved.reserve(dtypes.size());
  for (const DType dtype : dtypes) saved.push_back({dtype});
  return saved;
}

inline void save(GraphDefWriter& archive, const PartialShape& shape) {
  archive.writer.signed_varint(shape.rank());
  for (const std::int64_t dim : shape.dims()) archive.writer.signed_varint(dim);
}

template <class ShapeType>
ShapeType read_dims(GraphDefReader& archive, std::int64_t rank) {
  if (rank < 0 || rank > max_rank) throw_error(Status::data_loss(str_cat("a shape of rank ", rank)));
  std::array<std::int64_t, max_rank> dims{};
  for (std::int64_t i = 0; i < rank; ++i) dims[static_cast<std::size_t>(i)] = archive.reader.signed_varint();
  try {
    return ShapeType(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
  } catch (const Error& error) {
    throw_error(Status::data_loss(std::string(error.status().message())));
  }
}

inline void load(GraphDefReader& archive, PartialShape& shape) {
  const std::int64_t rank = archive.reader.signed_varint();
  shape = rank == -1 ? PartialShape::unknown() : read_dims<PartialShape>(archive, rank);
}

inline void save(GraphDefWriter& archive, const std::vector<PartialShape>& shapes) {
  archive.shapes.take(shapes.size());
  archive.writer.count(shapes.size());
  for (const PartialShape& shape : shapes) archive(shape);
}
inline void load(GraphDefReader& archive, std::vector<PartialShape>& shapes) {
  const std::size_t count = archive.reader.count(1);
  archive.shapes.take(count);
  shapes.resize(count);
  for (PartialShape& shape : shapes) archive(shape);
}

inline void save(GraphDefWriter& archive, const FunctionName& function) { archive(function.name); }
inline void load(GraphDefReader& archive, FunctionName& function) { archive(function.name); }

inline void save(GraphDefWriter& archive, const AnyTensor& tensor) {
  require_savable(tensor);
  archive(SavedDType{tensor.dtype()});
  if (!tensor.is_initialized()) return;
  archive(PartialShape(tensor.shape()));
  if (tensor.dtype() != DType::string) return archive.writer.blob(bytes_of(tensor));
  for (const std::string& text : tensor.span<std::string>()) archive(text);
}

inline void load(GraphDefReader& archive, AnyTensor& tensor) {
  SavedDType dtype;
  archive(dtype);
  if (dtype.value == DType::invalid) return tensor.reset();
  if (!is_element(dtype.value)) throw_error(Status::data_loss(str_cat("a tensor of ", dtype_name(dtype.value))));
  const auto shape = read_dims<Shape>(archive, archive.reader.signed_varint());
  if (dtype.value != DType::string) {
    tensor = tensor_of_bytes(dtype.value, shape, archive.reader.blob(), Code::data_loss);
    return;
  }
  if (static_cast<std::uint64_t>(shape.num_elements()) > archive.reader.remaining()) {
    throw_error(Status::data_loss(str_cat("input ends early: ", shape.num_elements(), " strings announced, ",
                                          archive.reader.remaining(), " bytes left")));
  }
  tensor = AnyTensor(DType::string, shape);
  for (std::string& text : tensor.span<std::string>()) archive(text);
}

inline void save(GraphDefWriter& archive, const AttrValue& value) {
  archive(static_cast<std::uint8_t>(value.index()));
  std::visit(
      [&archive]<class T>(const T& held) {
        if constexpr (std::is_same_v<T, DType>) {
          archive(SavedDType{held});
        } else if constexpr (std::is_same_v<T, std::vector<DType>>) {
          archive(to_saved(held));
        } else if constexpr (!std::is_same_v<T, std::monostate>) {
          archive(held);
        }
      },
      value);
}

inline void load(GraphDefReader& archive, AttrValue& value) {
  std::uint8_t index = 0;
  archive(index);
  constexpr std::size_t count = std::variant_size_v<AttrValue>;
  if (index >= count) throw_error(Status::data_loss(str_cat(index, " is no kind of attribute")));
  const auto read = [&]<class T>() {
    if constexpr (std::is_same_v<T, DType>) {
      SavedDType dtype;
      archive(dtype);
      value = dtype.value;
    } else if constexpr (std::is_same_v<T, std::vector<DType>>) {
      std::vector<SavedDType> saved;
      archive(saved);
      auto& dtypes = value.emplace<T>();
      for (const SavedDType dtype : saved) dtypes.push_back(dtype.value);
    } else if constexpr (!std::is_same_v<T, std::monostate>) {
      archive(value.emplace<T>());
    } else {
      value = std::monostate();
    }
  };
  with_attr_type(index, read, std::make_index_sequence<count>{});
}

inline void save(GraphDefWriter& archive, const NodeDef& node) {
  archive(node.name, node.op, node.device);
  archive.writer.count(node.types.size());
  for (const auto& [param, dtype] : node.types) archive(param, SavedDType{dtype});
  archive(node.inputs, node.attrs, node.colocated_with, node.file);
  archive.writer.varint(node.line);
  if (archive.has_functions) archive(node.function);
}
inline void load(GraphDefReader& archive, NodeDef& node) {
  archive(node.name, node.op, node.device);
  for (std::size_t count = archive.reader.count(2); count > 0; --count) {
    std::string param;
    SavedDType dtype;
    archive.take_memory(sizeof(node.types.front()));
    archive(param, dtype);
    node.types.emplace_back(std::move(param), dtype.value);
  }
  archive(node.inputs, node.attrs, node.colocated_with, node.file);
  const std::uint64_t line = archive.reader.varint();
  if (line > std::numeric_limits<std::uint32_t>::max())
    throw_error(Status::data_loss("a line number of more than 32 bits"));
  node.line = static_cast<std::uint32_t>(line);
  if (archive.has_functions) archive(node.function);
}

inline constexpr std::string_view graph_magic{"dfGRAPH\n", 8};

}  // namespace dflow::detail

CEREAL_SETUP_ARCHIVE_TRAITS(dflow::detail::GraphDefReader, dflow::detail::GraphDefWriter)

namespace dflow {

std::string to_binary(const GraphDef& def) {
  std::string out(detail::graph_magic);
  detail::GraphDefWriter archive(out);
  archive.writer.u32(0);  // the checksum of the bytes that follow
  const std::uint32_t version = written_version(def);
  archive.has_functions = version >= GraphDef::functions_version;
  archive(version, def.seed, def.nodes, def.collections);
  const std::size_t body = detail::graph_magic.size() + sizeof(std::uint32_t);
  archive.writer.patch_u32(detail::graph_magic.size(), mask_crc32c(crc32c(std::string_view(out).substr(body))));
  return out;
}

GraphDef from_binary(std::span<const std::byte> bytes) {
  detail::GraphDefReader archive(bytes);
  const std::span<const std::byte> magic = archive.reader.bytes(std::min(bytes.size(), detail::graph_magic.size()));
  if (!std::equal(magic.begin(), magic.end(), std::as_bytes(std::span(detail::graph_magic)).begin())) {
    throw_error(Status::invalid_argument("these bytes are no saved graph"));
  }
  const std::uint32_t checksum = archive.reader.u32();
  const std::uint32_t computed = mask_crc32c(crc32c(bytes.subspan(archive.reader.position())));
  if (checksum != computed) throw_error(Status::data_loss("the saved graph is damaged: its checksum does not match"));
  GraphDef def;
  archive(def.version);
  if (def.version == 0 || def.version > GraphDef::current_version) {
    throw_error(Status::invalid_argument(str_cat("the saved graph has version ", def.version,
                                                 "; this library reads versions 1 to ", GraphDef::current_version)));
  }
  archive.has_functions = def.version >= GraphDef::functions_version;
  archive(def.seed, def.nodes, def.collections);
  archive.reader.expect_end();
  return def;
}

// ---- files ----

void save_graph(FileSystem& files, const std::string& path, const GraphDef& def) {
  files.write_file_atomically(path, std::string_view(path.ends_with(".json") ? to_json(def) : to_binary(def)));
}

GraphDef from_binary(std::string_view bytes) {
  return from_binary(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

GraphDef load_graph(FileSystem& files, const std::string& path) {
  const std::string content = read_regular_file(files, path);
  try {
    return path.ends_with(".json") ? from_json(content) : from_binary(content);
  } catch (const Error& error) {
    throw_error(with_kind_of_file(error.status(), content).with_prefix(str_cat(path, ": ")));
  }
}

}  // namespace dflow
