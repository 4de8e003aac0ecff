// The one implementation of the table of products that calls cuBLASLt.

#include <dflow/kernels/cuda/driver/cublas_products.hpp>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <new>

namespace dflow::cuda {

ErrorCode code_of_cublas(int status) noexcept {
  switch (static_cast<cublasStatus_t>(status)) {
    case CUBLAS_STATUS_SUCCESS:
      return ErrorCode::ok;
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return ErrorCode::initialization;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return ErrorCode::out_of_memory;
    case CUBLAS_STATUS_INVALID_VALUE:
      return ErrorCode::invalid_value;
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return ErrorCode::not_supported;
    default:  // a device that is lost says so in the next call of the driver
      return ErrorCode::library_failed;
  }
}

namespace {

/// What elements are, what is computed in, and what the factors are.
struct ProductTypes {
  cudaDataType_t element = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
};

bool find_types(const ProductCall& call, ProductTypes& types) noexcept {
  switch (call.dtype) {
    case DType::float16:
      types = {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
      return true;
    case DType::bfloat16:
      types = {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
      return true;
    case DType::float32:
      types = {CUDA_R_32F, call.allows_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F};
      return true;
    case DType::float64:
      types = {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
      return true;
    case DType::complex64:
      types = {CUDA_C_32F, CUBLAS_COMPUTE_32F, CUDA_C_32F};
      return true;
    case DType::complex128:
      types = {CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F};
      return true;
    default:
      return false;
  }
}

cublasOperation_t operation(ProductOperand operand) noexcept {
  constexpr cublasOperation_t all[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
  return all[static_cast<int>(operand)];
}

cublasLtEpilogue_t epilogue(ProductEpilogue of) noexcept {
  constexpr cublasLtEpilogue_t all[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS};
  return all[static_cast<int>(of)];
}

template <class Handle, cublasStatus_t (*destroy)(Handle)>
struct CublasDeleter {
  using pointer = Handle;
  void operator()(Handle handle) const noexcept { static_cast<void>(destroy(handle)); }
};
using Description = std::unique_ptr<void, CublasDeleter<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<void, CublasDeleter<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>>;
using Preference = std::unique_ptr<void, CublasDeleter<cublasLtMatmulPreference_t, &cublasLtMatmulPreferenceDestroy>>;

struct CublasPlan {
  Description description;
  Layout a, b, d;
  cublasLtMatmulAlgo_t algorithm{};
  cudaDataType_t scale = CUDA_R_32F;
  bool has_bias = false;
  bool accumulates = false;
  std::mutex mutex;  ///< of the description, where it has the bias of a run
};

/// The first error of several calls.
class Calls {
 public:
  void operator()(cublasStatus_t status) noexcept {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = status;
  }
  template <class T>
  void set(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t attribute, const T& value) noexcept {
    if (ok()) (*this)(cublasLtMatmulDescSetAttribute(of, attribute, &value, sizeof(value)));
  }
  template <class T>
  void set(cublasLtMatrixLayout_t of, cublasLtMatrixLayoutAttribute_t attribute, const T& value) noexcept {
    if (ok()) (*this)(cublasLtMatrixLayoutSetAttribute(of, attribute, &value, sizeof(value)));
  }
  template <class T>
  void set(cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) noexcept {
    if (ok()) (*this)(cublasLtMatmulPreferenceSetAttribute(of, attribute, &value, sizeof(value)));
  }
  bool ok() const noexcept { return status_ == CUBLAS_STATUS_SUCCESS; }
  ErrorCode code() const noexcept { return code_of_cublas(status_); }

 private:
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

void make_layout(Calls& calls, Layout& layout, const ProductMatrix& matrix, const ProductCall& call,
                 cudaDataType_t element) noexcept {
  cublasLtMatrixLayout_t made = nullptr;
  if (calls.ok()) {
    calls(cublasLtMatrixLayoutCreate(&made, element, static_cast<std::uint64_t>(matrix.rows),
                                     static_cast<std::uint64_t>(matrix.columns), matrix.leading));
  }
  layout.reset(made);
  if (call.batch == 1) return;
  calls.set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, call.batch);
  calls.set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
}

class CublasProducts final : public Products {
 public:
  ErrorCode make_product_plan(int device, const ProductCall& call, std::size_t max_workspace_bytes,
                              ProductPlanHandle& plan, std::size_t& workspace_bytes) noexcept override {
    try {
      cublasLtHandle_t handle = nullptr;
      if (const ErrorCode code = find_handle(device, handle); code != ErrorCode::ok) return code;
      auto made = std::make_unique<CublasPlan>();
      const ErrorCode code = fill(*made, handle, call, max_workspace_bytes, workspace_bytes);
      if (code != ErrorCode::ok) return code;
      plan = static_cast<ProductPlanHandle>(reinterpret_cast<std::uintptr_t>(made.release()));
      return ErrorCode::ok;
    } catch (...) {
      return ErrorCode::out_of_memory;
    }
  }

  ErrorCode destroy_product_plan(int, ProductPlanHandle plan) noexcept override {
    delete plan_of(plan);
    return ErrorCode::ok;
  }

  ErrorCode run_product(int device, ProductPlanHandle handle, const ProductOperands& operands,
                        std::span<const MemoryUse>, StreamHandle stream) noexcept override {
    CublasPlan& plan = *plan_of(handle);
    cublasLtHandle_t library = nullptr;
    if (const ErrorCode code = find_handle(device, library); code != ErrorCode::ok) return code;
    // Factors of the types that are added in: as wide as the widest of them, and with an imaginary part of 0.
    const float one[2] = {1, 0}, zero[2] = {0, 0};
    const double one_of_double[2] = {1, 0}, zero_of_double[2] = {0, 0};
    const bool is_double = plan.scale == CUDA_R_64F || plan.scale == CUDA_C_64F;
    const void* const alpha = is_double ? static_cast<const void*>(one_of_double) : one;
    const void* const beta = plan.accumulates ? alpha : is_double ? static_cast<const void*>(zero_of_double) : zero;
    Calls calls;
    std::unique_lock<std::mutex> lock(plan.mutex, std::defer_lock);
    if (plan.has_bias) {
      lock.lock();
      calls.set(description(plan), CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    }
    if (calls.ok()) {
      calls(cublasLtMatmul(library, description(plan), alpha, operands.a, layout(plan.a), operands.b, layout(plan.b),
                           beta, operands.d, layout(plan.d), operands.d, layout(plan.d), &plan.algorithm,
                           operands.workspace, operands.workspace_bytes, reinterpret_cast<cudaStream_t>(stream)));
    }
    return calls.code();
  }

 private:
  static CublasPlan* plan_of(ProductPlanHandle handle) noexcept {
    return reinterpret_cast<CublasPlan*>(static_cast<std::uintptr_t>(handle));
  }
  static cublasLtMatmulDesc_t description(const CublasPlan& plan) noexcept { return plan.description.get(); }
  static cublasLtMatrixLayout_t layout(const Layout& of) noexcept { return of.get(); }

  /// The library's handle of the device, which is current on this thread then. It stays: a process that ends may have
  /// ended CUDA before.
  ErrorCode find_handle(int device, cublasLtHandle_t& handle) noexcept {
    if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) return static_cast<ErrorCode>(error);
    try {
      const std::lock_guard lock(mutex_);
      const auto [found, is_new] = handles_.try_emplace(device, nullptr);
      if (is_new) {
        if (const cublasStatus_t status = cublasLtCreate(&found->second); status != CUBLAS_STATUS_SUCCESS) {
          handles_.erase(found);
          return code_of_cublas(status);
        }
      }
      handle = found->second;
      return ErrorCode::ok;
    } catch (...) {
      return ErrorCode::out_of_memory;
    }
  }

  static ErrorCode fill(CublasPlan& plan, cublasLtHandle_t handle, const ProductCall& call,
                        std::size_t max_workspace_bytes, std::size_t& workspace_bytes) noexcept {
    ProductTypes types;
    if (!find_types(call, types)) return ErrorCode::not_supported;
    if (call.result != call.dtype && (size_of(call.dtype) != 2 || call.result != DType::float32)) {
      return ErrorCode::not_supported;
    }
    plan.scale = types.scale;
    plan.has_bias = call.epilogue != ProductEpilogue::none;
    plan.accumulates = call.accumulates;
    Calls calls;
    cublasLtMatmulDesc_t made = nullptr;
    calls(cublasLtMatmulDescCreate(&made, types.compute, types.scale));
    plan.description.reset(made);
    calls.set(made, CUBLASLT_MATMUL_DESC_TRANSA, operation(call.op_a));
    calls.set(made, CUBLASLT_MATMUL_DESC_TRANSB, operation(call.op_b));
    calls.set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(call.epilogue));
    make_layout(calls, plan.a, call.a, call, types.element);
    make_layout(calls, plan.b, call.b, call, types.element);
    make_layout(calls, plan.d, call.d, call, call.result == call.dtype ? types.element : CUDA_R_32F);
    cublasLtMatmulPreference_t wanted = nullptr;
    if (calls.ok()) calls(cublasLtMatmulPreferenceCreate(&wanted));
    const Preference preference(wanted);
    const auto alignment = static_cast<std::uint32_t>(call.alignment_bytes);
    calls.set(wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, max_workspace_bytes);
    calls.set(wanted, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
    calls.set(wanted, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
    calls.set(wanted, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
    calls.set(wanted, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    if (calls.ok()) {
      calls(cublasLtMatmulAlgoGetHeuristic(handle, made, layout(plan.a), layout(plan.b), layout(plan.d), layout(plan.d),
                                           wanted, 1, &found, &count));
    }
    if (!calls.ok()) return calls.code();
    if (count == 0) return ErrorCode::not_supported;
    plan.algorithm = found.algo;
    workspace_bytes = found.workspaceSize;
    return ErrorCode::ok;
  }

  std::mutex mutex_;
  std::map<int, cublasLtHandle_t> handles_;
};

}  // namespace

Products& cublas_products() noexcept {
  static CublasProducts& products = *new CublasProducts;  // outlives whatever ends late
  return products;
}

}  // namespace dflow::cuda
