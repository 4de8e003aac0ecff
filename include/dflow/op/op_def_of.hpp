#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/graph/op_def.hpp>
#include <dflow/op/attrs_reflection.hpp>
#include <dflow/op/derivative.hpp>
#include <dflow/op/elementwise.hpp>
#include <dflow/op/gradient_context.hpp>

#include <array>
#include <concepts>
#include <memory>
#include <optional>
#include <utility>

namespace dflow {

namespace detail {

/// Shapes of an elementwise op: all inputs broadcast together.
void infer_elementwise(InferContext& context);

template <class O, std::size_t... I>
constexpr std::array<TypeParamDef, sizeof...(I)> type_params_of(std::index_sequence<I...>) {
  return {TypeParamDef{O::type_names[I], dtype_mask<element_t<I, typename O::TypeParams>>}...};
}

template <class O>
inline constexpr auto type_params = type_params_of<O>(std::make_index_sequence<O::TypeParams::size>{});

template <class O>
concept InfersByContext = requires(InferContext& context) { O::infer(context); };

template <class O, std::size_t... I>
constexpr bool infers_from_shapes(std::index_sequence<I...>) {
  return requires(const typename O::Attrs& attrs, const PartialShape& shape) {
    { O::infer(attrs, (static_cast<void>(I), shape)...) } -> std::convertible_to<PartialShape>;
  };
}

/// Calls `PartialShape infer(const Attrs&, PartialShape...)` with as many shapes as the op has inputs.
template <class O, std::size_t... I>
void infer_from_shapes(InferContext& context, std::index_sequence<I...>) {
  context.set_output(0, O::infer(context.attrs<O>(), context.input(static_cast<int>(I))...));
}

template <class O>
void infer_shape(InferContext& context) {
  if constexpr (InfersByContext<O>) {
    O::infer(context);
  } else if constexpr (ElementwiseOpType<O>) {
    infer_elementwise(context);
  } else {
    constexpr std::make_index_sequence<ArgsOf<O, InputsOf<O>>::value.size()> inputs;
    constexpr bool has_infer = infers_from_shapes<O>(inputs);
    static_assert(
        has_infer,
        "an op that is not elementwise says its shapes: `static PartialShape infer(const Attrs&, "
        "PartialShape...)` with one PartialShape for each of its Inputs, or `static void infer(InferContext&)`");
    if constexpr (has_infer) infer_from_shapes<O>(context, inputs);
  }
}

template <class O>
constexpr auto infer_of() -> void (*)(InferContext&) {
  return &infer_shape<O>;
}

template <class O>
concept HasOutputListSize = requires(const typename O::Attrs& attrs) { O::output_list_size(attrs); };

template <class O>
constexpr auto output_list_size_of() -> std::int64_t (*)(const void*) {
  if constexpr (HasOutputListSize<O>) {
    return [](const void* attrs) -> std::int64_t {
      return O::output_list_size(*static_cast<const typename O::Attrs*>(attrs));
    };
  } else {
    return nullptr;
  }
}

template <class O>
constexpr std::span<const ArgDef> inputs_of() {
  using Args = ArgsOf<O, InputsOf<O>>;
  static_assert(Args::num_open_lists <= 1, "of an op's inputs one list may be open: the others name their attribute");
  return Args::value;
}

template <class O>
constexpr std::span<const ArgDef> outputs_of() {
  using Args = ArgsOf<O, OutputsOf<O>>;
  static_assert(Args::num_open_lists == (HasOutputListSize<O> ? 1 : 0),
                "an op whose output is a list names its attribute, or defines output_list_size");
  for (const ArgDef& arg : Args::value) {
    if (arg.kind == ArgDef::Kind::any_list) throw "outputs of different element types are a TypedList";
  }
  return Args::value;
}

template <class O, class First, class Reader>
std::shared_ptr<const void> fused_attrs(const Node& first, const Node& reader) {
  std::optional<typename O::Attrs> attrs = O::fuse(first.attrs_as<First>(), reader.attrs_as<Reader>());
  return attrs ? reflect::share(std::move(*attrs)) : nullptr;
}

template <class O, class First, class Reader>
constexpr FusedPair fused_pair() {
  static_assert(!O::is_stateful && !First::is_stateful && !Reader::is_stateful,
                "an op with a state of its own is never put in the place of another, nor another in its place");
  static_assert(inputs_of<O>().size() + 1 == inputs_of<First>().size() + inputs_of<Reader>().size(),
                "an op that fuses two has the inputs of the first, then those of the reader but its first");
  static_assert(outputs_of<First>().size() == 1 && outputs_of<O>().size() == outputs_of<Reader>().size(),
                "an op that fuses two has the outputs of the reader, which reads the only output of the first");
  return {&op_def_of<First>, &op_def_of<Reader>, &fused_attrs<O, First, Reader>};
}

template <class O, class... First, class... Reader>
constexpr std::array<FusedPair, sizeof...(First)> fused_pairs(TypeList<OpPair<First, Reader>...>) {
  return {fused_pair<O, First, Reader>()...};
}

template <class O>
inline constexpr auto fuses_of = fused_pairs<O>(typename O::Fuses{});

}  // namespace detail

/// The op's definition, folded from its struct.
template <OpType O>
inline constexpr OpDef op_def{
    .name = O::name,
    .type_params = detail::type_params<O>,
    .inputs = detail::inputs_of<O>(),
    .outputs = detail::outputs_of<O>(),
    .attr_fields = reflect::fields_of<typename O::Attrs>,
    .make_attrs = &reflect::make_default<typename O::Attrs>,
    .output_list_size = detail::output_list_size_of<O>(),
    .infer = detail::infer_of<O>(),
    .gradient = detail::gradient_of<O>(),
    .gradient_stops = detail::gradient_stops_of<O>(),
    .is_stateful = O::is_stateful,
    .role = O::role,
    .needs_kernel = O::has_kernel,
    .fuses = detail::fuses_of<O>,
};

template <class O>
const OpDef& detail::op_def_of() {
  return op_def<O>;
}

template <class O>
const typename O::Attrs& Node::attrs_as() const {
  static const typename O::Attrs defaults{};
  return attrs == nullptr ? defaults : *static_cast<const typename O::Attrs*>(attrs.get());
}

}  // namespace dflow
