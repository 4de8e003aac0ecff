#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/constant.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

namespace dflow {

// The ops of lookup tables, which map keys to values: tensors of one shape.

using TableKeyTypes = TypeList<std::int32_t, std::int64_t, std::string>;

struct LookupTableAttrs {
  DType key_dtype = DType::invalid;
  DType value_dtype = DType::invalid;
  PartialShape value_shape = PartialShape(Shape{});  ///< of one key's value, known
  std::string container = {};
  std::string shared_name = {};  ///< the resource's name; if empty, the node's name
};

/// A table that steps put values into; gives a handle.
struct MutableHashTableOp : StatefulOp<"MutableHashTable"> {
  using Attrs = LookupTableAttrs;
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// A table that is filled once, and has no value before; gives a handle.
struct HashTableOp : StatefulOp<"HashTable"> {
  using Attrs = LookupTableAttrs;
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// The values of keys, and `default_value` for keys that the table does not have: handle, keys [k...], default_value
/// [value_shape] -> [k..., value_shape]. Errors: FailedPrecondition for a HashTable that has not been filled.
struct LookupTableFind : StatefulOp<"LookupTableFind", TableKeyTypes, AllTypes> {
  static constexpr std::array<std::string_view, 2> type_names{"Tin", "Tout"};
  using Inputs = In<ResourceHandle, T, U>;
  using Outputs = Out<U>;
  static void infer(InferContext& context);
};

/// Gives keys values: handle, keys [k...], values [k..., value_shape]. If a key occurs twice, its last value counts.
/// Errors: Unimplemented for a HashTable.
struct LookupTableInsert : StatefulOp<"LookupTableInsert", TableKeyTypes, AllTypes> {
  static constexpr std::array<std::string_view, 2> type_names{"Tin", "Tout"};
  using Inputs = In<ResourceHandle, T, U>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Removes the keys that the table has: handle, keys [k...]. Errors: Unimplemented for a HashTable.
struct LookupTableRemove : StatefulOp<"LookupTableRemove", TableKeyTypes> {
  static constexpr std::array<std::string_view, 1> type_names{"Tin"};
  using Inputs = In<ResourceHandle, T>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The number of keys.
struct LookupTableSize : StatefulOp<"LookupTableSize"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// All keys and values: handle -> keys [n], values [n, value_shape], in the keys' order of arrival. When a key is
/// removed, the last key takes its place. Errors: as of LookupTableFind.
struct LookupTableExport : StatefulOp<"LookupTableExport", TableKeyTypes, AllTypes> {
  struct Attrs {
    PartialShape value_shape = PartialShape::unknown();  ///< as far as the program knows it
  };
  static constexpr std::array<std::string_view, 2> type_names{"Tkeys", "Tvalues"};
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<T, U>;
  static void infer(InferContext& context);
};

/// Replaces all keys and values of the table: handle, keys [k...], values [k..., value_shape]. For a HashTable it is
/// InitializeTable.
struct LookupTableImport : StatefulOp<"LookupTableImport", TableKeyTypes, AllTypes> {
  static constexpr std::array<std::string_view, 2> type_names{"Tin", "Tout"};
  using Inputs = In<ResourceHandle, T, U>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Fills a HashTable: handle, keys [n], values [n, value_shape]. Filling it again with the same values does nothing.
/// Errors: FailedPrecondition for a key with two values, or a table that has been filled with other values.
struct InitializeTable : StatefulOp<"InitializeTable", TableKeyTypes, AllTypes> {
  static constexpr std::array<std::string_view, 2> type_names{"Tkey", "Tval"};
  using Inputs = In<ResourceHandle, T, U>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The same from the lines of a file of the device: handle, filename []. A key or value is a column, counted from 0,
/// the whole line (-2, string), or the line's number, counted from 0, plus `offset` (-1, int64). Errors: NotFound;
/// InvalidArgument naming file and line; OutOfRange for a file without lines.
struct InitializeTableFromTextFile : StatefulOp<"InitializeTableFromTextFile"> {
  static constexpr std::int64_t whole_line = -2;
  static constexpr std::int64_t line_number = -1;

  struct Attrs {
    std::int64_t key_index = whole_line;
    std::int64_t value_index = line_number;
    std::int64_t vocab_size = -1;  ///< the number of lines to read; -1: all
    std::string delimiter = "\t";  ///< of columns, one character
    std::int64_t offset = 0;
  };
  using Inputs = In<ResourceHandle, std::string>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

struct LookupTableOptions {
  /// The shape of one key's value.
  Shape value_shape = {};
  std::string_view name = {};
  /// The container of the device.
  std::string_view container = {};
  /// Tables with the same shared name on one device are one table, across sessions.
  std::string_view shared_name = {};
};

namespace detail {

/// A lookup table with element types that are known at run time only.
class AnyLookupTable {
 public:
  AnyLookupTable() = default;
  AnyLookupTable(GraphStore& graph, bool is_mutable, DType key, DType value, const LookupTableOptions& options,
                 const At& at);

