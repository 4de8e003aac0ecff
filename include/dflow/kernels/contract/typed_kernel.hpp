#pragma once

/// Public: the kernel of an op, `Kernel<Op, Device, Ts...>`, which you specialise.

#include <dflow/base/api.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/op/op_def_of.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace dflow {

/// The computation of op `O` on device `Device` for element types `Ts`, one per type parameter. Specialise it beside
/// the op's other kernels. A specialisation for the first type parameters only, or for none, serves all types of the
/// other parameters: `Kernel<Identity, Cpu>` is one class for all elements. It comes before specialisations for more
/// parameters.
///
/// A specialisation is default constructible, or takes a `const KernelInit&`, and has one of
///
/// - `void operator()(KernelContext&) const`, which allocates its outputs itself;
/// - `void operator()(KernelContext&, const Tensor<A>&..., Tensor<B>&...) const`, one argument per input and output,
///   called with outputs allocated in the shapes that the op's `infer` gives for the step's input shapes. An argument
///   of a type parameter that the specialisation leaves open is an `AnyTensor`;
/// - `void run_async(KernelContext&, AsyncKernel::Done) const`,
/// - `static std::unique_ptr<AnyKernel> make(const KernelInit&)`, which returns a kernel of any class.
///
/// A member `attrs` of type `O::Attrs` is set from the node. A member `double cost_ns(const KernelInit&)` may estimate
/// the time of a run, or `static KernelCost cost(const KernelInit&)` its flops and bytes. `static constexpr bool`
/// members tell the executor about the kernel: `splits` (divides a long run among the pool's threads itself),
/// `keeps_state`, `sees_dead_inputs`, `makes_dead_outputs`, `repeats` (`kernels/contract/kernel.hpp`). If `splits`
/// depends on the node, it is `static bool splits(const KernelInit&)`. `static bool supports(const TypeArgs&)` leaves
/// out some of the element types that the specialisation would serve. `static constexpr std::uint64_t host_inputs,
/// host_outputs` are the bits of `KernelEntry`, the same for all element types. `static constexpr JointKernel joint`
/// says how several nodes run as one.
template <OpType O, class Device, class... Ts>
struct Kernel;

/// Makes the kernel of a node from the `Kernel<O, Device, Ts...>` specialisations that the including file can see; null
/// for element types without a kernel.
template <OpType O, class Device>
std::unique_ptr<AnyKernel> make_kernel(const KernelInit& init);

/// The same for an op of the library: instantiated once, in the unit of the op's family. A missing one is a link error.
template <OpType O, class Device>
DFLOW_API std::unique_ptr<AnyKernel> make_library_kernel(const KernelInit& init);

/// Allocates all outputs of `context` in the shapes that the node's op infers from its inputs' actual shapes and
/// values.
///
/// Errors: the errors of the op's shape function; InvalidArgument if the function leaves a shape open.
void allocate_inferred_outputs(KernelContext& context);

