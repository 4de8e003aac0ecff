#pragma once

#include <dflow/base/files/base64.hpp>
#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_def_json.hpp>
#include <dflow/graph/saved_attr.hpp>
#include <dflow/io/json/value.hpp>
#include <dflow/io/json/writer.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace dflow::detail::graph_json {

using json::Value;

// A graph's own nesting is 8. One name may stand twice where a GraphDef is a list of pairs.
inline constexpr json::Limits limits{
    .max_depth = 12, .max_bytes = std::numeric_limits<std::size_t>::max(), .allows_duplicates = true};
inline constexpr std::int64_t most_values_as_text = 1024;  // a larger tensor is written as base64

inline constexpr std::string_view real_text = "float_text", real_list_text = "list(float_text)";

// ---- how bytes, reals and shapes are spelled ----

inline constexpr std::string_view base64_mark = "base64:";
inline constexpr std::uint64_t plain_nan = 0x7ff8000000000000u;

[[noreturn]] inline void fail(std::string message) { throw_error(Status::invalid_argument(std::move(message))); }

/// Any bytes as a JSON string: as they are where they are valid UTF-8, else "base64:" and their code.
inline void append_bytes(std::string& out, const std::string& bytes) {
  if (!bytes.starts_with(base64_mark) && is_utf8(bytes)) return json::append_quoted(out, bytes);
  out.append(1, '"').append(base64_mark).append(to_base64(std::as_bytes(std::span(bytes)))).append(1, '"');
}

inline std::string unquote(const std::string& text) {
  if (!text.starts_with(base64_mark)) return text;
  std::optional<std::string> bytes = from_base64(std::string_view(text).substr(base64_mark.size()));
  if (!bytes) fail(str_cat("'", std::string_view(text).substr(0, 80), "' is not base64"));
  return *std::move(bytes);
}

/// "0.1", "inf", "-inf", "nan", "nan(0xfff8000000000001)": reads back as the same bits.
inline std::string real_to_text(double value) {
  if (!std::isnan(value)) return std::isinf(value) ? (value > 0 ? "inf" : "-inf") : str_cat(value);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (bits == plain_nan) return "nan";
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bits, 16).ptr;
  return str_cat("nan(0x", std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())), ")");
}

inline double real_from_text(std::string_view text) {
  if (text == "nan") return std::bit_cast<double>(plain_nan);
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  const auto is_all = [](std::string_view digits, auto result) {
    return result.ec == std::errc() && result.ptr == digits.data() + digits.size();
  };
  if (text.starts_with("nan(0x") && text.ends_with(")")) {
    const std::string_view digits = text.substr(6, text.size() - 7);
    std::uint64_t bits = 0;
    if (is_all(digits, std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16)) &&
        std::isnan(std::bit_cast<double>(bits))) {
      return std::bit_cast<double>(bits);
    }
  }
  double value = 0;
  if (is_all(text, std::from_chars(text.data(), text.data() + text.size(), value)) && std::isfinite(value)) {
    return value;
  }
  fail(str_cat("'", text.substr(0, 80), "' is not a real number"));
}

/// "[?,784]" or "<unknown>".
inline PartialShape shape_from_text(std::string_view text) {
  if (text == "<unknown>") return PartialShape::unknown();
  std::vector<std::int64_t> dims;
  bool is_legal = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  std::string_view rest = is_legal ? text.substr(1, text.size() - 2) : std::string_view();
  while (is_legal && !rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, comma);
    std::int64_t dim = dynamic;
    if (item != "?") {
      const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), dim);
      is_legal = error == std::errc() && end == item.data() + item.size() && dim >= 0;
    }
    dims.push_back(dim);
    is_legal = is_legal && dims.size() <= static_cast<std::size_t>(max_rank) && comma + 1 != rest.size();
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (!is_legal) fail(str_cat("'", text.substr(0, 80), "' is not a shape: '[?,784]' or '<unknown>' is"));
  return PartialShape(std::span<const std::int64_t>(dims));
}

