#include "random_call.hpp"

#include "op_runner.hpp"

#include <dflow/graph/graph_def_json.hpp>
#include <dflow/op/op_table.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace dflow::testing {

namespace {

/// Steele, Lea and Flood 2014 (SplitMix64): the same numbers everywhere, which the standard's distributions do not
/// promise.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// In [0, n).
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low) + 1));
  }
  bool one_in(std::size_t n) { return below(n) == 0; }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  template <class List>
  auto pick(const List& list) {
    return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
  }

 private:
  std::uint64_t state_;
};

constexpr std::int64_t most_elements = 4096;
constexpr auto int64_min = std::numeric_limits<std::int64_t>::min();
constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::array<std::int64_t, 14> odd_integers{int64_min,
                                                    int64_max,
                                                    int64_max - 1,
                                                    std::int64_t{1} << 62,
                                                    std::int64_t{1} << 32,
                                                    std::int64_t{1} << 31,
                                                    (std::int64_t{1} << 31) - 1,
                                                    -(std::int64_t{1} << 31),
                                                    -1,
                                                    0,
                                                    17,
                                                    100,
                                                    1000,
                                                    -8};

std::int64_t random_integer(Chance& chance) {
  return chance.one_in(5) ? chance.pick(odd_integers) : chance.between(-3, 5);
}

template <class F>
F random_real(Chance& chance) {
  using Limits = std::numeric_limits<F>;
  static const std::array<F, 16> odd{F(0),
                                     -F(0),
                                     F(1),
                                     F(-1),
                                     F(0.5),
                                     F(2),
                                     F(1e-3),
                                     F(-100),
                                     Limits::max(),
                                     Limits::lowest(),
                                     Limits::min(),
                                     Limits::denorm_min(),
                                     Limits::epsilon(),
                                     Limits::infinity(),
                                     -Limits::infinity(),
                                     Limits::quiet_NaN()};
  if (chance.one_in(4)) return chance.pick(odd);
  return static_cast<F>(chance.unit() * 6 - 3);
}

template <class T>
T random_element(Chance& chance) {
  if constexpr (std::is_same_v<T, std::string>) {
    static const std::array<std::string, 4> texts{"", "a", std::string("with\0zero", 9), std::string(100, 'x')};
    return chance.pick(texts);
  } else if constexpr (std::is_same_v<T, bool>) {
    return chance.one_in(2);
  } else if constexpr (is_complex_element<T>) {
    using Part = typename T::value_type;
    const Part real = random_real<Part>(chance);
    return T(real, random_real<Part>(chance));
  } else if constexpr (std::is_same_v<T, double>) {
    return random_real<double>(chance);
  } else if constexpr (is_floating_element<T>) {
    return T(random_real<float>(chance));
  } else {
    if (chance.one_in(8)) return chance.one_in(2) ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    return static_cast<T>(chance.between(chance.one_in(3) ? -2 : 0, 4));
  }
}

/// Refuses shapes with too many elements: the caller then draws again.
AnyTensor random_tensor(Chance& chance, DType dtype, const Shape& shape) {
  if (shape.num_elements() > 4 * most_elements)
    throw Error(Status::resource_exhausted("too many elements for a random call"));
  AnyTensor tensor(dtype, shape);
  visit_dtype<AllTypes>(dtype, [&]<class T>() {
    for (T& element : tensor.span<T>()) element = random_element<T>(chance);
  });
  return tensor;
}

DType random_element_type(Chance& chance) { return chance.pick(dtypes_of<AllTypes>); }

Shape random_shape(Chance& chance) {
  const std::int64_t rank = chance.one_in(4) ? chance.between(0, max_rank) : chance.between(0, 4);
  std::vector<std::int64_t> dims;
  std::int64_t elements = 1;
  for (std::int64_t i = 0; i < rank; ++i) {
    std::int64_t dim = chance.between(1, 4);
    if (chance.one_in(12)) dim = 0;
    if (chance.one_in(20)) dim = chance.between(5, 40);
    if (elements * dim > most_elements) dim = 1;
    elements *= dim;
    dims.push_back(dim);
  }
  if (elements == 0 && chance.one_in(3)) {
    for (std::int64_t& dim : dims) {
      if (dim != 0)
        dim = chance.pick(
            std::array<std::int64_t, 4>{1, std::int64_t{1} << 31, std::int64_t{1} << 32, std::int64_t{1} << 62});
    }
  }
  try {
    return Shape(std::span<const std::int64_t>(dims));
  } catch (const Error&) {
    return Shape{0};
  }
}

