#pragma once

#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/op/op_def_of.hpp>

#include <memory>
#include <utility>

namespace dflow {

/// The computation of op `O` on device `Device` for element types `Ts`, one per type parameter: specialise it beside
/// the op's other kernels. A specialisation is default constructible, or takes a `const KernelInit&`, and has one of
///
/// - `void operator()(KernelContext&) const`, which allocates its outputs itself;
/// - `void operator()(KernelContext&, const Tensor<A>&..., Tensor<B>&...) const`, one argument per input and output,
///   called with outputs allocated in the shapes that the op's `infer` gives for the step's input shapes;
/// - `void run_async(KernelContext&, AsyncKernel::Done) const`,
/// - `static std::unique_ptr<AnyKernel> make(const KernelInit&)`, which returns a kernel of any class.
///
/// A member `attrs` of type `O::Attrs` is set from the node. A member `double cost_ns(const KernelInit&)` may estimate
/// the time of a run, or `static KernelCost cost(const KernelInit&)` its flops and bytes. `static constexpr bool`
/// members say what the executor should know: `splits` (divides a long run among the pool's threads itself),
/// `keeps_state`, `sees_dead_inputs`, `makes_dead_outputs`, `repeats` (`kernels/kernel.hpp`). `static constexpr
/// std::uint64_t host_inputs, host_outputs` are the bits of `KernelEntry`, the same for all element types. `static
/// constexpr JointKernel joint` says how several nodes run as one.
template <OpType O, class Device, class... Ts>
struct Kernel;

/// Makes the kernel of a node from the `Kernel<O, Device, Ts...>` specialisations the including file can see; null for
/// element types without one.
template <OpType O, class Device>
std::unique_ptr<AnyKernel> make_kernel(const KernelInit& init);

/// The same for an op of the library: instantiated once, in the unit of the op's family. A missing one is a link error.
template <OpType O, class Device>
std::unique_ptr<AnyKernel> make_library_kernel(const KernelInit& init);

namespace detail {

/// The library promises a kernel for every element type, so a missing one is an error; others leave out what they like.
template <class O, class Device>
constexpr bool in_library = O::in_library && requires { requires Device::in_library; };

/// A kernel of the op for these element types can be seen here.
template <class O, class Device, class... Ts>
concept HasKernel = requires { sizeof(Kernel<O, Device, Ts...>); };

/// Allocates all outputs of `context` in the shapes that the node's op infers from its inputs' actual shapes and
/// values.
void allocate_inferred_outputs(KernelContext& context);

/// It ends when it calls `done`.
template <class K>
concept RunsAsync = requires(const K& kernel, KernelContext& context, AsyncKernel::Done done) {
  kernel.run_async(context, std::move(done));
};

template <class Arg, class... Ts>
struct ArgType {
  using type = Arg;
};
template <std::uint8_t I, class... Ts>
struct ArgType<TypeParam<I>, Ts...> {
  using type = element_t<I, TypeList<Ts...>>;
};

template <class K, class Inputs, class Outputs, class... Ts>
struct TypedCall;
template <class K, class... Ins, class... Outs, class... Ts>
struct TypedCall<K, In<Ins...>, Out<Outs...>, Ts...> {
  template <std::size_t... I, std::size_t... O>
  static void run(const K& kernel, KernelContext& context, std::index_sequence<I...>, std::index_sequence<O...>) {
    kernel(context, Tensor<typename ArgType<Ins, Ts...>::type>::of(context.input(static_cast<int>(I)))...,
           static_cast<Tensor<typename ArgType<Outs, Ts...>::type>&>(context.output(static_cast<int>(O)))...);
  }
  static constexpr bool fits =
      requires(const K& kernel, KernelContext& context, Tensor<typename ArgType<Outs, Ts...>::type>&... outputs) {
        kernel(context, std::declval<const Tensor<typename ArgType<Ins, Ts...>::type>&>()..., outputs...);
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

/// The device that a kernel is for says so of the library's ops.
template <class K>
constexpr bool device_repeats = false;
template <class O, class Device, class... Ts>
constexpr bool device_repeats<Kernel<O, Device, Ts...>> = requires { requires Device::repeats; };

/// What a kernel's static members say. The library's kernels and the loops of elementwise ops divide their own work,
/// and those for devices that say so repeat it, unless they say otherwise.
template <class O, class K>
constexpr KernelTraits traits_of() {
  KernelTraits traits;
  traits.splits = O::in_library || ElementwiseOpType<O>;
  traits.repeats = O::in_library && device_repeats<K>;
  if constexpr (requires { K::splits; }) traits.splits = K::splits;
  if constexpr (requires { K::keeps_state; }) traits.keeps_state = K::keeps_state;
  if constexpr (requires { K::sees_dead_inputs; }) traits.sees_dead_inputs = K::sees_dead_inputs;
  if constexpr (requires { K::makes_dead_outputs; }) traits.makes_dead_outputs = K::makes_dead_outputs;
  if constexpr (requires { K::repeats; }) traits.repeats = K::repeats;
  return traits;
}

template <class O, class K, class... Ts>
class SyncKernelOf final : public AnyKernel {
 public:
  explicit SyncKernelOf(const KernelInit& init) : AnyKernel(traits_of<O, K>()), kernel_(make_typed<O, K>(init)) {
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
  explicit AsyncKernelOf(const KernelInit& init) : AsyncKernel(traits_of<O, K>()), kernel_(make_typed<O, K>(init)) {}
  void run_async(KernelContext& context, Done done) const override { kernel_.run_async(context, std::move(done)); }

 private:
  K kernel_;
};

/// Pointers are made to the base class, not by make_unique: a unique_ptr of each of some thousand kernels was half of
/// what a header-only program took to compile.
template <class O, class Device, class... Ts>
std::unique_ptr<AnyKernel> make_bound(const KernelInit& init) {
  using K = Kernel<O, Device, Ts...>;
  if constexpr (requires { K::make(init); }) {
    return K::make(init);
  } else if constexpr (RunsAsync<K>) {
    return std::unique_ptr<AnyKernel>(new AsyncKernelOf<O, K>(init));
  } else {
    return std::unique_ptr<AnyKernel>(new SyncKernelOf<O, K, Ts...>(init));
  }
}

/// Binds the type parameters one after the other to the node's element types.
template <class O, class Device, class... Bound>
std::unique_ptr<AnyKernel> bind_types(const KernelInit& init);

template <class O, class Device, class... Bound, class... Allowed>
std::unique_ptr<AnyKernel> bind_next(const KernelInit& init, TypeList<Bound...>, TypeList<Allowed...>) {
  std::unique_ptr<AnyKernel> kernel;
  const DType wanted = init.node.types[sizeof...(Bound)];
  static_cast<void>(
      ((wanted == dtype_of<Allowed> && (kernel = bind_types<O, Device, Bound..., Allowed>(init), true)) || ...));
  return kernel;
}

template <class O, class Device, class... Bound>
std::unique_ptr<AnyKernel> bind_types(const KernelInit& init) {
  if constexpr (sizeof...(Bound) == O::TypeParams::size) {
    if constexpr (in_library<O, Device> || HasKernel<O, Device, Bound...>) {
      return make_bound<O, Device, Bound...>(init);
    } else {
      return nullptr;
    }
  } else {
    return bind_next<O, Device>(init, TypeList<Bound...>{}, element_t<sizeof...(Bound), typename O::TypeParams>{});
  }
}

}  // namespace detail

template <OpType O, class Device>
std::unique_ptr<AnyKernel> make_kernel(const KernelInit& init) {
  return detail::bind_types<O, Device>(init);
}

}  // namespace dflow
