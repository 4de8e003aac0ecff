#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/ops/linalg/band.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

/// Output 0: input 0, with 0 outside of the band that inputs 1 and 2 say.
void keep_band(KernelContext& context);
/// Output 0 [..., n, n] has input 0 [..., n] as its diagonals, and 0 elsewhere.
void make_diagonal(KernelContext& context);
/// Output 0 [..., n]: the diagonals of input 0.
void take_diagonal(KernelContext& context);
/// Output 0: input 0 with the diagonals of input 1.
void set_diagonal(KernelContext& context);

}  // namespace cuda

template <>
struct Kernel<MatrixBandPart, Cuda> {
  static constexpr std::uint64_t host_inputs = 6;

  void operator()(KernelContext& context) const { cuda::keep_band(context); }
};

template <>
struct Kernel<MatrixDiag, Cuda> {
  void operator()(KernelContext& context) const { cuda::make_diagonal(context); }
};

template <>
struct Kernel<MatrixDiagPart, Cuda> {
  void operator()(KernelContext& context) const { cuda::take_diagonal(context); }
};

template <>
struct Kernel<MatrixSetDiag, Cuda> {
  void operator()(KernelContext& context) const { cuda::set_diagonal(context); }
};

}  // namespace dflow