/// The part of `shape` that a program might know before it runs.
PartialShape random_knowledge(Chance& chance, const Shape& shape) {
  switch (chance.below(5)) {
    case 0:
      return PartialShape::unknown();
    case 1:
      return PartialShape::unknown(shape.rank());
    case 2: {
      PartialShape partial(shape);
      for (int i = 0; i < shape.rank(); ++i) {
        // Without its zero a shape may have too many elements.
        if (shape.dim(i) != 0 && chance.one_in(2)) partial = partial.with_dim(i, dynamic);
      }
      return partial;
    }
    default:
      return chance.one_in(40) ? PartialShape(random_shape(chance)) : PartialShape(shape);
  }
}

template <class T>
std::vector<T> random_list(Chance& chance, auto&& element) {
  std::vector<T> list(chance.one_in(8) ? chance.below(20) : chance.below(5));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = element();
  return list;
}

AttrValue random_attr(Chance& chance, AttrKind kind) {
  static const std::array<std::string, 8> texts{"SAME", "VALID",    "NHWC", "NCHW",
                                                "",     "nonsense", "a/b",  std::string(300, 'y')};
  const auto integer = [&] { return random_integer(chance); };
  const auto real = [&] { return random_real<double>(chance); };
  const auto text = [&] { return chance.pick(texts); };
  const auto dtype = [&] {
    return chance.one_in(10) ? static_cast<DType>(chance.below(256)) : random_element_type(chance);
  };
  const auto shape = [&] { return random_knowledge(chance, random_shape(chance)); };
  switch (kind) {
    case AttrKind::none:
      return std::monostate();
    case AttrKind::boolean:
      return chance.one_in(2);
    case AttrKind::integer:
      return integer();
    case AttrKind::real:
      return real();
    case AttrKind::string:
      return text();
    case AttrKind::dtype:
      return dtype();
    case AttrKind::shape:
      return shape();
    case AttrKind::tensor:
      return random_tensor(chance, random_element_type(chance), random_shape(chance));
    case AttrKind::boolean_list:
      return random_list<bool>(chance, [&] { return chance.one_in(2); });
    case AttrKind::integer_list:
      return random_list<std::int64_t>(chance, integer);
    case AttrKind::real_list:
      return random_list<double>(chance, real);
    case AttrKind::string_list:
      return random_list<std::string>(chance, text);
    case AttrKind::dtype_list:
      return random_list<DType>(chance, dtype);
    case AttrKind::shape_list:
      return random_list<PartialShape>(chance, shape);
    case AttrKind::function:
      return FunctionName{text()};
  }
  return std::monostate();
}

/// The values of `tensor` over and over in another shape.
AnyTensor resized(Chance& chance, const AnyTensor& tensor, const Shape& shape) {
  if (tensor.num_elements() == 0 || shape.num_elements() > most_elements || chance.one_in(4))
    return random_tensor(chance, tensor.dtype(), shape);
  AnyTensor result(tensor.dtype(), shape);
  visit_dtype<AllTypes>(tensor.dtype(), [&]<class T>() {
    const auto from = tensor.span<T>();
    const auto to = result.span<T>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i % from.size()];
  });
  return result;
}

/// The arguments of a call, before they become nodes.
struct Arguments {
  std::vector<AnyTensor> inputs;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  std::vector<std::pair<std::string, DType>> types;
};

/// The number of inputs in a list, as its attribute says.
std::size_t list_size(const OpDef& op, const ArgDef& list, const Arguments& arguments) {
  const AttrField& field = op.attr_fields[static_cast<std::size_t>(list.attr)];
  AttrValue value = field.get(op.make_attrs().get());
  for (const auto& [name, given] : arguments.attrs) {
    if (name == field.name) value = given;
  }
  if (const auto* types = std::get_if<std::vector<DType>>(&value)) return types->size();
  const auto* size = std::get_if<std::int64_t>(&value);
  return size == nullptr || *size < 0 ? 0 : static_cast<std::size_t>(std::min<std::int64_t>(*size, 16));
}

