// The one implementation of the table of convolutions that calls cuDNN, by its graph API.

#include <dflow/kernels/cuda/driver/cudnn_convolutions.hpp>

#if defined(DFLOW_HAS_CUDNN)

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace dflow::cuda {

namespace {

ErrorCode code_of(cudnnStatus_t status) noexcept {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return ErrorCode::ok;
    case CUDNN_STATUS_NOT_INITIALIZED:
      return ErrorCode::initialization;
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return ErrorCode::out_of_memory;
    default:
      break;
  }
  const int category = static_cast<int>(status) / 1000;
  if (category == 2) return ErrorCode::invalid_value;
  if (category == 3) return ErrorCode::not_supported;
  return ErrorCode::library_failed;  // a device that is lost says so in the next call of the driver
}

struct DescriptorDeleter {
  using pointer = cudnnBackendDescriptor_t;
  void operator()(cudnnBackendDescriptor_t descriptor) const noexcept {
    static_cast<void>(cudnnBackendDestroyDescriptor(descriptor));
  }
};
using Descriptor = std::unique_ptr<void, DescriptorDeleter>;

/// Several calls, of which none is made behind the first that failed.
class Calls {
 public:
  bool ok() const noexcept { return status_ == CUDNN_STATUS_SUCCESS; }
  ErrorCode code() const noexcept { return code_of(status_); }

  Descriptor make(cudnnBackendDescriptorType_t type) noexcept {
    cudnnBackendDescriptor_t made = nullptr;
    if (ok()) status_ = cudnnBackendCreateDescriptor(type, &made);
    return Descriptor(made);
  }
  template <class T>
  void set(const Descriptor& of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           std::initializer_list<T> values) noexcept {
    if (ok()) {
      status_ =
          cudnnBackendSetAttribute(of.get(), name, type, static_cast<std::int64_t>(values.size()), values.begin());
    }
  }
  void set(const Descriptor& of, cudnnBackendAttributeName_t name,
           std::initializer_list<std::int64_t> values) noexcept {
    set<std::int64_t>(of, name, CUDNN_TYPE_INT64, values);
  }
  void set(const Descriptor& of, cudnnBackendAttributeName_t name, const Descriptor& value) noexcept {
    set<cudnnBackendDescriptor_t>(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, {value.get()});
  }
  void set_text(const Descriptor& of, cudnnBackendAttributeName_t name, const std::string& text) noexcept {
    const auto count = static_cast<std::int64_t>(text.size()) + 1;
    if (ok()) status_ = cudnnBackendSetAttribute(of.get(), name, CUDNN_TYPE_CHAR, count, text.c_str());
  }
  /// How many values there are.
  template <class T>
  std::int64_t get(const Descriptor& of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t most, T* values) noexcept {
    std::int64_t count = 0;
    if (ok()) status_ = cudnnBackendGetAttribute(of.get(), name, type, most, &count, values);
    return count;
  }
  void finalize(const Descriptor& of) noexcept {
    if (ok()) status_ = cudnnBackendFinalize(of.get());
  }

 private:
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
};

bool find_types(const ConvolutionCall& call, cudnnDataType_t& element, cudnnDataType_t& compute) noexcept {
  compute = CUDNN_DATA_FLOAT;
  switch (call.dtype) {
    case DType::float16:
      element = CUDNN_DATA_HALF;
      return true;
    case DType::bfloat16:
      element = CUDNN_DATA_BFLOAT16;
      return true;
    case DType::float32:
      element = CUDNN_DATA_FLOAT;
      return true;
    case DType::float64:
      element = compute = CUDNN_DATA_DOUBLE;
      return true;
    default:
      return false;
  }
}

// The numbers by which a plan and its runs name the operands.
constexpr std::int64_t id_of_x = 'x', id_of_filter = 'w', id_of_y = 'y';

/// [a, b, c, d] as the library numbers dimensions, a channel last in memory: [a][c][d][b].
Descriptor make_tensor(Calls& calls, std::int64_t id, cudnnDataType_t element, std::int64_t alignment, std::int64_t a,
                       std::int64_t b, std::int64_t c, std::int64_t d) noexcept {
  Descriptor tensor = calls.make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  calls.set<cudnnDataType_t>(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {element});
  calls.set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, {a, b, c, d});
  calls.set(tensor, CUDNN_ATTR_TENSOR_STRIDES, {b * c * d, 1, b * d, b});
  calls.set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, {id});
  calls.set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {alignment});
  calls.finalize(tensor);
  return tensor;
}

