// Tests of NCCL without a GPU: dflow finds the library, and connecting GPUs that are not there gives an error.
#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/driver/nccl_collectives.hpp>

#include "catch.hpp"

#include <dlfcn.h>

#include <array>
#include <iostream>
#include <string>

using namespace dflow;
using namespace dflow::cuda;

TEST_CASE("NCCL 2 can be loaded", "[gpu]") {
  REQUIRE(nccl_collectives() != nullptr);
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  INFO(dlerror());
  REQUIRE(library != nullptr);
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
  REQUIRE(get_version != nullptr);
  int version = 0;
  REQUIRE(get_version(&version) == 0);
  CHECK(version / 10000 == 2);
  std::cout << "NCCL " << version / 10000 << "." << version / 100 % 100 << "." << version % 100 << "\n";
  dlclose(library);
}

TEST_CASE("NCCL adds real numbers, but not those that it would round after each addition", "[gpu]") {
  const Collectives& nccl = *nccl_collectives();
  for (const DType dtype : {DType::float32, DType::float64, DType::int8, DType::uint8, DType::int32, DType::uint32,
                            DType::int64, DType::uint64}) {
    CHECK(nccl.can_reduce(dtype));
  }
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::int16, DType::uint16, DType::complex64,
                            DType::boolean, DType::string}) {
    CHECK_FALSE(nccl.can_reduce(dtype));
  }
}

TEST_CASE("GPUs that are not there are not connected, and it is said why", "[gpu]") {
  constexpr std::array<int, 2> devices{1000, 1001};
  CommunicatorsHandle communicators = CommunicatorsHandle::none;
  std::string why;
  const ErrorCode code = nccl_collectives()->make_communicators(devices, communicators, why);
  CHECK(code != ErrorCode::ok);
  CHECK(communicators == CommunicatorsHandle::none);
  CHECK_FALSE(why.empty());
  const Status status = status_of(code, str_cat("connecting: ", why));
  CHECK_FALSE(status.ok());
  std::cout << status.to_string() << "\n";
}
