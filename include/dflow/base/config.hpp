#pragma once

static_assert(sizeof(void*) >= 8, "dflow needs a 64-bit platform: tensors and files may be larger than 4 GiB");

/// Marks a function that runs on the host and, under nvcc, on the GPU as well. Units that are compiled once per level
/// of the processor's instructions (`kernels/cpu/loops/lanes.hpp`) must leave no copy of it that the rest of the
/// program could get.
#if defined(__CUDACC__)
#define DFLOW_FN __host__ __device__
#elif defined(DFLOW_CPU_VARIANT)
#define DFLOW_FN __attribute__((always_inline))
#else
#define DFLOW_FN
#endif

#define DFLOW_ALWAYS_INLINE inline __attribute__((always_inline))
#define DFLOW_NOINLINE __attribute__((noinline))