// ---- writing ----

template <class Items, class ToValue>
Value list_of(const Items& items, ToValue&& to_value) {
  Value::Array list;
  list.reserve(items.size());
  for (const auto& item : items) list.push_back(to_value(item));
  return list;
}
inline Value list_of(std::span<const std::string> texts) { return list_of(texts, std::identity()); }

/// Adds a tensor's elements under the name of the form that keeps their bits.
template <class T>
void append_elements(Value::Object& tensor, std::span<const T> items) {
  if constexpr (is_complex_element<T>) {
    // A complex number is its two parts, one after the other.
    using Part = typename T::value_type;
    append_elements(tensor, std::span(reinterpret_cast<const Part*>(items.data()), 2 * items.size()));
  } else if constexpr (is_floating_element<T>) {
    const auto is_finite = [](T item) { return std::isfinite(static_cast<double>(item)); };
    // Text keeps the bits of every double, and of a narrower type all but the unusual NaNs'.
    const auto keeps_bits = [](T item) {
      const T nan = std::numeric_limits<T>::quiet_NaN();
      return std::is_same_v<T, double> || !std::isnan(static_cast<double>(item)) ||
             std::memcmp(&item, &nan, sizeof(T)) == 0;  // NOLINT(bugprone-suspicious-memory-comparison): the bits
    };
    if (std::all_of(items.begin(), items.end(), is_finite)) {
      tensor.emplace_back("values", list_of(items, [](T item) { return static_cast<double>(item); }));
    } else if (std::all_of(items.begin(), items.end(), keeps_bits)) {
      tensor.emplace_back("values_text",
                          list_of(items, [](T item) { return real_to_text(static_cast<double>(item)); }));
    } else {
      tensor.emplace_back("base64", to_base64(std::as_bytes(items)));
    }
  } else {
    tensor.emplace_back("values", list_of(items, std::identity()));
  }
}

inline Value of_tensor(const AnyTensor& tensor) {
  require_savable(tensor);
  Value::Object object;
  object.emplace_back("dtype", dtype_name(tensor.dtype()));
  if (!tensor.is_initialized()) return object;
  object.emplace_back("shape", tensor.shape().to_string());
  if (tensor.dtype() != DType::string && tensor.num_elements() > most_values_as_text) {
    object.emplace_back("base64", to_base64(bytes_of(tensor)));
    return object;
  }
  for_each_type<AllTypes>([&]<class T>() {
    if (tensor.dtype() == dtype_of<T>) append_elements(object, tensor.span<T>());
  });
  return object;
}

template <class T>
Value of_value(const T& value) {
  if constexpr (std::is_same_v<T, std::monostate>) {
    return true;
  } else if constexpr (std::is_same_v<T, DType>) {
    return dtype_name(value);
  } else if constexpr (std::is_same_v<T, PartialShape>) {
    return value.to_string();
  } else if constexpr (std::is_same_v<T, FunctionName>) {
    return Value::Object{{"name", value.name}};
  } else if constexpr (std::is_same_v<T, AnyTensor>) {
    return of_tensor(value);
  } else {
    return value;  // a bool, a number or a string
  }
}
template <class T>
Value of_value(const std::vector<T>& values) {
  return list_of(values, [](const T& value) { return of_value(value); });
}

inline Value of_attr(const AttrValue& value, ShapeAllowance& shapes) {
  if (const auto* list = std::get_if<std::vector<PartialShape>>(&value)) shapes.take(list->size());
  const auto is_finite = [](double real) { return std::isfinite(real); };
  Value::Object attr;
  const auto* real = std::get_if<double>(&value);
  const auto* reals = std::get_if<std::vector<double>>(&value);
  if (real != nullptr && !is_finite(*real)) {
    attr.emplace_back(std::string(real_text), real_to_text(*real));
  } else if (reals != nullptr && !std::all_of(reals->begin(), reals->end(), is_finite)) {
    attr.emplace_back(std::string(real_list_text), list_of(*reals, real_to_text));
  } else {
    attr.emplace_back(std::string(attr_kind_name(kind_of(value))),
                      std::visit([](const auto& held) { return of_value(held); }, value));
  }
  return attr;
}

