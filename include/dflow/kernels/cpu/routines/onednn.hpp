#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>
#include <dflow/kernels/shared/conv2d_shape.hpp>

#include <cstdint>

/// oneDNN behind plain functions, which return false where it could not and nothing was written. It never starts
/// threads of its own.
namespace dflow::cpu {

/// c[m, n] (+)= op(a) op(b), rows lda, ldb, ldc apart as they lie in memory; in the calling thread.
[[nodiscard]] bool onednn_gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                               const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
                               std::int64_t ldc, bool accumulate);

/// As conv2d and its gradients, sharded over the batch.
[[nodiscard]] bool onednn_conv2d(ThreadPool& pool, const Conv2dShape& shape, const float* input, const float* filter,
                                 float* output, const CpuOptions& options);
/// As onednn_conv2d of a filter [rows, columns, out_channels, in_channels]; only where that is oneDNN at its fastest.
[[nodiscard]] bool onednn_conv2d_turned(ThreadPool& pool, const Conv2dShape& shape, const float* input,
                                        const float* filter, float* output, const CpuOptions& options);
[[nodiscard]] bool onednn_conv2d_backward_input(ThreadPool& pool, const Conv2dShape& shape, const float* filter,
                                                const float* grad_output, float* grad_input, const CpuOptions& options);
[[nodiscard]] bool onednn_conv2d_backward_filter(ThreadPool& pool, const Conv2dShape& shape, const float* input,
                                                 const float* grad_output, float* grad_filter,
                                                 const CpuOptions& options);

}  // namespace dflow::cpu