/// The names of the attributes of an operation.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, filter, y, convolution, alpha, beta;
};
OperationNames names_of(ConvolutionKind kind) noexcept {
  switch (kind) {
    case ConvolutionKind::backward_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionKind::backward_filter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

/// The GPU that a plan is for: one of a handle, or one of which the properties are known alone.
struct PlanTarget {
  void tell_graph(Calls& calls, const Descriptor& graph) const noexcept {
    if (handle != nullptr) {
      calls.set<cudnnHandle_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, {handle});
    }
  }
  void tell_heuristics(Calls& calls, const Descriptor& heuristics) const noexcept {
    if (handle == nullptr) calls.set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
  }
  void tell_plan(Calls& calls, const Descriptor& plan) const noexcept {
    if (handle != nullptr) {
      calls.set<cudnnHandle_t>(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, {handle});
    } else {
      calls.set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties);
    }
  }

  cudnnHandle_t handle = nullptr;
  Descriptor properties = {};
};

/// A graph of one operation, with what it is made of: the library does not say that it keeps that.
struct OperationGraph {
  Descriptor x, filter, y, convolution, operation, graph;
};

Descriptor make_convolution(Calls& calls, const ConvolutionCall& call, cudnnDataType_t compute) noexcept {
  Descriptor made = calls.make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  calls.set<cudnnDataType_t>(made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {compute});
  calls.set<cudnnConvolutionMode_t>(made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                                    {CUDNN_CROSS_CORRELATION});
  calls.set(made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2});
  calls.set(made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {call.stride_rows, call.stride_cols});
  calls.set(made, CUDNN_ATTR_CONVOLUTION_DILATIONS, {call.dilation_rows, call.dilation_cols});
  calls.set(made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {call.pad_top, call.pad_left});
  calls.set(made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {call.pad_bottom, call.pad_right});
  calls.finalize(made);
  return made;
}

OperationGraph make_graph(Calls& calls, const PlanTarget& target, const ConvolutionCall& call, cudnnDataType_t element,
                          cudnnDataType_t compute) noexcept {
  OperationGraph made;
  const std::int64_t alignment = call.alignment_bytes;
  made.x = make_tensor(calls, id_of_x, element, alignment, call.batch, call.in_channels, call.in_rows, call.in_cols);
  made.filter = make_tensor(calls, id_of_filter, element, alignment, call.out_channels, call.in_channels,
                            call.filter_rows, call.filter_cols);
  made.y = make_tensor(calls, id_of_y, element, alignment, call.batch, call.out_channels, call.out_rows, call.out_cols);
  made.convolution = make_convolution(calls, call, compute);
  const OperationNames names = names_of(call.kind);
  made.operation = calls.make(names.type);
  calls.set(made.operation, names.x, made.x);
  calls.set(made.operation, names.filter, made.filter);
  calls.set(made.operation, names.y, made.y);
  calls.set(made.operation, names.convolution, made.convolution);
  if (compute == CUDNN_DATA_DOUBLE) {
    calls.set<double>(made.operation, names.alpha, CUDNN_TYPE_DOUBLE, {1});
    calls.set<double>(made.operation, names.beta, CUDNN_TYPE_DOUBLE, {0});
  } else {
    calls.set<float>(made.operation, names.alpha, CUDNN_TYPE_FLOAT, {1});
    calls.set<float>(made.operation, names.beta, CUDNN_TYPE_FLOAT, {0});
  }
  calls.finalize(made.operation);
  made.graph = calls.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  target.tell_graph(calls, made.graph);
  calls.set(made.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, made.operation);
  calls.finalize(made.graph);
  return made;
}

/// The results are of the same bits each time, and sums of products as exact as the call wants them: of the notes that
/// the library has on an engine all others tell of inputs, sums or ways that are less so.
bool suits(const Descriptor& configuration, const ConvolutionCall& call) noexcept {
  Calls calls;
  const Descriptor engine = calls.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t into = engine.get();
  calls.get(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &into);
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const std::int64_t count = calls.get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                       static_cast<std::int64_t>(notes.size()), notes.data());
  if (!calls.ok()) return false;
  const auto told = std::min(static_cast<std::size_t>(count), notes.size());
  return std::all_of(notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(told),
                     [&](cudnnBackendNumericalNote_t note) {
                       if (note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP) return true;
                       if (note != CUDNN_NUMERICAL_NOTE_TENSOR_CORE) return false;
                       return call.dtype != DType::float32 || call.allows_tf32;
                     });
}