inline Value of_node(const NodeDef& node, ShapeAllowance& shapes) {
  Value::Object object;
  const auto append_text = [&](const char* member, const std::string& text) {
    if (!text.empty()) object.emplace_back(member, text);
  };
  object.emplace_back("name", node.name);
  object.emplace_back("op", node.op);
  append_text("device", node.device);
  if (!node.types.empty()) {
    Value::Object types;
    for (const auto& [param, dtype] : node.types) types.emplace_back(param, dtype_name(dtype));
    object.emplace_back("types", std::move(types));
  }
  if (!node.inputs.empty()) object.emplace_back("inputs", list_of(node.inputs));
  if (!node.attrs.empty()) {
    Value::Object attrs;
    for (const auto& [key, value] : node.attrs) attrs.emplace_back(key, of_attr(value, shapes));
    object.emplace_back("attrs", std::move(attrs));
  }
  append_text("colocated_with", node.colocated_with);
  append_text("function", node.function);
  append_text("file", node.file);
  if (node.line != 0) object.emplace_back("line", node.line);
  return object;
}

inline Value of_graph(const GraphDef& def) {
  Value::Object graph;
  graph.emplace_back("version", written_version(def));
  graph.emplace_back("seed", def.seed);
  ShapeAllowance shapes;
  graph.emplace_back("nodes", list_of(def.nodes, [&](const NodeDef& node) { return of_node(node, shapes); }));
  graph.emplace_back("collections", list_of(def.collections, [](const auto& collection) {
                       Value::Object object;
                       object.emplace_back("name", collection.first);
                       object.emplace_back("nodes", list_of(collection.second));
                       return object;
                     }));
  return graph;
}

inline bool is_structured(const Value& value) noexcept { return value.is_array() || value.is_object(); }

/// Writes lists and objects that hold no others on one line, and the items of all others on a line each.
inline void print(std::string& out, const Value& value, std::size_t indent = 0) {
  switch (value.kind()) {
    case Value::Kind::null:
      return void(out += "null");
    case Value::Kind::boolean:
      return void(out += value.boolean() ? "true" : "false");
    case Value::Kind::number:
      return void(out += value.spelling());
    case Value::Kind::string:
      return append_bytes(out, value.string());
    case Value::Kind::array:
    case Value::Kind::object:
      break;
  }
  const auto print_all = [&](const auto& items, char begin, char end, auto&& value_of, auto&& before) {
    const bool is_flat =
        std::none_of(items.begin(), items.end(), [&](const auto& item) { return is_structured(value_of(item)); });
    const auto new_line = [&](std::size_t spaces) {
      if (!is_flat) out.append(1, '\n').append(spaces, ' ');
    };
    out += begin;
    for (auto item = items.begin(); item != items.end(); ++item) {
      if (item != items.begin()) out += is_flat ? ", " : ",";
      new_line(indent + 2);
      before(*item);
      print(out, value_of(*item), indent + 2);
    }
    new_line(indent);
    out += end;
  };
  if (value.is_array()) {
    return print_all(value.items(), '[', ']', std::identity(), [](const Value&) {});
  }
  using Member = Value::Object::value_type;
  print_all(
      value.members(), '{', '}', [](const Member& member) -> const Value& { return member.second; },
      [&](const Member& member) {
        append_bytes(out, member.first);
        out += ": ";
      });
}

// ---- reading ----

/// Calls `read()`, and puts the place that `place()` names before the message of an Error.
template <class Place, class Read>
void within(Place&& place, Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat(place(), ": ")));
  }
}

