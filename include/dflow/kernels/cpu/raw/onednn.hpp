#pragma once

#include <dflow/kernels/cpu/raw/options.hpp>

#include <cstdint>

/// oneDNN behind plain functions. Each runs in the calling thread alone; the caller shards the work. Only declared for
/// programs that have oneDNN (has_onednn()).
namespace dflow::cpu {

struct Conv2dShape;

/// c[m, n] (+)= op(a) op(b), rows lda, ldb, ldc apart as they lie in memory. False if oneDNN could not.
[[nodiscard]] bool onednn_gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                               const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
                               std::int64_t ldc, bool accumulate);

}  // namespace dflow::cpu