/// Says for each input of a call whether it is a handle, as far as one can tell: the call may not fit the signature.
std::vector<bool> handles_among(const OpDef& op, const Arguments& arguments) {
  const std::size_t count = arguments.inputs.size();
  const auto size_of_arg = [&](const ArgDef& arg) { return arg.is_list() ? list_size(op, arg, arguments) : 1; };
  std::size_t decided = 0;
  for (const ArgDef& arg : op.inputs) decided += arg.is_open_list() ? 0 : size_of_arg(arg);
  std::vector<bool> are_handles;
  for (const ArgDef& arg : op.inputs) {
    const std::size_t takes = arg.is_open_list() ? std::max(count, decided) - decided : size_of_arg(arg);
    are_handles.insert(are_handles.end(), takes, arg.dtype == DType::resource);
  }
  are_handles.resize(count);
  return are_handles;
}

bool has_list_input(const OpDef& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [](const ArgDef& arg) { return arg.is_list(); });
}

/// Some input's element type decides parameter `p`.
bool is_decided(const OpDef& op, std::size_t p) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [p](const ArgDef& arg) {
    return (arg.kind == ArgDef::Kind::param || arg.kind == ArgDef::Kind::param_list) && arg.param == p;
  });
}

/// From the signature alone.
Arguments random_arguments(Chance& chance, const OpDef& op) {
  Arguments arguments;
  std::array<DType, TypeArgs::max_size> types{};
  for (std::size_t p = 0; p < op.type_params.size(); ++p) {
    do {
      types[p] = random_element_type(chance);
    } while (!op.type_params[p].allows(types[p]) && !chance.one_in(60));
    if (!is_decided(op, p) ? !chance.one_in(40) : chance.one_in(6))
      arguments.types.emplace_back(op.type_params[p].name, types[p]);
  }
  const Shape usual = random_shape(chance);
  const auto shape = [&] {
    if (chance.one_in(5)) return random_shape(chance);
    if (chance.one_in(5) && usual.rank() > 0)
      return usual.subshape(static_cast<int>(chance.below(static_cast<std::size_t>(usual.rank()))), usual.rank());
    if (chance.one_in(5) && usual.rank() > 0)
      return usual.with_dim(static_cast<int>(chance.below(static_cast<std::size_t>(usual.rank()))), 1);
    return chance.one_in(8) ? Shape{} : usual;
  };
  for (const ArgDef& arg : op.inputs) {
    std::vector<DType> listed;
    for (std::size_t n = arg.is_list() ? chance.below(5) : 1; n > 0; --n) {
      DType dtype = arg.dtype;
      if (arg.kind == ArgDef::Kind::param || arg.kind == ArgDef::Kind::param_list) dtype = types[arg.param];
      if (!is_element(dtype)) {
        dtype = op.type_params.empty() || chance.one_in(6) ? random_element_type(chance) : types[0];
      }
      // Small vectors of integers are mostly axes, extents and positions.
      const bool is_index = is_integer(dtype) && chance.one_in(2);
      arguments.inputs.push_back(
          random_tensor(chance, dtype, is_index ? Shape{chance.between(0, usual.rank())} : shape()));
      listed.push_back(dtype);
    }
    if (arg.attr < 0) continue;
    const std::string name(op.attr_fields[static_cast<std::size_t>(arg.attr)].name);
    if (arg.kind == ArgDef::Kind::typed_list) {
      arguments.attrs.emplace_back(name, listed);
    } else {
      arguments.attrs.emplace_back(name, static_cast<std::int64_t>(listed.size()));
    }
  }
  for (const AttrField& field : op.attr_fields) {
    const bool is_given = std::any_of(arguments.attrs.begin(), arguments.attrs.end(),
                                      [&](const auto& attr) { return attr.first == field.name; });
    if (!is_given && chance.one_in(2)) arguments.attrs.emplace_back(field.name, random_attr(chance, field.kind));
  }
  return arguments;
}

const std::vector<const OracleCase*>& oracle_cases_of(std::string_view op) {
  static const auto by_op = [] {
    std::map<std::string, std::vector<const OracleCase*>, std::less<>> map;
    for (const OracleCase& oracle_case : oracle_cases()) map[oracle_case.op].push_back(&oracle_case);
    return map;
  }();
  static const std::vector<const OracleCase*> none;
  const auto found = by_op.find(op);
  return found == by_op.end() ? none : found->second;
}