  const AnyOutput& handle() const noexcept { return handle_; }
  AnyOutput find(const AnyOutput& keys, const AnyOutput& default_value, const At& at) const;
  Operation insert(const AnyOutput& keys, const AnyOutput& values, const At& at) const;
  Operation remove(const AnyOutput& keys, const At& at) const;
  AnyOutput size(const At& at) const;
  BuiltNode export_all(const At& at) const;
  Operation import_all(const AnyOutput& keys, const AnyOutput& values, const At& at) const;
  Operation initialize(const AnyOutput& keys, const AnyOutput& values, const At& at) const;
  Operation initialize_from_text_file(const AnyOutput& filename, InitializeTableFromTextFile::Attrs attrs,
                                      const At& at) const;

 private:
  void check_values(const AnyOutput& keys, const AnyOutput& values, std::string_view op, const At& at) const;

  AnyOutput handle_;
  DType key_ = DType::invalid, value_ = DType::invalid;
  Shape value_shape_;
};

/// The part that tables of both kinds share.
template <AllowedFor<LookupTableRemove> K, Element V>
class TypedLookupTable {
 public:
  TypedLookupTable() = default;

  const AnyOutput& handle() const noexcept { return table_.handle(); }

  /// keys [k...] -> [k..., value_shape]: `default_value`, which has the shape of a value, for keys that the table
  /// lacks.
  Output<V> find(const Operand<K>& keys, const Operand<V>& default_value, const At& at = {}) const {
    return Output<V>::unchecked(table_.find(keys.beside(handle()), default_value.beside(handle()), at));
  }
  Output<std::int64_t> size(const At& at = {}) const { return Output<std::int64_t>::unchecked(table_.size(at)); }
  /// keys [n], values [n, value_shape]
  std::tuple<Output<K>, Output<V>> export_all(const At& at = {}) const {
    const BuiltNode node = table_.export_all(at);
    return {Output<K>::unchecked(node.output(0)), Output<V>::unchecked(node.output(1))};
  }

 protected:
  TypedLookupTable(Graph& graph, bool is_mutable, const LookupTableOptions& options, const At& at)
      : table_(*graph.store(), is_mutable, dtype_of<K>, dtype_of<V>, options, at) {}

  AnyLookupTable table_;
};

}  // namespace detail

/// A table from keys of type K (int32, int64, string) to values, tensors of type V; steps put values into it. It lives
/// across steps on the device it is placed on, and is saved with the variables.
///
/// ```cpp
/// df::MutableHashTable<std::string, float> weights(graph, {.value_shape = {3}});
/// auto put = weights.insert(words, rows);           // [n], [n, 3]
/// auto found = weights.find(words, df::Tensor<float>({3}, {0, 0, 0}));
/// ```
/// Thread safety: a value type; builds, see Graph. In steps any number of calls may use a table at once: a lookup sees
/// each change of another call as a whole or not at all.
/// Errors: InvalidArgument for other shapes.
template <AllowedFor<LookupTableRemove> K, Element V>
class MutableHashTable : public detail::TypedLookupTable<K, V> {
 public:
  MutableHashTable() = default;
  explicit MutableHashTable(Graph& graph, const LookupTableOptions& options = {}, const At& at = {})
      : detail::TypedLookupTable<K, V>(graph, true, options, at) {}

  /// keys [k...], values [k..., value_shape]
  Operation insert(const Operand<K>& keys, const Operand<V>& values, const At& at = {}) const {
    return this->table_.insert(keys.beside(this->handle()), values.beside(this->handle()), at);
  }
  Operation remove(const Operand<K>& keys, const At& at = {}) const {
    return this->table_.remove(keys.beside(this->handle()), at);
  }
  /// Replaces all keys and values.
  Operation import_all(const Operand<K>& keys, const Operand<V>& values, const At& at = {}) const {
    return this->table_.import_all(keys.beside(this->handle()), values.beside(this->handle()), at);
  }
};

/// A table from keys to values that is filled once, by an operation that a program runs before the first lookup. Any
/// number of sessions may fill it, with the same values.
///
/// ```cpp
/// df::HashTable<std::string, std::int64_t> vocabulary(graph);
/// auto fill = vocabulary.initialize_from_text_file("words.txt");  // a line's number by its text
/// auto ids = vocabulary.find(words, -1);
/// ```
/// Thread safety: as of MutableHashTable.
/// Errors: InvalidArgument for other shapes, or for a key or value type that a file cannot give. In steps:
/// FailedPrecondition before the table is filled, and as of InitializeTable and InitializeTableFromTextFile.
template <AllowedFor<LookupTableRemove> K, Element V>
class HashTable : public detail::TypedLookupTable<K, V> {
 public:
  HashTable() = default;
  explicit HashTable(Graph& graph, const LookupTableOptions& options = {}, const At& at = {})
      : detail::TypedLookupTable<K, V>(graph, false, options, at) {}

  /// keys [n], values [n, value_shape]
  Operation initialize(const Operand<K>& keys, const Operand<V>& values, const At& at = {}) const {
    return this->table_.initialize(keys.beside(this->handle()), values.beside(this->handle()), at);
  }
  Operation initialize_from_text_file(const Operand<std::string>& filename,
                                      const InitializeTableFromTextFile::Attrs& attrs = {}, const At& at = {}) const {
    return this->table_.initialize_from_text_file(filename.beside(this->handle()), attrs, at);
  }
};

}  // namespace dflow