namespace detail {

/// The library promises a kernel for every element type, so a missing kernel is an error. Other ops and devices may
/// leave out element types.
template <class O, class Device>
constexpr bool in_library = O::in_library && requires { requires Device::in_library; };

/// A kernel of the op for these first element types, with any further element types, can be seen here.
template <class O, class Device, class... Ts>
concept HasKernel = requires { sizeof(Kernel<O, Device, Ts...>); };

/// Calls `Use::of<Bound...>(arg)` for the kernel that serves these element types. `Bound` lists the types of the
/// kernel's specialisation: all types, or the first ones. Returns an empty result if there is no kernel.
template <class Use, class Arg, class... Bound>
typename Use::Result use_kernel(const TypeArgs& types, const Arg& arg, TypeList<Bound...> bound = {});

template <class Use, class Arg, class... Bound, class... Allowed>
typename Use::Result use_kernel_of_next(const TypeArgs& types, const Arg& arg, TypeList<Bound...>,
                                        TypeList<Allowed...>) {
  typename Use::Result result{};
  static_cast<void>(((types[sizeof...(Bound)] == dtype_of<Allowed> &&
                      (result = use_kernel<Use>(types, arg, TypeList<Bound..., Allowed>{}), true)) ||
                     ...));
  return result;
}

template <class Use, class Arg, class... Bound>
typename Use::Result use_kernel(const TypeArgs& types, const Arg& arg, TypeList<Bound...> bound) {
  using O = typename Use::Op;
  using Device = typename Use::Device;
  constexpr std::size_t count = O::TypeParams::size;
  if constexpr (HasKernel<O, Device, Bound...> || (in_library<O, Device> && sizeof...(Bound) == count)) {
    using K = Kernel<O, Device, Bound...>;
    if constexpr (requires { K::supports(types); }) {
      if (!K::supports(types)) return {};
    }
    return Use::template of<Bound...>(arg);
  } else if constexpr (sizeof...(Bound) < count) {
    return use_kernel_of_next<Use>(types, arg, bound, element_t<sizeof...(Bound), typename O::TypeParams>{});
  } else {
    return {};
  }
}

/// The kernel ends when it calls `done`.
template <class K>
concept RunsAsync = requires(const K& kernel, KernelContext& context, AsyncKernel::Done done) {
  kernel.run_async(context, std::move(done));
};

/// The class of tensor that a kernel for these element types receives for an argument.
template <class Arg, class... Ts>
struct ArgTensor {};
template <Element Arg, class... Ts>
struct ArgTensor<Arg, Ts...> {
  using type = Tensor<Arg>;
};
template <std::uint8_t I, class... Ts>
struct ArgTensor<TypeParam<I>, Ts...> {
  using type = AnyTensor;
};
template <std::uint8_t I, class... Ts>
  requires(I < sizeof...(Ts))
struct ArgTensor<TypeParam<I>, Ts...> {
  using type = Tensor<element_t<I, TypeList<Ts...>>>;
};

template <class T>
const T& tensor_as(const AnyTensor& tensor) {
  if constexpr (std::is_same_v<T, AnyTensor>) {
    return tensor;
  } else {
    return T::of(tensor);
  }
}

template <class K, class Inputs, class Outputs, class... Ts>
struct TypedCall;
template <class K, class... Ins, class... Outs, class... Ts>
struct TypedCall<K, In<Ins...>, Out<Outs...>, Ts...> {
  template <std::size_t... I, std::size_t... O>
  static void run(const K& kernel, KernelContext& context, std::index_sequence<I...>, std::index_sequence<O...>) {
    kernel(context, tensor_as<typename ArgTensor<Ins, Ts...>::type>(context.input(static_cast<int>(I)))...,
           static_cast<typename ArgTensor<Outs, Ts...>::type&>(context.output(static_cast<int>(O)))...);
  }
  static constexpr bool fits =
      requires(const K& kernel, KernelContext& context, typename ArgTensor<Outs, Ts...>::type&... outputs) {
        kernel(context, std::declval<const typename ArgTensor<Ins, Ts...>::type&>()..., outputs...);
      };
  static void run(const K& kernel, KernelContext& context) {
    allocate_inferred_outputs(context);
    run(kernel, context, std::index_sequence_for<Ins...>{}, std::index_sequence_for<Outs...>{});
  }
};

template <class O, class K>
K make_typed(const KernelInit& init) {
  if constexpr (requires { K(init); }) {
    return K(init);
  } else {
    K kernel{};
    if constexpr (requires { kernel.attrs = init.node.template attrs_as<O>(); }) {
      kernel.attrs = init.node.template attrs_as<O>();
    }
    return kernel;
  }
}

/// The kernel's device declares `repeats` for the library's ops.
template <class K>
constexpr bool device_repeats = false;
template <class O, class Device, class... Ts>
constexpr bool device_repeats<Kernel<O, Device, Ts...>> = requires { requires Device::repeats; };

/// The traits that a kernel's static members give. Unless they say otherwise, the library's kernels and the loops of
/// elementwise ops divide their own work, and the library's kernels for devices with `repeats` repeat it.
template <class O, class K>
KernelTraits traits_of([[maybe_unused]] const KernelInit& init) {
  KernelTraits traits;
  traits.splits = O::in_library || ElementwiseOpType<O>;
  traits.repeats = O::in_library && device_repeats<K>;
  if constexpr (requires { K::splits(init); }) {
    traits.splits = K::splits(init);
  } else if constexpr (requires { K::splits; }) {
    traits.splits = K::splits;
  }
  if constexpr (requires { K::keeps_state; }) traits.keeps_state = K::keeps_state;
  if constexpr (requires { K::sees_dead_inputs; }) traits.sees_dead_inputs = K::sees_dead_inputs;
  if constexpr (requires { K::makes_dead_outputs; }) traits.makes_dead_outputs = K::makes_dead_outputs;
  if constexpr (requires { K::repeats; }) traits.repeats = K::repeats;
  return traits;
}

template <class O, class K, class... Ts>
class SyncKernelOf final : public AnyKernel {
 public:
  explicit SyncKernelOf(const KernelInit& init) : AnyKernel(traits_of<O, K>(init)), kernel_(make_typed<O, K>(init)) {
    if constexpr (requires { kernel_.cost_ns(init); }) cost_ns_ = kernel_.cost_ns(init);
  }
  void run(KernelContext& context) const override {
    if constexpr (requires { kernel_(context); }) {
      kernel_(context);
    } else {
      using Call = TypedCall<K, InputsOf<O>, OutputsOf<O>, Ts...>;
      static_assert(
          Call::fits,
          "a kernel is called as `void operator()(KernelContext&, inputs..., outputs...) const`, with a `const "
          "Tensor<A>&` for each of the op's Inputs and a `Tensor<B>&` for each of its Outputs, or as `void "
          "operator()(KernelContext&) const`");
      if constexpr (Call::fits) Call::run(kernel_, context);
    }
  }
  double cost_ns() const noexcept override { return cost_ns_; }

 private:
  K kernel_;
  double cost_ns_ = 0;
};

template <class O, class K>
class AsyncKernelOf final : public AsyncKernel {
 public:
  explicit AsyncKernelOf(const KernelInit& init)
      : AsyncKernel(traits_of<O, K>(init)), kernel_(make_typed<O, K>(init)) {}
  void run_async(KernelContext& context, Done done) const override { kernel_.run_async(context, std::move(done)); }

 private:
  K kernel_;
};

/// Makes the kernel. Pointers are made to the base class, not by make_unique: unique pointers to some thousand classes
/// take long to compile.
template <class O, class D>
struct MakeKernel {
  using Op = O;
  using Device = D;
  using Result = std::unique_ptr<AnyKernel>;
  template <class... Ts>
  static Result of(const KernelInit& init) {
    using K = Kernel<O, D, Ts...>;
    if constexpr (requires { K::make(init); }) {
      return K::make(init);
    } else if constexpr (RunsAsync<K>) {
      return Result(new AsyncKernelOf<O, K>(init));
    } else {
      return Result(new SyncKernelOf<O, K, Ts...>(init));
    }
  }
};

}  // namespace detail

template <OpType O, class Device>
std::unique_ptr<AnyKernel> make_kernel(const KernelInit& init) {
  return detail::use_kernel<detail::MakeKernel<O, Device>>(init.node.types, init);
}

}  // namespace dflow
