#include <dflow/core/device_info.hpp>

#include <dflow/base/status.hpp>

#include "catch.hpp"

using namespace dflow;

TEST_CASE("a memory is one of a task", "[core][device]") {
  DeviceInfo cpu, gpu, gpu_beside, elsewhere;
  cpu.name = "/job:a/replica:0/task:0/device:CPU:0";
  gpu.name = "/job:a/replica:0/task:0/device:GPU:0";
  gpu_beside.name = "/job:a/replica:0/task:0/device:GPU:1";
  elsewhere.name = "/job:a/replica:0/task:1/device:GPU:0";
  gpu.memory = gpu_beside.memory = elsewhere.memory = "memory";
  CHECK(memory_of(cpu) == host_memory_of(cpu));
  CHECK(host_memory_of(gpu) == memory_of(cpu));
  CHECK(memory_of(gpu) != memory_of(cpu));
  CHECK(memory_of(gpu) == memory_of(gpu_beside));
  CHECK(memory_of(gpu) != memory_of(elsewhere));
  CHECK(host_memory_of(elsewhere) != host_memory_of(gpu));
  DeviceInfo unnamed;
  unnamed.name = "the second";
  CHECK_THROWS_AS(memory_of(unnamed), Error);
}
