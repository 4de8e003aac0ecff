#pragma once

#include <dflow/base/config.hpp>
#include <dflow/kernels/cpu/routines/onednn.hpp>

#if defined(DFLOW_HAS_ONEDNN)
#include <dflow/kernels/cpu/routines/onednn_one_thread.hpp>

#include <dnnl.h>
#endif

namespace dflow::cpu {

#if defined(DFLOW_HAS_ONEDNN)

bool onednn_gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                 std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc, bool accumulate) {
  const OnednnOneThread one_thread;
  return dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb,
                    accumulate ? 1.0f : 0.0f, c, ldc) == dnnl_success;
}

#else

bool onednn_gemm(bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t, const float*,
                 std::int64_t, float*, std::int64_t, bool) {
  return false;
}

#endif

}  // namespace dflow::cpu
