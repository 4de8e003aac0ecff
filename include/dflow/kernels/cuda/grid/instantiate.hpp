#pragma once

/// Public: the machine code of bodies of kernels for GPUs.

#include <dflow/base/type_list.hpp>
#include <dflow/kernels/cuda/grid/kernel_function.hpp>

#include <initializer_list>
#include <type_traits>

#if defined(__CUDACC__)
#include <dflow/kernels/cuda/grid/device_thread.hpp>
#else
#include <dflow/kernels/cuda/grid/emulated_grid.hpp>
#endif

/// Included by the units that instantiate bodies of kernels. If nvcc compiles the unit, the unit makes kernels for
/// GPUs. If a host compiler compiles it, it makes the same bodies run on the host, for tests.
///
/// A body is a struct with
/// - `struct Args`, trivially copyable;
/// - `static constexpr bool has_barriers`;
/// - `template <class Thread> DFLOW_FN static void run(const Thread& thread, const Args& args)`.

namespace dflow::cuda {

#if defined(__CUDACC__)

template <class Body>
__global__ void __launch_bounds__(1024) grid_kernel(const __grid_constant__ typename Body::Args args) {
  Body::run(DeviceThread(), args);
}

#endif

template <class Body>
const KernelFunction& kernel_function() {
  static_assert(std::is_trivially_copyable_v<typename Body::Args>);
#if defined(__CUDACC__)
  static const KernelFunction function{Body::name, reinterpret_cast<const void*>(&grid_kernel<Body>), nullptr,
                                       sizeof(typename Body::Args)};
#else
  static constexpr KernelFunction function{Body::name, nullptr, &emulate<Body>, sizeof(typename Body::Args)};
#endif
  return function;
}

namespace detail {

template <class Bodies>
struct KernelFunctions;
template <class... Bodies>
struct KernelFunctions<TypeList<Bodies...>> {
  /// The functions, which host compilers then compile.
  static constexpr const KernelFunction& (*all[])() = {&kernel_function<Bodies>...};
  /// nvcc makes a kernel where it sees code that names it.
  static void name_all() {
    static_cast<void>(std::initializer_list<const KernelFunction*>{&kernel_function<Bodies>()...});
  }
};

}  // namespace detail

}  // namespace dflow::cuda

/// Compiles the kernels of a list of bodies.
#define DFLOW_INSTANTIATE_BODIES(...) template struct dflow::cuda::detail::KernelFunctions<__VA_ARGS__>
