// cuDNN's own plans of dflow's convolutions, for GPUs that are not there: cuDNN plans by the properties of a GPU.
#include <dflow/kernels/cuda/driver/cudnn_convolutions.hpp>

#include "catch.hpp"
#include "gpu/absent_gpus.hpp"

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::cuda;
using namespace dflow::testing;

namespace {

/// A convolution with the same extent for rows and columns.
ConvolutionCall square(std::int64_t batch, std::int64_t in, std::int64_t in_channels, std::int64_t filter,
                       std::int64_t out_channels, std::int64_t stride, std::int64_t dilation, std::int64_t before,
                       std::int64_t after) {
  ConvolutionCall call;
  call.alignment_bytes = 16;
  call.batch = batch;
  call.in_rows = call.in_cols = in;
  call.in_channels = in_channels;
  call.filter_rows = call.filter_cols = filter;
  call.out_channels = out_channels;
  call.stride_rows = call.stride_cols = stride;
  call.dilation_rows = call.dilation_cols = dilation;
  call.pad_top = call.pad_left = before;
  call.pad_bottom = call.pad_right = after;
  call.out_rows = call.out_cols = (in + before + after - (filter - 1) * dilation - 1) / stride + 1;
  return call;
}

std::vector<ConvolutionCall> calls() {
  return {
      square(64, 28, 1, 5, 32, 1, 1, 2, 2),     // LeNet
      square(64, 14, 32, 5, 64, 1, 1, 2, 2),    // the same
      square(64, 32, 3, 3, 16, 1, 1, 1, 1),     // ResNet-20
      square(64, 32, 16, 3, 32, 2, 1, 0, 1),    // the same: SAME with a stride pads behind alone
      square(64, 16, 32, 1, 64, 2, 1, 0, 0),    // the same
      square(32, 224, 3, 7, 64, 2, 1, 2, 3),    // ResNet-50
      square(32, 14, 256, 3, 256, 1, 1, 1, 1),  // the same
      square(8, 33, 16, 3, 16, 1, 2, 2, 2),     // dilated
      square(2, 7, 3, 3, 4, 1, 1, 1, 1),        // small
      square(1, 3, 1, 5, 2, 1, 1, 2, 2),        // a filter larger than the image
  };
}

}  // namespace

TEST_CASE("cuDNN has a way to compute convolutions of each type and direction on each kind of GPU", "[cudnn]") {
  constexpr std::size_t most = std::size_t{1} << 27;
  int planned = 0, declined = 0;
  for (const AbsentGpu& gpu : absent_gpus()) {
    const std::string properties = properties_of(gpu);
    for (ConvolutionCall call : calls()) {
      for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
        for (const auto kind :
             {ConvolutionKind::forward, ConvolutionKind::backward_input, ConvolutionKind::backward_filter}) {
          INFO(gpu.name << ", " << dtype_name(dtype) << ", direction " << static_cast<int>(kind) << ", x "
                        << call.in_rows << " x " << call.in_channels << ", filter " << call.filter_rows << " x "
                        << call.out_channels);
          call.dtype = dtype;
          call.kind = kind;
          std::size_t bytes = most + 1;
          const ErrorCode code = plan_for_gpu(properties, call, most, bytes);
          // bfloat16 came with 8.0.
          const bool may_decline = dtype == DType::bfloat16 && gpu.capability < 800;
          CHECK((code == ErrorCode::ok || (may_decline && code == ErrorCode::not_supported)));
          if (code == ErrorCode::ok) CHECK(bytes <= most);
          ++(code == ErrorCode::ok ? planned : declined);
        }
      }
    }
  }
  std::cout << "count: " << planned << " convolutions planned by cuDNN for GPUs that are not there, " << declined
            << " declined\n";
  CHECK(planned > 0);
}

TEST_CASE("cuDNN plans in TF32, and in the memory that it may take", "[cudnn]") {
  const std::string properties = properties_of(absent_gpus().back());
  for (const bool allows_tf32 : {false, true}) {
    for (ConvolutionCall call : calls()) {
      call.dtype = DType::float32;
      call.allows_tf32 = allows_tf32;
      for (const std::size_t most : {std::size_t{1} << 27, std::size_t{0}}) {
        std::size_t bytes = most + 1;
        const ErrorCode code = plan_for_gpu(properties, call, most, bytes);
        CHECK((code == ErrorCode::ok || (most == 0 && code == ErrorCode::not_supported)));
        if (code == ErrorCode::ok) CHECK(bytes <= most);
      }
    }
  }
}

TEST_CASE("cuDNN says what is no convolution", "[cudnn]") {
  const std::string properties = properties_of(absent_gpus().back());
  std::size_t bytes = 0;
  ConvolutionCall call = calls()[0];
  call.dtype = DType::float32;
  REQUIRE(plan_for_gpu(properties, call, std::size_t{1} << 27, bytes) == ErrorCode::ok);
  CHECK(plan_for_gpu("{}", call, std::size_t{1} << 27, bytes) == ErrorCode::invalid_value);
  CHECK(plan_for_gpu("", call, std::size_t{1} << 27, bytes) == ErrorCode::invalid_value);
  SECTION("a result of another size") { ++call.out_rows; }
  SECTION("images of no rows") { call.in_rows = 0; }
  SECTION("integers") { call.dtype = DType::int32; }
  const ErrorCode code = plan_for_gpu(properties, call, std::size_t{1} << 27, bytes);
  CHECK((code == ErrorCode::invalid_value || code == ErrorCode::not_supported));
}