struct CudnnPlan {
  Descriptor configuration, plan;
};

/// What the library proposes, in its order; nothing after an error.
std::vector<Descriptor> configurations_of(Calls& calls, const Descriptor& heuristics) {
  constexpr std::int64_t most = 256;
  const std::int64_t count =
      std::min(most, calls.get<cudnnBackendDescriptor_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr));
  std::vector<Descriptor> all;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(calls.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(all.back().get());
  }
  const std::int64_t filled =
      calls.get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, raw.data());
  all.resize(calls.ok() ? static_cast<std::size_t>(std::min(filled, count)) : 0);
  return all;
}

/// The first suitable one of a mode whose workspace fits. not_supported if there is none.
ErrorCode find_plan(CudnnPlan& plan, const PlanTarget& target, const OperationGraph& graph, const ConvolutionCall& call,
                    cudnnBackendHeurMode_t mode, std::size_t max_workspace_bytes, std::size_t& workspace_bytes) {
  Calls calls;
  const Descriptor heuristics = calls.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  calls.set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph);
  calls.set<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, {mode});
  target.tell_heuristics(calls, heuristics);
  calls.finalize(heuristics);
  for (Descriptor& configuration : configurations_of(calls, heuristics)) {
    if (!suits(configuration, call)) continue;
    Calls planning;  // of which each may say that this configuration does not do
    Descriptor made = planning.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    target.tell_plan(planning, made);
    planning.set(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    planning.finalize(made);
    std::int64_t bytes = 0;
    planning.get(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
    if (planning.code() == ErrorCode::out_of_memory) return ErrorCode::out_of_memory;
    if (!planning.ok() || bytes < 0 || static_cast<std::uint64_t>(bytes) > max_workspace_bytes) continue;
    workspace_bytes = static_cast<std::size_t>(bytes);
    plan = {std::move(configuration), std::move(made)};
    return ErrorCode::ok;
  }
  return calls.ok() ? ErrorCode::not_supported : calls.code();
}

/// The first suitable one whose workspace fits: of those that the library thinks fastest, then of those that it always
/// has. not_supported if there is none.
ErrorCode find_plan(CudnnPlan& plan, const PlanTarget& target, const ConvolutionCall& call,
                    std::size_t max_workspace_bytes, std::size_t& workspace_bytes) {
  cudnnDataType_t element{}, compute{};
  if (!find_types(call, element, compute)) return ErrorCode::not_supported;
  Calls calls;
  const OperationGraph graph = make_graph(calls, target, call, element, compute);
  // A library that cannot be loaded whole fails in ways of its own: it has no way to compute anything.
  if (!calls.ok()) return calls.code() == ErrorCode::library_failed ? ErrorCode::not_supported : calls.code();
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const ErrorCode code = find_plan(plan, target, graph, call, mode, max_workspace_bytes, workspace_bytes);
    if (code == ErrorCode::ok || code == ErrorCode::out_of_memory) return code;
  }
  return ErrorCode::not_supported;
}

/// A handle of the library, one call at a time.
struct CudnnHandle {
  /// It stays: a process that ends may have ended CUDA before.
  ErrorCode make() noexcept {
    if (handle != nullptr) return ErrorCode::ok;
    const cudnnStatus_t status = cudnnCreate(&handle);
    if (status != CUDNN_STATUS_SUCCESS) handle = nullptr;
    return code_of(status);
  }

  cudnnHandle_t handle = nullptr;
  std::mutex mutex;
};