Arguments arguments_of(Chance& chance, const OpDef& op, const OracleCase& oracle_case) {
  Arguments arguments;
  const DType t = chance.pick(oracle_case.types);
  for (const OracleTensor& input : oracle_case.inputs) arguments.inputs.push_back(input.make(input.dtype_for(t)));
  for (const auto& [name, value] : oracle_case.attrs.items()) {
    for (const AttrField& field : op.attr_fields) {
      if (field.name == name) arguments.attrs.emplace_back(name, attr_from_json(value, field.kind, t));
    }
    for (const TypeParamDef& param : op.type_params) {
      if (param.name == name) arguments.types.emplace_back(name, dtype_from_oracle_name(value));
    }
  }
  for (std::size_t p = 0; p < op.type_params.size(); ++p) {
    const TypeParamDef& param = op.type_params[p];
    const bool is_given = std::any_of(arguments.types.begin(), arguments.types.end(),
                                      [&](const auto& type) { return type.first == param.name; });
    if (!is_given && !is_decided(op, p)) arguments.types.emplace_back(param.name, t);
  }
  return arguments;
}

void change_extent_everywhere(Chance& chance, Arguments& arguments) {
  const AnyTensor& model = chance.pick(arguments.inputs);
  if (model.rank() == 0) return;
  const std::int64_t old = model.dim(static_cast<int>(chance.below(static_cast<std::size_t>(model.rank()))));
  const std::int64_t extent = chance.pick(std::array<std::int64_t, 8>{0, 1, 2, 3, 4, 7, 16, 33});
  for (AnyTensor& input : arguments.inputs) {
    Shape shape = input.shape();
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i) == old) shape = shape.with_dim(i, extent);
    }
    if (shape.num_elements() <= most_elements) input = resized(chance, input, shape);
  }
}

void change(Chance& chance, const OpDef& op, Arguments& arguments) {
  if (!op.attr_fields.empty() && (arguments.inputs.empty() || chance.one_in(4))) {
    const AttrField& field = op.attr_fields[chance.below(op.attr_fields.size())];
    std::erase_if(arguments.attrs, [&](const auto& attr) { return attr.first == field.name; });
    arguments.attrs.emplace_back(field.name, random_attr(chance, chance.one_in(50) ? AttrKind::real : field.kind));
    return;
  }
  if (arguments.inputs.empty()) return;
  const std::size_t i = chance.below(arguments.inputs.size());
  AnyTensor& input = arguments.inputs[i];
  switch (chance.below(8)) {
    case 0:
      input = random_tensor(chance, input.dtype(), input.shape());
      break;
    case 1:
    case 2:
      if (input.num_elements() == 0) break;
      input = input.deep_copy();
      visit_dtype<AllTypes>(input.dtype(), [&]<class T>() {
        const auto elements = input.span<T>();
        elements[chance.below(elements.size())] = random_element<T>(chance);
      });
      break;
    case 3:
      input = resized(chance, input, random_shape(chance));
      break;
    case 4:
      input = random_tensor(chance, random_element_type(chance), input.shape());
      break;
    case 5:
      if (has_list_input(op) && chance.one_in(2)) {
        arguments.inputs.push_back(arguments.inputs.back());
      } else if (has_list_input(op) || chance.one_in(10)) {
        arguments.inputs.pop_back();
      }
      break;
    default:
      change_extent_everywhere(chance, arguments);
  }
}

/// Arguments from `model` if there is one, with some changes.
Arguments drawn_arguments(Chance& chance, const OpDef& op, const OracleCase* model) {
  for (;;) {
    try {
      Arguments arguments = model != nullptr ? arguments_of(chance, op, *model) : random_arguments(chance, op);
      for (std::size_t changes = chance.below(model != nullptr ? 4 : 2); changes > 0; --changes)
        change(chance, op, arguments);
      return arguments;
    } catch (const Error&) {
      // The product of the extents is no shape, or has too many elements.
    }
  }
}

NodeDef node(std::string name, std::string op, std::vector<std::string> inputs = {}) {
  NodeDef def;
  def.name = std::move(name);
  def.op = std::move(op);
  def.inputs = std::move(inputs);
  return def;
}

