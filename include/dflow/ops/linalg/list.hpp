#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/linalg/band.hpp>
#include <dflow/ops/linalg/decompose.hpp>
#include <dflow/ops/linalg/fourier.hpp>
#include <dflow/ops/linalg/solve.hpp>

namespace dflow {

/// The family's ops in the standard table.
using LinalgOps =
    TypeList<Cholesky, Qr, Svd, SelfAdjointEig, MatrixInverse, MatrixDeterminant, MatrixSolve, MatrixTriangularSolve,
             MatrixSolveLs, MatrixBandPart, MatrixDiag, MatrixDiagPart, MatrixSetDiag, Fft, Fft2d, Fft3d, Ifft, Ifft2d,
             Ifft3d, Rfft, Rfft2d, Rfft3d, Irfft, Irfft2d, Irfft3d, RfftGrad, IrfftGrad>;

}  // namespace dflow
