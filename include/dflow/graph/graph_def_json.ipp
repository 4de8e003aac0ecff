#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/graph/graph_def_archive.ipp>
#include <dflow/graph/json_text.hpp>

#include <cereal/archives/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <type_traits>

namespace dflow {

namespace detail {

inline constexpr int json_depth = 12;                      // a graph's own nesting is 8
inline constexpr std::int64_t most_values_as_text = 1024;  // a larger tensor is written as base64

/// The member that holds an attribute's value, by kind.
inline constexpr std::array<std::string_view, std::variant_size_v<AttrValue>> json_kinds{
    "none",       "bool",      "int",         "float",        "string",     "type",        "shape",   "tensor",
    "list(bool)", "list(int)", "list(float)", "list(string)", "list(type)", "list(shape)", "function"};
inline constexpr std::string_view json_real_text = "float_text", json_real_list_text = "list(float_text)";

/// Writes a graph with cereal's JSON archive, member by member.
class GraphJsonWriter {
 public:
  static std::string write(const GraphDef& def) {
    std::ostringstream out;
    {
      GraphJsonWriter writer(out);
      writer.graph(def);
    }
    return json::join_short_lines(out.str()) + "\n";
  }

 private:
  using Options = cereal::JSONOutputArchive::Options;

  explicit GraphJsonWriter(std::ostream& out) : archive_(out, Options(324, Options::IndentChar::space, 2)) {}

  void key(const std::string& text) {
    key_ = json::quote(text);
    archive_.setNextName(key_.c_str());
  }
  template <class V>
  void value(const V& value) {
    archive_.writeName();
    archive_.saveValue(value);
  }
  void text(std::string_view bytes) { value(json::quote(bytes)); }
  template <class V>
  void member(const char* name, const V& held) {
    archive_.setNextName(name);
    value(held);
  }
  void text_member(const char* name, std::string_view bytes) {
    archive_.setNextName(name);
    text(bytes);
  }
  template <class Items, class Write>
  void list(const Items& items, Write&& write) {
    archive_.startNode();
    archive_.makeArray();
    for (const auto& item : items) write(item);
    archive_.finishNode();
  }
  template <class Items, class Write>
  void object(const Items& items, Write&& write) {
    archive_.startNode();
    for (const auto& [name, held] : items) {
      key(name);
      write(held);
    }
    archive_.finishNode();
  }

  void graph(const GraphDef& def) {
    member("version", def.version);
    member("seed", def.seed);
    archive_.setNextName("nodes");
    list(def.nodes, [&](const NodeDef& def_of_node) { node(def_of_node); });
    archive_.setNextName("collections");
    list(def.collections, [&](const auto& collection) {
      archive_.startNode();
      text_member("name", collection.first);
      archive_.setNextName("nodes");
      list(collection.second, [&](const std::string& name) { text(name); });
      archive_.finishNode();
    });
  }

  void node(const NodeDef& node) {
    archive_.startNode();
    text_member("name", node.name);
    text_member("op", node.op);
    if (!node.device.empty()) text_member("device", node.device);
    if (!node.types.empty()) {
      archive_.setNextName("types");
      object(node.types, [&](DType dtype) { text(name(dtype)); });
    }
    if (!node.inputs.empty()) {
      archive_.setNextName("inputs");
      list(node.inputs, [&](const std::string& input) { text(input); });
    }
    if (!node.attrs.empty()) {
      archive_.setNextName("attrs");
      object(node.attrs, [&](const AttrValue& value) { attr(value); });
    }
    if (!node.colocated_with.empty()) text_member("colocated_with", node.colocated_with);
    if (!node.file.empty()) text_member("file", node.file);
    if (node.line != 0) member("line", node.line);
    archive_.finishNode();
  }

  void attr(const AttrValue& value) {
    archive_.startNode();
    const bool is_text = needs_text(value);
    const std::string_view kind = !is_text                           ? json_kinds[value.index()]
                                  : kind_of(value) == AttrKind::real ? json_real_text
                                                                     : json_real_list_text;
    key(std::string(kind));
    std::visit([&](const auto& held) { attr_value(held, is_text); }, value);
    archive_.finishNode();
  }

  static bool needs_text(const AttrValue& value) {
    if (const auto* real = std::get_if<double>(&value)) return !std::isfinite(*real);
    const auto* list = std::get_if<std::vector<double>>(&value);
    return list != nullptr && !std::all_of(list->begin(), list->end(), [](double real) { return std::isfinite(real); });
  }

