// The one implementation of the table of solvers that calls cuSOLVER and cuBLAS.

#include <dflow/kernels/cuda/driver/cublas_products.hpp>
#include <dflow/kernels/cuda/driver/cusolver_solvers.hpp>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>

namespace dflow::cuda {

namespace {

ErrorCode code_of(cusolverStatus_t status) noexcept {
  switch (status) {
    case CUSOLVER_STATUS_SUCCESS:
      return ErrorCode::ok;
    case CUSOLVER_STATUS_NOT_INITIALIZED:
      return ErrorCode::initialization;
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return ErrorCode::out_of_memory;
    case CUSOLVER_STATUS_INVALID_VALUE:
      return ErrorCode::invalid_value;
    case CUSOLVER_STATUS_ARCH_MISMATCH:
    case CUSOLVER_STATUS_NOT_SUPPORTED:
    case CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
      return ErrorCode::not_supported;
    default:  // a device that is lost says so in the next call of the driver
      return ErrorCode::library_failed;
  }
}

constexpr cublasOperation_t operation(ProductOperand operand) noexcept {
  constexpr cublasOperation_t all[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
  return all[static_cast<int>(operand)];
}

/// The libraries' handles of one device: each serves one caller at a time.
struct Handles {
  std::mutex mutex;
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t params = nullptr;
  cublasHandle_t blas = nullptr;

  /// Makes what is not there yet.
  ErrorCode make() noexcept {
    if (solver == nullptr) {
      if (const cusolverStatus_t status = cusolverDnCreate(&solver); status != CUSOLVER_STATUS_SUCCESS) {
        solver = nullptr;
        return code_of(status);
      }
    }
    if (params == nullptr) {
      if (const cusolverStatus_t status = cusolverDnCreateParams(&params); status != CUSOLVER_STATUS_SUCCESS) {
        params = nullptr;
        return code_of(status);
      }
    }
    if (blas == nullptr) {
      if (const cublasStatus_t status = cublasCreate(&blas); status != CUBLAS_STATUS_SUCCESS) {
        blas = nullptr;
        return code_of_cublas(status);
      }
    }
    return ErrorCode::ok;
  }
};

/// One call of the library: the same arguments serve to ask for its memory.
class Call {
 public:
  Call(Handles& handles, const SolverCall& call, const SolverOperands& operands) noexcept
      : handles_(handles), call_(call), of_(operands) {}

  /// Device and host memory in bytes.
  ErrorCode workspace(std::size_t& device, std::size_t& host) const noexcept {
    device = host = 0;
    const cudaDataType_t type = data_type();
    const std::int64_t n = call_.n, m = call_.m;
    switch (call_.kind) {
      case SolverKind::cholesky:
        return code_of(cusolverDnXpotrf_bufferSize(handles_.solver, handles_.params, CUBLAS_FILL_MODE_LOWER, n, type,
                                                   of_.a, n, type, &device, &host));
      case SolverKind::lu:
        return code_of(
            cusolverDnXgetrf_bufferSize(handles_.solver, handles_.params, n, n, type, of_.a, n, type, &device, &host));
      case SolverKind::qr:
        return code_of(cusolverDnXgeqrf_bufferSize(handles_.solver, handles_.params, m, n, type, of_.a, m, type,
                                                   of_.tau, type, &device, &host));
      case SolverKind::qr_vectors:
        return reflections_workspace(device);
      case SolverKind::eigen:
        return code_of(cusolverDnXsyevd_bufferSize(handles_.solver, handles_.params, eigen_mode(),
                                                   CUBLAS_FILL_MODE_LOWER, n, type, of_.a, n, value_type(), of_.values,
                                                   type, &device, &host));
      case SolverKind::svd:
        return code_of(cusolverDnXgesvd_bufferSize(handles_.solver, handles_.params, job_u(), job_v(), m, n, type,
                                                   of_.a, m, value_type(), of_.values, type, of_.u, m, type, of_.vh, n,
                                                   type, &device, &host));
      default:
        return ErrorCode::ok;
    }
  }

  ErrorCode run(void* host, std::size_t host_bytes, cudaStream_t stream) const noexcept {
    if (call_.kind == SolverKind::triangular_solve) {
      const cublasStatus_t status = cublasSetStream(handles_.blas, stream);
      return status == CUBLAS_STATUS_SUCCESS ? solve_triangle() : code_of_cublas(status);
    }
    if (const cusolverStatus_t status = cusolverDnSetStream(handles_.solver, stream);
        status != CUSOLVER_STATUS_SUCCESS) {
      return code_of(status);
    }
    const cudaDataType_t type = data_type();
    const std::int64_t n = call_.n, m = call_.m, k = call_.k;
    switch (call_.kind) {
      case SolverKind::cholesky:
        return code_of(cusolverDnXpotrf(handles_.solver, handles_.params, CUBLAS_FILL_MODE_LOWER, n, type, of_.a, n,
                                        type, of_.workspace, of_.workspace_bytes, host, host_bytes, of_.info));
      case SolverKind::cholesky_solve:
        return code_of(cusolverDnXpotrs(handles_.solver, handles_.params, CUBLAS_FILL_MODE_LOWER, n, k, type, of_.a, n,
                                        type, of_.b, n, of_.info));
      case SolverKind::lu:
        return code_of(cusolverDnXgetrf(handles_.solver, handles_.params, n, n, type, of_.a, n, of_.pivots, type,
                                        of_.workspace, of_.workspace_bytes, host, host_bytes, of_.info));
      case SolverKind::lu_solve:
        return code_of(cusolverDnXgetrs(handles_.solver, handles_.params, operation(call_.op), n, k, type, of_.a, n,
                                        of_.pivots, type, of_.b, n, of_.info));
      case SolverKind::qr:
        return code_of(cusolverDnXgeqrf(handles_.solver, handles_.params, m, n, type, of_.a, m, type, of_.tau, type,
                                        of_.workspace, of_.workspace_bytes, host, host_bytes, of_.info));
      case SolverKind::qr_vectors:
        return multiply_reflections();
      case SolverKind::eigen:
        return code_of(cusolverDnXsyevd(handles_.solver, handles_.params, eigen_mode(), CUBLAS_FILL_MODE_LOWER, n, type,
                                        of_.a, n, value_type(), of_.values, type, of_.workspace, of_.workspace_bytes,
                                        host, host_bytes, of_.info));
      default:
        return code_of(cusolverDnXgesvd(handles_.solver, handles_.params, job_u(), job_v(), m, n, type, of_.a, m,
                                        value_type(), of_.values, type, of_.u, m, type, of_.vh, n, type, of_.workspace,
                                        of_.workspace_bytes, host, host_bytes, of_.info));
    }
  }

 private:
  cudaDataType_t data_type() const noexcept {
    switch (call_.dtype) {
      case DType::float32:
        return CUDA_R_32F;
      case DType::float64:
        return CUDA_R_64F;
      case DType::complex64:
        return CUDA_C_32F;
      default:
        return CUDA_C_64F;
    }
  }
  cudaDataType_t value_type() const noexcept {
    return call_.dtype == DType::float32 || call_.dtype == DType::complex64 ? CUDA_R_32F : CUDA_R_64F;
  }
  cusolverEigMode_t eigen_mode() const noexcept {
    return call_.wants_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  }
  signed char job_u() const noexcept { return !call_.wants_vectors ? 'N' : call_.has_full_u ? 'A' : 'S'; }
  signed char job_v() const noexcept { return job_u(); }  // of n rows, all of them either way

  // The product of reflections has but functions of 32 bits.
  bool fits_int() const noexcept { return call_.m <= std::numeric_limits<int>::max() / call_.n; }
  int m() const noexcept { return static_cast<int>(call_.m); }
  int n() const noexcept { return static_cast<int>(call_.n); }
  int k() const noexcept { return static_cast<int>(call_.k); }

  ErrorCode reflections_workspace(std::size_t& bytes) const noexcept {
    if (!fits_int()) return ErrorCode::not_supported;
    int elements = 0;
    cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
    switch (call_.dtype) {
      case DType::float32:
        status = cusolverDnSorgqr_bufferSize(handles_.solver, m(), n(), k(), static_cast<const float*>(of_.a), m(),
                                             static_cast<const float*>(of_.tau), &elements);
        break;
      case DType::float64:
        status = cusolverDnDorgqr_bufferSize(handles_.solver, m(), n(), k(), static_cast<const double*>(of_.a), m(),
                                             static_cast<const double*>(of_.tau), &elements);
        break;
      case DType::complex64:
        status = cusolverDnCungqr_bufferSize(handles_.solver, m(), n(), k(), static_cast<const cuComplex*>(of_.a), m(),
                                             static_cast<const cuComplex*>(of_.tau), &elements);
        break;
      default:
        status = cusolverDnZungqr_bufferSize(handles_.solver, m(), n(), k(), static_cast<const cuDoubleComplex*>(of_.a),
                                             m(), static_cast<const cuDoubleComplex*>(of_.tau), &elements);
    }
    if (status == CUSOLVER_STATUS_SUCCESS && elements < 0) return ErrorCode::not_supported;
    bytes = static_cast<std::size_t>(elements) * size_of(call_.dtype);
    return code_of(status);
  }

  ErrorCode multiply_reflections() const noexcept {
    if (!fits_int()) return ErrorCode::not_supported;
    const int elements = static_cast<int>(of_.workspace_bytes / size_of(call_.dtype));
    switch (call_.dtype) {
      case DType::float32:
        return code_of(cusolverDnSorgqr(handles_.solver, m(), n(), k(), static_cast<float*>(of_.a), m(),
                                        static_cast<const float*>(of_.tau), static_cast<float*>(of_.workspace),
                                        elements, of_.info));
      case DType::float64:
        return code_of(cusolverDnDorgqr(handles_.solver, m(), n(), k(), static_cast<double*>(of_.a), m(),
                                        static_cast<const double*>(of_.tau), static_cast<double*>(of_.workspace),
                                        elements, of_.info));
      case DType::complex64:
        return code_of(cusolverDnCungqr(handles_.solver, m(), n(), k(), static_cast<cuComplex*>(of_.a), m(),
                                        static_cast<const cuComplex*>(of_.tau), static_cast<cuComplex*>(of_.workspace),
                                        elements, of_.info));
      default:
        return code_of(cusolverDnZungqr(handles_.solver, m(), n(), k(), static_cast<cuDoubleComplex*>(of_.a), m(),
                                        static_cast<const cuDoubleComplex*>(of_.tau),
                                        static_cast<cuDoubleComplex*>(of_.workspace), elements, of_.info));
    }
  }

  ErrorCode solve_triangle() const noexcept {
    const cublasFillMode_t triangle = call_.is_lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    const std::int64_t n = call_.n, columns = call_.k;
    const auto solve = [&](auto function, auto one) {
      using T = decltype(one);
      return code_of_cublas(function(handles_.blas, CUBLAS_SIDE_LEFT, triangle, operation(call_.op),
                                     CUBLAS_DIAG_NON_UNIT, n, columns, &one, static_cast<const T*>(of_.a), n,
                                     static_cast<T*>(of_.b), n));
    };
    switch (call_.dtype) {
      case DType::float32:
        return solve(&cublasStrsm_v2_64, 1.0f);
      case DType::float64:
        return solve(&cublasDtrsm_v2_64, 1.0);
      case DType::complex64:
        return solve(&cublasCtrsm_v2_64, cuComplex{1, 0});
      default:
        return solve(&cublasZtrsm_v2_64, cuDoubleComplex{1, 0});
    }
  }

  Handles& handles_;
  const SolverCall& call_;
  const SolverOperands& of_;
};

class CusolverSolvers final : public Solvers {
 public:
  ErrorCode solver_workspace(int device, const SolverCall& call, const SolverOperands& operands,
                             std::size_t& bytes) noexcept override {
    bytes = 0;
    Handles* handles = nullptr;
    if (const ErrorCode code = find(device, handles); code != ErrorCode::ok) return code;
    const std::lock_guard lock(handles->mutex);
    if (const ErrorCode code = handles->make(); code != ErrorCode::ok) return code;
    std::size_t host = 0;
    return Call(*handles, call, operands).workspace(bytes, host);
  }

  ErrorCode run_solver(int device, const SolverCall& call, const SolverOperands& operands, std::span<const MemoryUse>,
                       StreamHandle stream) noexcept override {
    Handles* handles = nullptr;
    if (const ErrorCode code = find(device, handles); code != ErrorCode::ok) return code;
    const std::lock_guard lock(handles->mutex);
    if (const ErrorCode code = handles->make(); code != ErrorCode::ok) return code;
    const Call library(*handles, call, operands);
    std::size_t bytes = 0, host_bytes = 0;
    if (const ErrorCode code = library.workspace(bytes, host_bytes); code != ErrorCode::ok) return code;
    if (bytes > operands.workspace_bytes) return ErrorCode::invalid_value;
    const std::unique_ptr<std::byte[]> host(host_bytes == 0 ? nullptr : new (std::nothrow) std::byte[host_bytes]);
    if (host_bytes != 0 && host == nullptr) return ErrorCode::out_of_memory;
    return library.run(host.get(), host_bytes, reinterpret_cast<cudaStream_t>(stream));
  }

 private:
  /// The device's handles, which is current on this thread then. They stay: a process that ends may have ended CUDA
  /// before.
  ErrorCode find(int device, Handles*& handles) noexcept {
    if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) return static_cast<ErrorCode>(error);
    try {
      const std::lock_guard lock(mutex_);
      handles = &handles_[device];
      return ErrorCode::ok;
    } catch (...) {
      return ErrorCode::out_of_memory;
    }
  }

  std::mutex mutex_;
  std::map<int, Handles> handles_;
};

}  // namespace

Solvers& cusolver_solvers() noexcept {
  static CusolverSolvers& solvers = *new CusolverSolvers;  // outlives whatever ends late
  return solvers;
}

}  // namespace dflow::cuda
