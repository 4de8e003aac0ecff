#include "cuda/fake_programs.hpp"

#include "cuda/fake_driver.hpp"

#include <dflow/base/str_cat.hpp>

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

namespace dflow::testing {

using cuda::ErrorCode;
using cuda::KernelFunction;
using cuda::ProgramHandle;

namespace {

/// CUDA's words and functions, for the host. The functions are the C library's, as of the emulated kernels.
constexpr std::string_view host_prelude = R"(
#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(threads)
struct Place { unsigned x; };
static thread_local Place threadIdx, blockIdx, blockDim, gridDim;
static inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
static inline unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
static inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }
#define FUNCTION_OF_ONE(name) extern "C" double name(double); extern "C" float name##f(float);
#define FUNCTION_OF_TWO(name) extern "C" double name(double, double); extern "C" float name##f(float, float);
FUNCTION_OF_ONE(fabs) FUNCTION_OF_ONE(exp) FUNCTION_OF_ONE(log) FUNCTION_OF_ONE(log1p) FUNCTION_OF_ONE(expm1)
FUNCTION_OF_ONE(sqrt) FUNCTION_OF_ONE(sin) FUNCTION_OF_ONE(cos) FUNCTION_OF_ONE(tan) FUNCTION_OF_ONE(tanh)
FUNCTION_OF_ONE(sinh) FUNCTION_OF_ONE(cosh) FUNCTION_OF_ONE(atan) FUNCTION_OF_ONE(erf) FUNCTION_OF_ONE(erfc)
FUNCTION_OF_ONE(floor) FUNCTION_OF_ONE(ceil) FUNCTION_OF_ONE(nearbyint) FUNCTION_OF_TWO(fmod) FUNCTION_OF_TWO(pow)
extern "C" double lgamma_r(double, int*);
extern "C" float lgammaf_r(float, int*);
static inline double lgamma(double x) { int sign; return lgamma_r(x, &sign); }
static inline float lgammaf(float x) { int sign; return lgammaf_r(x, &sign); }
struct GridShape { unsigned blocks, threads; };
/// As `GridOrder`.
static inline unsigned place_of(unsigned i, unsigned n, unsigned long order) {
  const unsigned kind = order % 3, even = (n + 1) / 2;
  return kind == 0 ? i : kind == 1 ? n - 1 - i : i < even ? 2 * i : 2 * (n - 1 - i) + 1;
}
template <class Args>
static void run_grid(void (*kernel)(Args), GridShape shape, const void* arguments, unsigned long order) {
  gridDim.x = shape.blocks;
  blockDim.x = shape.threads;
  for (unsigned b = 0; b < shape.blocks; ++b) {
    blockIdx.x = place_of(b, shape.blocks, order);
    for (unsigned t = 0; t < shape.threads; ++t) {
      threadIdx.x = place_of(t, shape.threads, order / 3);
      kernel(*(const Args*)arguments);
    }
  }
}
)";

/// Libraries of this process, and the folder that they lie in, which goes with it.
class HostLibraries {
 public:
  ~HostLibraries() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  std::string find(const std::string& text) {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = paths_.try_emplace(text);
    if (is_new) found->second = compile(text);
    return found->second;
  }

 private:
  std::string compile(const std::string& text) {
    if (folder_.empty()) {
      std::string name = (std::filesystem::temp_directory_path() / "dflow-chains-XXXXXX").string();
      if (mkdtemp(name.data()) == nullptr) return {};
      folder_ = name;
    }
    const std::string base = (folder_ / str_cat("program_", paths_.size())).string();
    {
      std::ofstream source(base + ".cpp");
      source << host_prelude << text;
      for (std::size_t at = 0; (at = text.find("__global__", at)) != std::string::npos; ++at) {
        const std::size_t end = text.find("(const __grid_constant__", at), begin = text.rfind(' ', end) + 1;
        const std::string kernel = text.substr(begin, end - begin);
        source << "extern \"C\" void emulate_" << kernel
               << "(GridShape shape, const void* arguments, unsigned long order) { run_grid(&" << kernel
               << ", shape, arguments, order); }\n";
      }
    }
    const std::string library = base + ".so";
    const std::string command =
        str_cat(DFLOW_TEST_CXX, " -std=c++20 -O1 -ffp-contract=off -fno-math-errno -shared -fPIC -w -o ", library, " ",
                base, ".cpp > ", base, ".log 2>&1");
    return std::system(command.c_str()) == 0 ? library : std::string();
  }