  void attr_value(std::monostate, bool) { value(true); }
  void attr_value(bool held, bool) { value(held); }
  void attr_value(std::int64_t held, bool) { value(held); }
  void attr_value(double held, bool is_text) {
    if (is_text) return text(json::real_to_text(held));
    value(held);
  }
  void attr_value(const std::string& held, bool) { text(held); }
  void attr_value(DType held, bool) { text(name(held)); }
  void attr_value(const FunctionName& held, bool) {
    archive_.startNode();
    text_member("name", held.name);
    archive_.finishNode();
  }
  void attr_value(const PartialShape& held, bool) { text(held.to_string()); }
  void attr_value(const AnyTensor& held, bool) { tensor(held); }
  template <class T>
  void attr_value(const std::vector<T>& held, bool is_text) {
    list(held, [&](const auto& item) { attr_value(static_cast<const T&>(item), is_text); });
  }

  void tensor(const AnyTensor& tensor) {
    require_savable(tensor);
    archive_.startNode();
    text_member("dtype", name(tensor.dtype()));
    if (tensor.is_initialized()) {
      text_member("shape", tensor.shape().to_string());
      if (tensor.dtype() == DType::string) {
        archive_.setNextName("values");
        list(tensor.span<std::string>(), [&](const std::string& item) { text(item); });
      } else if (tensor.num_elements() > most_values_as_text) {
        member("base64", json::to_base64(bytes_of(tensor)));
      } else {
        for_each_type<PlainTypes>([&]<class T>() {
          if (tensor.dtype() == dtype_of<T>) values(tensor.span<T>());
        });
      }
    }
    archive_.finishNode();
  }

  template <class T>
  void values(std::span<const T> items) {
    if constexpr (is_complex_element<T>) {
      // A complex number is its two parts, one after the other.
      using Part = typename T::value_type;
      values(std::span(reinterpret_cast<const Part*>(items.data()), 2 * items.size()));
    } else if constexpr (is_floating_element<T>) {
      const auto is_finite = [](T item) { return std::isfinite(static_cast<double>(item)); };
      const bool is_plain = std::all_of(items.begin(), items.end(), is_finite);
      // Text keeps the bits of every double, and of a narrower type all but the unusual NaNs'.
      const auto keeps_bits = [](T item) {
        const T nan = std::numeric_limits<T>::quiet_NaN();
        return std::is_same_v<T, double> || !std::isnan(static_cast<double>(item)) ||
               std::memcmp(&item, &nan, sizeof(T)) == 0;
      };
      if (!is_plain && !std::all_of(items.begin(), items.end(), keeps_bits)) {
        member("base64", json::to_base64(std::as_bytes(items)));
        return;
      }
      archive_.setNextName(is_plain ? "values" : "values_text");
      list(items, [&](T item) { attr_value(static_cast<double>(item), !is_plain); });
    } else {
      archive_.setNextName("values");
      list(items, [&](T item) {
        if constexpr (std::is_same_v<T, bool>) {
          value(item);
        } else if constexpr (std::is_signed_v<T>) {
          value(static_cast<std::int64_t>(item));
        } else {
          value(static_cast<std::uint64_t>(item));
        }
      });
    }
  }

  cereal::JSONOutputArchive archive_;
  std::string key_;
};

/// Reads what GraphJsonWriter writes. cereal's archive walks the parsed text; a value of another type than is asked for
/// is one of its exceptions.
class GraphJsonReader {
 public:
  static GraphDef read(std::string_view text) {
    json::check(text, json_depth);
    GraphDef def;
    std::string place = "the graph";
    try {
      std::istringstream in{json::with_short_reals(text)};
      GraphJsonReader reader(in, text, place);
      reader.graph(def);
    } catch (const cereal::Exception& error) {
      throw_error(Code::invalid_argument, str_cat("malformed JSON graph, in ", place, ": ", error.what()));
    } catch (const Error& error) {
      throw_error(Code::invalid_argument, str_cat("malformed JSON graph, in ", place, ": ", error.status().message()));
    }
    return def;
  }

 private:
  GraphJsonReader(std::istream& in, std::string_view text, std::string& place)
      : archive_(in), text_(text), place_(place) {}

  [[noreturn]] static void fail(std::string message) { throw_error(Code::invalid_argument, std::move(message)); }

  template <class V>
  V value() {
    V read{};
    archive_.loadValue(read);
    return read;
  }
  std::string text() { return json::unquote(value<std::string>()); }