void add_constant(RandomCall& call, const std::string& name, const AnyTensor& value) {
  NodeDef constant = node(name, "Const");
  constant.types.emplace_back("dtype", value.dtype());
  constant.attrs.emplace_back("value", value);
  call.def.nodes.push_back(std::move(constant));
}

std::string add_variable(RandomCall& call, Chance& chance, const std::string& name, const AnyTensor& value) {
  NodeDef variable = node(name, "Variable");
  variable.types.emplace_back("dtype", value.dtype());
  const bool is_honest = !chance.one_in(8);
  variable.attrs.emplace_back("shape",
                              is_honest ? PartialShape(value.shape()) : random_knowledge(chance, random_shape(chance)));
  call.def.nodes.push_back(std::move(variable));
  add_constant(call, name + "_value", value);
  NodeDef assign = node(name + "_assign", "Assign", {name, name + "_value"});
  if (!is_honest) assign.attrs.emplace_back("validate_shape", false);
  call.def.nodes.push_back(std::move(assign));
  NodeDef read = node(name + "_read", "ReadVariable", {name});
  read.types.emplace_back("dtype", value.dtype());
  call.def.nodes.push_back(std::move(read));
  call.variables.push_back(name);
  return name;
}

std::string add_input(RandomCall& call, Chance& chance, const std::string& name, const AnyTensor& value) {
  if (chance.one_in(3)) {
    add_constant(call, name, value);
  } else {
    NodeDef placeholder = node(name, "Placeholder");
    placeholder.types.emplace_back("dtype", value.dtype());
    placeholder.attrs.emplace_back("shape", random_knowledge(chance, value.shape()));
    call.def.nodes.push_back(std::move(placeholder));
    call.feeds.emplace_back(name, value);
  }
  call.edges.push_back(name);
  if (chance.one_in(4)) call.on_second.push_back(name);
  if (!chance.one_in(6)) return name;
  call.def.nodes.push_back(node(name + "_copy", "Identity", {name}));
  return name + "_copy";
}

bool draws_its_seed(const OpDef& op, const Arguments& arguments) {
  const auto has_seed = [](const AttrField& field) { return field.name == "seed"; };
  if (std::none_of(op.attr_fields.begin(), op.attr_fields.end(), has_seed)) return false;
  for (const auto& [name, value] : arguments.attrs) {
    if (name == "seed" && !attr_equal(value, std::int64_t{0})) return false;
  }
  return true;
}

}  // namespace

RandomCall random_call(const OpDef& op, std::uint64_t seed) {
  Chance chance(seed);
  RandomCall call;
  call.op = op.name;
  call.seed = seed;
  call.mode = static_cast<int>(chance.below(4));
  const auto& known = oracle_cases_of(op.name);
  const bool from_oracle = !known.empty() && !chance.one_in(3);
  const Arguments arguments = drawn_arguments(chance, op, from_oracle ? chance.pick(known) : nullptr);
  NodeDef called = node("call", std::string(op.name));
  const std::vector<bool> are_handles = handles_among(op, arguments);
  for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
    const AnyTensor& value = arguments.inputs[i];
    const std::string name = str_cat("in", i);
    // One edge on two inputs: kernels that write into their inputs must notice.
    if (i > 0 && chance.one_in(8) && are_handles[i] == are_handles[i - 1] &&
        value.dtype() == arguments.inputs[i - 1].dtype()) {
      called.inputs.push_back(called.inputs.back());
    } else {
      called.inputs.push_back(are_handles[i] ? add_variable(call, chance, name, value)
                                             : add_input(call, chance, name, value));
    }
  }
  called.attrs = arguments.attrs;
  called.types = arguments.types;
  call.def.nodes.push_back(std::move(called));
  call.draws_its_seed = draws_its_seed(op, arguments);
  return call;
}

std::string RandomCall::to_string() const {
  std::string text = str_cat("op ", op, ", case seed ", seed, ", mode ", mode, "\n", to_json(def));
  for (const auto& [name, tensor] : feeds) text += str_cat("\nfeed ", name, " = ", tensor.to_string(4096));
  text += "\non the second device of the second session:";
  for (const std::string& name : on_second) text += " " + name;
  return text;
}

}  // namespace dflow::testing