[[noreturn]] inline void fail_due(std::string_view what, const Value& value) {
  std::string found(value.kind_name());
  if (!is_structured(value)) {
    found.clear();
    print(found, value);
  }
  fail(str_cat(what, " is due, not ", std::string_view(found).substr(0, 80)));
}

/// Calls `read(item)` for each item of a list; `place(i)` is how errors name it.
template <class Place, class Read>
void list(const Value& value, Place&& place, Read&& read) {
  if (!value.is_array()) fail_due("a list", value);
  std::size_t i = 0;
  for (const Value& item : value.items()) {
    within([&] { return place(i); }, [&] { read(item); });
    ++i;
  }
}
inline std::string item_place(std::size_t i) { return str_cat("item ", i); }

/// Calls `read(name, value)` for each member of an object.
template <class Read>
void object(const Value& value, Read&& read) {
  if (!value.is_object()) fail_due("an object", value);
  for (const auto& [name, member] : value.members()) read(unquote(name), member);
}

/// The name of a member, and the function that reads it.
using Member = std::pair<std::string_view, std::function<void(const Value&)>>;

/// Reads an object that may have some of the `known` members, each once; the first `needed` must be there.
inline void members(const Value& value, std::string_view what, std::initializer_list<Member> known,
                    std::size_t needed = 0) {
  std::vector<bool> has(known.size());
  object(value, [&](const std::string& name, const Value& member) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Member& each) { return each.first == name; });
    if (found == known.end()) fail(str_cat(what, " has no '", name, "'"));
    const auto index = static_cast<std::size_t>(found - known.begin());
    if (has[index]) fail(str_cat(what, " has one '", name, "'"));
    has[index] = true;
    within([&] { return name; }, [&] { found->second(member); });
  });
  for (std::size_t i = 0; i < needed; ++i) {
    if (!has[i]) fail(str_cat("there is no '", known.begin()[i].first, "'"));
  }
}

inline std::string text(const Value& value) {
  if (!value.is_string()) fail_due("a text", value);
  return unquote(value.string());
}

inline bool boolean(const Value& value) {
  if (!value.is_boolean()) fail_due("true or false", value);
  return value.boolean();
}

template <class T>
T integer(const Value& value) {
  if (!value.is_integer()) fail_due("an integer", value);
  const std::optional<T> result = value.as_int<T>();
  if (!result) fail(str_cat(std::string_view(value.spelling()).substr(0, 80), " is out of range"));
  return *result;
}

inline double real(const Value& value) {
  if (!value.is_number()) fail_due("a number", value);
  const std::optional<double> result = value.as_double();
  if (!result) fail(str_cat(std::string_view(value.spelling()).substr(0, 80), " is out of range"));
  return *result;
}

inline DType dtype(const Value& value) {
  const std::string text = graph_json::text(value);
  if (text == dtype_name(DType::invalid)) return DType::invalid;
  const std::optional<DType> parsed = parse_dtype(text);
  if (!parsed) fail(str_cat("'", text, "' is no element type"));
  return *parsed;
}

/// Reads an element, a complex one from two values.
template <class T>
void read_element(Value::Array::const_iterator& next, bool is_text, T& into) {
  if constexpr (is_complex_element<T>) {
    typename T::value_type real{}, imaginary{};
    read_element(next, is_text, real);
    read_element(next, is_text, imaginary);
    into = T(real, imaginary);
  } else if constexpr (is_floating_element<T>) {
    const Value& value = *next++;
    const double wide = is_text ? real_from_text(text(value)) : real(value);
    into = static_cast<T>(wide);
    if (std::isfinite(wide) && !std::isfinite(static_cast<double>(into))) {
      fail(str_cat(wide, " is outside the range of ", dtype_name(dtype_of<T>)));
    }
  } else if (is_text) {
    fail("only reals have values as text");
  } else if constexpr (is_integer_element<T>) {
    into = integer<T>(*next++);
  } else if constexpr (std::is_same_v<T, bool>) {
    into = boolean(*next++);
  } else {
    into = text(*next++);
  }
}