  /// Calls `read` once per item of the list that comes next.
  template <class Read>
  void list(Read&& read) {
    archive_.startNode();
    for (cereal::size_type size = this->size(); size > 0; --size) read();
    archive_.finishNode();
  }
  /// The items of the list just entered.
  cereal::size_type size() {
    cereal::size_type size = 0;
    archive_.loadSize(size);
    return size;
  }
  /// Calls `read(name)` once per member of the object that comes next; it must read the member's value.
  template <class Read>
  void object(Read&& read) {
    archive_.startNode();
    bool is_empty = true;
    for (const char* name = archive_.getNodeName(); name != nullptr; name = archive_.getNodeName(), is_empty = false) {
      read(json::unquote(name));
    }
    // To the archive a list is an object without members.
    if (is_empty && is_list()) fail("a list stands where an object is due");
    archive_.finishNode();
  }
  bool is_list() {
    try {
      static_cast<void>(size());
      return true;
    } catch (const cereal::Exception&) {
      return false;
    }
  }

  void graph(GraphDef& def) {
    constexpr std::array<std::string_view, 4> members{"version", "nodes", "seed", "collections"};
    std::array<bool, members.size()> has{};
    std::size_t number = 0;
    for (const char* name = archive_.getNodeName(); name != nullptr; name = archive_.getNodeName()) {
      place_ = str_cat("line ", json::line_of_member(text_, number++));
      const auto member = static_cast<std::size_t>(std::find(members.begin(), members.end(), name) - members.begin());
      if (member == members.size()) fail(str_cat("a graph has no '", name, "'"));
      if (std::exchange(has[member], true)) fail(str_cat("a graph has one '", name, "'"));
      switch (member) {
        case 0:
          version(def);
          break;
        case 1:
          nodes(def);
          break;
        case 2:
          def.seed = value<std::uint64_t>();
          break;
        default:
          collections(def);
      }
    }
    place_ = "the graph";
    for (std::size_t needed = 0; needed < 2; ++needed) {
      if (!has[needed]) fail(str_cat("there is no '", members[needed], "'"));
    }
  }

  void version(GraphDef& def) {
    def.version = value<std::uint32_t>();
    if (def.version == 0 || def.version > GraphDef::current_version) {
      fail(str_cat("version ", def.version, "; this library reads versions 1 to ", GraphDef::current_version));
    }
  }

  void nodes(GraphDef& def) {
    list([&] {
      place_ = str_cat("node ", def.nodes.size());
      node(def.nodes.emplace_back());
    });
  }

  void collections(GraphDef& def) {
    const std::string line = place_;
    list([&] {
      place_ = str_cat(line, ", collection ", def.collections.size());
      auto& collection = def.collections.emplace_back();
      object([&](const std::string& name) {
        if (name == "name") {
          collection.first = text();
        } else if (name == "nodes") {
          texts(collection.second);
        } else {
          fail(str_cat("a collection has no '", name, "'"));
        }
      });
    });
  }

  void texts(std::vector<std::string>& into) {
    list([&] { into.push_back(text()); });
  }

  void node(NodeDef& node) {
    object([&](const std::string& name) {
      if (name == "name") {
        node.name = text();
        place_ += str_cat(" '", node.name, "'");
      } else if (name == "op") {
        node.op = text();
      } else if (name == "device") {
        node.device = text();
      } else if (name == "types") {
        object([&](const std::string& param) { node.types.emplace_back(param, dtype()); });
      } else if (name == "inputs") {
        texts(node.inputs);
      } else if (name == "attrs") {
        object([&](const std::string& key) { attr(node.attrs.emplace_back(key, AttrValue()).second); });
      } else if (name == "colocated_with") {
        node.colocated_with = text();
      } else if (name == "file") {
        node.file = text();
      } else if (name == "line") {
        node.line = value<std::uint32_t>();
      } else {
        fail(str_cat("a node has no '", name, "'"));
      }
    });
  }

  DType dtype() {
    const std::string text = this->text();
    if (text == name(DType::invalid)) return DType::invalid;
    const std::optional<DType> parsed = parse_dtype(text);
    if (!parsed) fail(str_cat("'", text, "' is no element type"));
    return *parsed;
  }

  void attr(AttrValue& attr) {
    int members = 0;
    object([&](const std::string& kind) {
      if (++members > 1) fail("an attribute has one value");
      if (kind == json_real_text) return void(attr = json::real_from_text(text()));
      if (kind == json_real_list_text) {
        auto& reals = attr.emplace<std::vector<double>>();
        return list([&] { reals.push_back(json::real_from_text(text())); });
      }
      const auto found = std::find(json_kinds.begin(), json_kinds.end(), kind);
      if (found == json_kinds.end()) fail(str_cat("'", kind, "' is no kind of attribute"));
      const auto read = [&]<class T>() { attr_value(attr.emplace<T>()); };
      with_attr_type(static_cast<std::size_t>(found - json_kinds.begin()), read,
                     std::make_index_sequence<std::variant_size_v<AttrValue>>{});
    });
    if (members == 0) fail("an attribute has no value");
  }