  std::mutex mutex_;
  std::filesystem::path folder_;
  std::map<std::string, std::string> paths_;
};

}  // namespace

std::string compile_for_host(const std::string& text) {
  static HostLibraries libraries;
  return libraries.find(text);
}

void FakePrograms::refuse(std::string log) {
  const std::lock_guard lock(mutex_);
  refusal_ = std::move(log);
}

void FakePrograms::fail_loads(ErrorCode code) {
  const std::lock_guard lock(mutex_);
  load_code_ = code;
}

std::vector<std::string> FakePrograms::texts() const {
  const std::lock_guard lock(mutex_);
  return texts_;
}

std::size_t FakePrograms::num_alive() const {
  const std::lock_guard lock(mutex_);
  return loaded_.size();
}

std::shared_ptr<const void> FakePrograms::use_of(const KernelFunction& function) const {
  const std::lock_guard lock(mutex_);
  const auto found = loaded_.find(reinterpret_cast<std::uintptr_t>(function.entry));
  return found == loaded_.end() ? nullptr : found->second.use;
}

ErrorCode FakePrograms::compile(const std::string& text, int capability, std::string& image,
                                std::string& log) noexcept {
  if (const ErrorCode code = driver_.count_call(0); code != ErrorCode::ok) return code;
  if (capability != 90) driver_.report("a chain is compiled for another GPU than there is");
  {
    const std::lock_guard lock(mutex_);
    if (!refusal_.empty()) {
      log = refusal_;
      return ErrorCode::not_supported;
    }
    texts_.push_back(text);
  }
  image = compile_for_host(text);
  if (!image.empty()) return ErrorCode::ok;
  driver_.report("the host's compiler refuses the text of a chain:\n" + text);
  log = "the host's compiler refuses it";
  return ErrorCode::not_supported;
}

ErrorCode FakePrograms::load(int device, const std::string& image, ProgramHandle& program) noexcept {
  if (const ErrorCode code = driver_.count_call(device); code != ErrorCode::ok) return code;
  const std::lock_guard lock(mutex_);
  if (load_code_ != ErrorCode::ok) return load_code_;
  void* const library = dlopen(image.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return ErrorCode::invalid_value;
  const std::uintptr_t handle = next_handle_++;
  loaded_.emplace(handle, Loaded{device, library, std::make_shared<int>(0)});
  program = static_cast<ProgramHandle>(handle);
  return ErrorCode::ok;
}

ErrorCode FakePrograms::find_kernel(int device, ProgramHandle program, const char* name,
                                    KernelFunction& function) noexcept {
  if (const ErrorCode code = driver_.count_call(device); code != ErrorCode::ok) return code;
  const std::lock_guard lock(mutex_);
  const auto found = loaded_.find(static_cast<std::uintptr_t>(program));
  if (found == loaded_.end() || found->second.device != device) return ErrorCode::invalid_handle;
  void* const address = dlsym(found->second.library, str_cat("emulate_", name).c_str());
  if (address == nullptr) return ErrorCode::invalid_value;
  function.entry = reinterpret_cast<const void*>(found->first);
  function.emulate = reinterpret_cast<decltype(function.emulate)>(address);
  return ErrorCode::ok;
}

ErrorCode FakePrograms::unload(int, ProgramHandle program) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = loaded_.find(static_cast<std::uintptr_t>(program));
  if (found == loaded_.end()) {
    driver_.report("a program is unloaded that is not loaded");
    return ErrorCode::invalid_handle;
  }
  if (found->second.use.use_count() > 1 && !driver_.is_lost())
    driver_.report("a program is unloaded while a kernel of it may run");
  dlclose(found->second.library);
  loaded_.erase(found);
  return ErrorCode::ok;
}

}  // namespace dflow::testing