inline void read_elements(const Value& values, bool is_text, DType dtype, const Shape& shape, AnyTensor& into) {
  if (!values.is_array()) fail_due("a list", values);
  const std::size_t parts = is_complex(dtype) ? 2 : 1;
  if (values.items().size() % parts != 0 ||
      values.items().size() / parts != static_cast<std::size_t>(shape.num_elements())) {
    fail(str_cat(values.items().size(), " values for a tensor of ", dtype_name(dtype), shape.to_string()));
  }
  into = AnyTensor(dtype, shape);
  for_each_type<AllTypes>([&]<class T>() {
    if (dtype != dtype_of<T>) return;
    Value::Array::const_iterator next = values.items().begin();
    for (T& element : into.span<T>()) read_element(next, is_text, element);
  });
}

inline void read_tensor(const Value& value, AnyTensor& into) {
  DType dtype = DType::invalid;
  std::optional<Shape> shape;
  std::string form;
  const Value* elements = nullptr;
  const auto elements_as = [&](const char* name) -> Member {
    return {name, [&, name](const Value& held) {
              if (!form.empty()) fail("a tensor has its values once");
              form = name;
              elements = &held;
            }};
  };
  members(value, "a tensor",
          {{"dtype", [&](const Value& held) { dtype = graph_json::dtype(held); }},
           {"shape", [&](const Value& held) { shape = shape_from_text(text(held)).to_shape(); }},
           elements_as("values"),
           elements_as("values_text"),
           elements_as("base64")});
  if (elements == nullptr) {
    if (shape || dtype != DType::invalid) fail("a tensor has no values");
    return into.reset();
  }
  if (!shape || !is_element(dtype)) fail("a tensor of values needs its element type and shape");
  if (form != "base64") return read_elements(*elements, form == "values_text", dtype, *shape, into);
  if (!is_plain(dtype)) fail(str_cat("a tensor of ", dtype_name(dtype), " has no 'base64'"));
  const std::optional<std::string> bytes = elements->is_string() ? from_base64(elements->string()) : std::nullopt;
  if (!bytes) fail("a tensor's base64 is malformed");
  into = tensor_of_bytes(dtype, *shape, std::as_bytes(std::span(*bytes)), Code::invalid_argument);
}

inline void read_value(const Value& value, std::monostate&) { static_cast<void>(boolean(value)); }
inline void read_value(const Value& value, bool& into) { into = boolean(value); }
inline void read_value(const Value& value, std::int64_t& into) { into = integer<std::int64_t>(value); }
inline void read_value(const Value& value, double& into) { into = real(value); }
inline void read_value(const Value& value, std::string& into) { into = text(value); }
inline void read_value(const Value& value, DType& into) { into = dtype(value); }
inline void read_value(const Value& value, PartialShape& into) { into = shape_from_text(text(value)); }
inline void read_value(const Value& value, AnyTensor& into) { read_tensor(value, into); }
inline void read_value(const Value& value, FunctionName& into) {
  members(value, "a function", {{"name", [&](const Value& held) { into.name = text(held); }}}, 1);
}
template <class T>
void read_value(const Value& value, std::vector<T>& into) {
  list(value, item_place, [&](const Value& held) {
    T item{};
    read_value(held, item);
    into.push_back(std::move(item));
  });
}