  void attr_value(std::monostate&) { static_cast<void>(value<bool>()); }
  void attr_value(bool& into) { into = value<bool>(); }
  void attr_value(std::int64_t& into) { into = value<std::int64_t>(); }
  void attr_value(double& into) { into = value<double>(); }
  void attr_value(std::string& into) { into = text(); }
  void attr_value(DType& into) { into = dtype(); }
  void attr_value(FunctionName& into) {
    bool has_name = false;
    object([&](const std::string& member) {
      if (member != "name" || std::exchange(has_name, true)) fail(str_cat("a function has no '", member, "'"));
      into.name = text();
    });
    if (!has_name) fail("a function has no name");
  }
  void attr_value(PartialShape& into) { into = json::shape_from_text(text()); }
  void attr_value(AnyTensor& into) { tensor(into); }
  template <class T>
  void attr_value(std::vector<T>& into) {
    list([&] {
      T item{};
      attr_value(item);
      into.push_back(std::move(item));
    });
  }

  void tensor(AnyTensor& tensor) {
    DType dtype = DType::invalid;
    std::optional<Shape> shape;
    bool has_values = false;
    object([&](const std::string& name) {
      if (name == "dtype") {
        dtype = this->dtype();
      } else if (name == "shape") {
        shape = json::shape_from_text(text()).to_shape();
      } else if (std::exchange(has_values, true)) {
        fail("a tensor has its values once");
      } else if (!shape || !is_element(dtype)) {
        fail(str_cat("a tensor needs its element type and shape before '", name, "'"));
      } else if (name == "values" || name == "values_text") {
        list_values(tensor, dtype, *shape, name != "values");
      } else if (name == "base64" && dtype != DType::string) {
        const std::optional<std::string> bytes = json::from_base64(value<std::string>());
        if (!bytes) fail("a tensor's base64 is malformed");
        tensor = tensor_of_bytes(dtype, *shape, std::as_bytes(std::span(*bytes)), Code::invalid_argument);
      } else {
        fail(str_cat("a tensor of ", dflow::name(dtype), " has no '", name, "'"));
      }
    });
    if (!has_values && (shape || dtype != DType::invalid)) fail("a tensor has no values");
  }

  void list_values(AnyTensor& tensor, DType dtype, const Shape& shape, bool is_text) {
    archive_.startNode();
    const cereal::size_type parts = is_complex(dtype) ? 2 : 1;
    if (size() % parts != 0 || size() / parts != static_cast<cereal::size_type>(shape.num_elements())) {
      fail(str_cat(size(), " values for a tensor of ", name(dtype), shape.to_string()));
    }
    tensor = AnyTensor(dtype, shape);
    for_each_type<AllTypes>([&]<class T>() {
      if (dtype != dtype_of<T>) return;
      for (T& item : tensor.span<T>()) element(item, is_text);
    });
    archive_.finishNode();
  }

  template <class T>
  void element(T& into, bool is_text) {
    if constexpr (is_complex_element<T>) {
      typename T::value_type real{}, imaginary{};
      element(real, is_text);
      element(imaginary, is_text);
      into = T(real, imaginary);
    } else if constexpr (is_floating_element<T>) {
      const double wide = is_text ? json::real_from_text(text()) : value<double>();
      into = static_cast<T>(wide);
      if (std::isfinite(wide) && !std::isfinite(static_cast<double>(into))) {
        fail(str_cat(wide, " is outside the range of ", name(dtype_of<T>)));
      }
    } else if (is_text) {
      fail("only reals have values as text");
    } else if constexpr (is_integer_element<T>) {
      const auto wide = value<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>();
      into = narrow<T>(wide);
    } else if constexpr (std::is_same_v<T, bool>) {
      into = value<bool>();
    } else {
      into = text();
    }
  }

  cereal::JSONInputArchive archive_;
  std::string_view text_;
  std::string& place_;
};

}  // namespace detail

DFLOW_INLINE std::string to_json(const GraphDef& def) { return detail::GraphJsonWriter::write(def); }
DFLOW_INLINE GraphDef from_json(std::string_view text) { return detail::GraphJsonReader::read(text); }

}  // namespace dflow