class CudnnConvolutions final : public Convolutions {
 public:
  ErrorCode make_convolution_plan(int device, const ConvolutionCall& call, std::size_t max_workspace_bytes,
                                  ConvolutionPlanHandle& plan, std::size_t& workspace_bytes) noexcept override {
    if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) return static_cast<ErrorCode>(error);
    try {
      CudnnHandle& library = handles_of(device).planning;
      const std::lock_guard lock(library.mutex);
      if (const ErrorCode code = library.make(); code != ErrorCode::ok) {
        // One that cannot be loaded whole, or does not fit the driver, has no way to compute anything.
        return code == ErrorCode::out_of_memory ? code : ErrorCode::not_supported;
      }
      auto made = std::make_unique<CudnnPlan>();
      const ErrorCode code = find_plan(*made, {library.handle}, call, max_workspace_bytes, workspace_bytes);
      if (code != ErrorCode::ok) return code;
      plan = static_cast<ConvolutionPlanHandle>(reinterpret_cast<std::uintptr_t>(made.release()));
      return ErrorCode::ok;
    } catch (...) {
      return ErrorCode::out_of_memory;
    }
  }

  ErrorCode destroy_convolution_plan(int device, ConvolutionPlanHandle plan) noexcept override {
    static_cast<void>(cudaSetDevice(device));
    delete plan_of(plan);
    return ErrorCode::ok;
  }

  ErrorCode run_convolution(int device, ConvolutionPlanHandle handle, const ConvolutionOperands& operands,
                            std::span<const MemoryUse>, StreamHandle stream) noexcept override {
    if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) return static_cast<ErrorCode>(error);
    Calls calls;
    const Descriptor pack = calls.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    calls.set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {id_of_x, id_of_filter, id_of_y});
    calls.set<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                     {operands.x, operands.filter, operands.y});
    calls.set<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, {operands.workspace});
    calls.finalize(pack);
    if (!calls.ok()) return calls.code();
    try {
      CudnnHandle& library = handles_of(device).running;
      const std::lock_guard lock(library.mutex);
      if (const ErrorCode code = library.make(); code != ErrorCode::ok) return code;
      cudaStream_t before = nullptr;
      cudnnStatus_t status = cudnnGetStream(library.handle, &before);
      const auto now = reinterpret_cast<cudaStream_t>(stream);
      if (status == CUDNN_STATUS_SUCCESS && now != before) status = cudnnSetStream(library.handle, now);
      if (status != CUDNN_STATUS_SUCCESS) return code_of(status);
      status = cudnnBackendExecute(library.handle, plan_of(handle)->plan.get(), pack.get());
      // A stream that captures goes when it has.
      cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
      if (cudaStreamIsCapturing(now, &capture) == cudaSuccess && capture != cudaStreamCaptureStatusNone) {
        const cudnnStatus_t back = cudnnSetStream(library.handle, nullptr);
        if (status == CUDNN_STATUS_SUCCESS) status = back;
      }
      return code_of(status);
    } catch (...) {
      return ErrorCode::library_failed;
    }
  }

 private:
  static CudnnPlan* plan_of(ConvolutionPlanHandle handle) noexcept {
    return reinterpret_cast<CudnnPlan*>(static_cast<std::uintptr_t>(handle));
  }

  /// Of one device. Planning takes long, and runs do not wait for it.
  struct Handles {
    CudnnHandle planning, running;
  };
  Handles& handles_of(int device) {
    const std::lock_guard lock(mutex_);
    return handles_[device];
  }

  std::mutex mutex_;
  std::map<int, Handles> handles_;  ///< whose places stay
};

}  // namespace

Convolutions* cudnn_convolutions() noexcept {
  static CudnnConvolutions& convolutions = *new CudnnConvolutions;  // outlives whatever ends late
  return &convolutions;
}

ErrorCode plan_for_gpu(const std::string& properties, const ConvolutionCall& call, std::size_t max_workspace_bytes,
                       std::size_t& workspace_bytes) noexcept {
  Calls calls;
  PlanTarget target{nullptr, calls.make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)};
  calls.set_text(target.properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, properties);
  calls.finalize(target.properties);
  if (!calls.ok()) return calls.code();
  try {
    CudnnPlan plan;
    return find_plan(plan, target, call, max_workspace_bytes, workspace_bytes);
  } catch (...) {
    return ErrorCode::out_of_memory;
  }
}

}  // namespace dflow::cuda

#else

namespace dflow::cuda {

Convolutions* cudnn_convolutions() noexcept { return nullptr; }

ErrorCode plan_for_gpu(const std::string&, const ConvolutionCall&, std::size_t, std::size_t&) noexcept {
  return ErrorCode::not_supported;
}

}  // namespace dflow::cuda

#endif
