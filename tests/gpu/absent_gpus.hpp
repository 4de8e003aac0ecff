#pragma once

#include <dflow/base/str_cat.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dflow::testing {

/// A GPU that need not be there, as cuDNN plans for it.
struct AbsentGpu {
  const char* name;
  int capability;  ///< 900 is 9.0
  int multiprocessors;
  std::int64_t memory_bytes, l2_bytes, shared_bytes;
};

/// From NVIDIA's data sheets and the tables of compute capabilities in the CUDA C++ programming guide.
inline std::vector<AbsentGpu> absent_gpus() {
  return {{"Tesla T4", 750, 40, 15'843'721'216, 4'194'304, 65'536},
          {"NVIDIA A100-SXM4-80GB", 800, 108, 85'031'714'816, 41'943'040, 166'912},
          {"NVIDIA L4", 890, 58, 23'580'639'232, 50'331'648, 101'376},
          {"NVIDIA H100 80GB HBM3", 900, 132, 84'929'806'336, 52'428'800, 232'448}};
}

/// Its properties, in the form of CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR.
inline std::string properties_of(const AbsentGpu& gpu) {
  return str_cat(R"({"deviceName":")", gpu.name, R"(","deviceVer":)", gpu.capability, R"(,"driverVer":13000,)",
                 R"("cudaDeviceId":0,"multiProcessorCount":)", gpu.multiprocessors, R"(,"totalGlobalMem":)",
                 gpu.memory_bytes, R"(,"l2CacheSize":)", gpu.l2_bytes, R"(,"maxSharedMemoryPerBlockOptin":)",
                 gpu.shared_bytes, R"(,"maxThreadsPerSM":)", gpu.capability == 750 ? 1024 : 2048,
                 R"(,"maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)",
                 R"("regsPerBlock":65536,"maxThreadsPerBlock":1024,"maxCtasPerSM":16,"warpSize":32,)",
                 R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"smClockRateKHz":1500000,)",
                 R"("memClockRateKHz":1500000,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1})");
}

}  // namespace dflow::testing