inline void read_attr(const Value& value, AttrValue& into, ShapeAllowance& shapes) {
  if (value.is_object() && value.members().size() != 1) {
    fail(str_cat("an attribute has one value, not ", value.members().size()));
  }
  object(value, [&](const std::string& kind, const Value& held) {
    if (kind == real_text) return void(into = real_from_text(text(held)));
    if (kind == real_list_text) {
      auto& reals = into.emplace<std::vector<double>>();
      return list(held, item_place, [&](const Value& item) { reals.push_back(real_from_text(text(item))); });
    }
    constexpr std::size_t num_kinds = std::variant_size_v<AttrValue>;
    std::size_t number = 0;
    while (number < num_kinds && attr_kind_name(static_cast<AttrKind>(number)) != kind) ++number;
    if (number == num_kinds) fail(str_cat("'", kind, "' is no kind of attribute"));
    const auto read = [&]<class T>() {
      if constexpr (std::is_same_v<T, std::vector<PartialShape>>)
        if (held.is_array()) shapes.take(held.items().size());
      read_value(held, into.emplace<T>());
    };
    with_attr_type(number, read, std::make_index_sequence<num_kinds>{});
  });
}

inline void read_node(const Value& value, NodeDef& node, ShapeAllowance& shapes) {
  const auto text_into = [](std::string& into) { return [&into](const Value& held) { into = text(held); }; };
  const auto types = [&](const std::string& param, const Value& held) {
    within([&] { return param; }, [&] { node.types.emplace_back(param, dtype(held)); });
  };
  const auto attrs = [&](const std::string& key, const Value& held) {
    within([&] { return key; }, [&] { read_attr(held, node.attrs.emplace_back(key, AttrValue()).second, shapes); });
  };
  members(value, "a node",
          {{"name", text_into(node.name)},
           {"op", text_into(node.op)},
           {"device", text_into(node.device)},
           {"types", [&](const Value& held) { object(held, types); }},
           {"inputs", [&](const Value& held) { read_value(held, node.inputs); }},
           {"attrs", [&](const Value& held) { object(held, attrs); }},
           {"colocated_with", text_into(node.colocated_with)},
           {"function", text_into(node.function)},
           {"file", text_into(node.file)},
           {"line", [&](const Value& held) { node.line = integer<std::uint32_t>(held); }}},
          2);
}

/// A node takes many times the memory of its text.
inline void check_length(const Value& list) {
  if (list.is_array() && list.items().size() > GraphDef::max_nodes) {
    fail(str_cat("a list of a graph has more than ", GraphDef::max_nodes, " items"));
  }
}

inline void read_graph(const Value& value, GraphDef& def) {
  const auto version = [&](const Value& held) {
    def.version = integer<std::uint32_t>(held);
    if (def.version == 0 || def.version > GraphDef::current_version) {
      fail(str_cat("this library reads versions 1 to ", GraphDef::current_version, ", not version ", def.version));
    }
  };
  const auto nodes = [&](const Value& held) {
    const auto place = [&](std::size_t i) { return str_cat("node ", i, " '", def.nodes[i].name, "'"); };
    ShapeAllowance shapes;
    check_length(held);
    list(held, place, [&](const Value& node) { read_node(node, def.nodes.emplace_back(), shapes); });
  };
  const auto collections = [&](const Value& held) {
    check_length(held);
    list(held, item_place, [&](const Value& item) {
      auto& collection = def.collections.emplace_back();
      members(item, "a collection",
              {{"name", [&](const Value& name) { collection.first = text(name); }},
               {"nodes", [&](const Value& names) { read_value(names, collection.second); }}});
    });
  };
  members(value, "a graph",
          {{"version", version},
           {"nodes", nodes},
           {"seed", [&](const Value& held) { def.seed = integer<std::uint64_t>(held); }},
           {"collections", collections}},
          2);
}

}  // namespace dflow::detail::graph_json

namespace dflow {

std::string to_json(const GraphDef& def) {
  std::string text;
  detail::graph_json::print(text, detail::graph_json::of_graph(def));
  return text + "\n";
}

GraphDef from_json(std::string_view text) {
  GraphDef def;
  try {
    detail::graph_json::read_graph(json::parse(text, detail::graph_json::limits), def);
  } catch (const Error& error) {
    throw_error(Status::invalid_argument(str_cat("malformed JSON graph, ", error.status().message())));
  }
  return def;
}

}  // namespace dflow
