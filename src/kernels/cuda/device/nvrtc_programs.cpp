// The one implementation of the table of programs that calls NVRTC, which is loaded when the first chain is compiled,
// and CUDA's runtime.

#include <dflow/kernels/cuda/driver/nvrtc_programs.hpp>

#if defined(DFLOW_HAS_NVRTC)

#include <dflow/base/str_cat.hpp>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace dflow::cuda {

namespace {

ErrorCode code_of(cudaError_t error) noexcept {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());  // one that does not stick is forgotten
  return static_cast<ErrorCode>(error);
}

template <class Call>
ErrorCode on(int device, const Call& call) noexcept {
  const cudaError_t error = cudaSetDevice(device);
  return error != cudaSuccess ? code_of(error) : code_of(call());
}

/// The library's functions, found where the program runs: of the major version that this was built with.
struct Nvrtc {
  decltype(&nvrtcCreateProgram) create_program = nullptr;
  decltype(&nvrtcCompileProgram) compile_program = nullptr;
  decltype(&nvrtcDestroyProgram) destroy_program = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&nvrtcGetPTX) ptx = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  std::vector<int> capabilities;  ///< that it makes code for
  std::string missing;            ///< why it cannot be used; else empty

  Nvrtc() {
    const std::string name = str_cat("libnvrtc.so.", CUDART_VERSION / 1000);
    library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      const char* const why = dlerror();
      missing = why != nullptr ? why : str_cat(name, " cannot be loaded");
      return;
    }
    decltype(&nvrtcGetNumSupportedArchs) count_capabilities = nullptr;
    decltype(&nvrtcGetSupportedArchs) list_capabilities = nullptr;
    find("nvrtcCreateProgram", create_program);
    find("nvrtcCompileProgram", compile_program);
    find("nvrtcDestroyProgram", destroy_program);
    find("nvrtcGetProgramLogSize", log_size);
    find("nvrtcGetProgramLog", log);
    find("nvrtcGetCUBINSize", cubin_size);
    find("nvrtcGetCUBIN", cubin);
    find("nvrtcGetPTXSize", ptx_size);
    find("nvrtcGetPTX", ptx);
    find("nvrtcGetErrorString", error_string);
    find("nvrtcGetNumSupportedArchs", count_capabilities);
    find("nvrtcGetSupportedArchs", list_capabilities);
    if (!missing.empty()) return;
    int count = 0;
    if (count_capabilities(&count) == NVRTC_SUCCESS) capabilities.resize(static_cast<std::size_t>(count));
    if (count == 0 || list_capabilities(capabilities.data()) != NVRTC_SUCCESS) missing = str_cat(name, " knows no GPU");
  }

 private:
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr && missing.empty()) missing = str_cat("NVRTC lacks ", name);
  }

  void* library_ = nullptr;  ///< for good
};

/// A text that is being compiled.
class NvrtcProgram {
 public:
  explicit NvrtcProgram(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;
  ~NvrtcProgram() {
    if (program_ != nullptr) static_cast<void>(nvrtc_.destroy_program(&program_));
  }

  nvrtcResult compile(const std::string& text, const std::string& architecture) {
    const nvrtcResult made = nvrtc_.create_program(&program_, text.c_str(), "chain.cu", 0, nullptr, nullptr);
    if (made != NVRTC_SUCCESS) return made;
    // As the elementwise kernels of the library are compiled.
    const std::array<const char*, 3> options{architecture.c_str(), "--std=c++17", "--fmad=false"};
    return nvrtc_.compile_program(program_, static_cast<int>(options.size()), options.data());
  }
  std::string log() const {
    std::size_t size = 0;
    if (program_ == nullptr || nvrtc_.log_size(program_, &size) != NVRTC_SUCCESS || size < 2) return {};
    std::string text(size, '\0');
    if (nvrtc_.log(program_, text.data()) != NVRTC_SUCCESS) return {};
    text.resize(size - 1);
    return text;
  }
  nvrtcResult read(bool is_machine_code, std::string& image) const {
    std::size_t size = 0;
    const nvrtcResult sized = is_machine_code ? nvrtc_.cubin_size(program_, &size) : nvrtc_.ptx_size(program_, &size);
    if (sized != NVRTC_SUCCESS) return sized;
    image.resize(size);
    return is_machine_code ? nvrtc_.cubin(program_, image.data()) : nvrtc_.ptx(program_, image.data());
  }

 private:
  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

cudaLibrary_t native(ProgramHandle program) noexcept { return reinterpret_cast<cudaLibrary_t>(program); }

class NvrtcPrograms final : public Programs {
 public:
  ErrorCode compile(const std::string& text, int capability, std::string& image, std::string& log) noexcept override {
    try {
      static const Nvrtc nvrtc;
      if (!nvrtc.missing.empty()) {
        log = nvrtc.missing;
        return ErrorCode::not_supported;
      }
      // Machine code for what it knows; else PTX of the nearest below, which the driver compiles.
      int nearest = 0;
      for (const int known : nvrtc.capabilities) {
        if (known <= capability) nearest = std::max(nearest, known);
      }
      if (nearest == 0) {
        log = str_cat("this NVRTC makes no code for compute capability ", capability / 10, ".", capability % 10);
        return ErrorCode::not_supported;
      }
      const bool is_machine_code = nearest == capability;
      NvrtcProgram program(nvrtc);
      nvrtcResult result =
          program.compile(text, str_cat("--gpu-architecture=", is_machine_code ? "sm_" : "compute_", nearest));
      if (result == NVRTC_SUCCESS) result = program.read(is_machine_code, image);
      if (result == NVRTC_SUCCESS) return ErrorCode::ok;
      if (result == NVRTC_ERROR_OUT_OF_MEMORY) return ErrorCode::out_of_memory;
      log = str_cat(nvrtc.error_string(result), "\n", program.log());
      return ErrorCode::not_supported;
    } catch (...) {
      return ErrorCode::out_of_memory;
    }
  }

  ErrorCode load(int device, const std::string& image, ProgramHandle& program) noexcept override {
    return on(device, [&] {
      cudaLibrary_t loaded = nullptr;
      const cudaError_t error = cudaLibraryLoadData(&loaded, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
      program = static_cast<ProgramHandle>(reinterpret_cast<std::uintptr_t>(loaded));
      return error;
    });
  }

  ErrorCode find_kernel(int device, ProgramHandle program, const char* name,
                        KernelFunction& function) noexcept override {
    return on(device, [&] {
      cudaKernel_t kernel = nullptr;
      const cudaError_t error = cudaLibraryGetKernel(&kernel, native(program), name);
      function.entry = kernel;  // a launch takes it for a function's symbol
      return error;
    });
  }

  ErrorCode unload(int device, ProgramHandle program) noexcept override {
    return on(device, [&] { return cudaLibraryUnload(native(program)); });
  }
};

}  // namespace

Programs* nvrtc_programs() noexcept {
  static NvrtcPrograms programs;
  return &programs;
}

}  // namespace dflow::cuda

#else

namespace dflow::cuda {

Programs* nvrtc_programs() noexcept { return nullptr; }

}  // namespace dflow::cuda

#endif
