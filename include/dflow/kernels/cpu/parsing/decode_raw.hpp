#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/parsing/decode_raw.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>

namespace dflow {

namespace detail {

/// How many numbers of `size` bytes each text holds. Errors: InvalidArgument if they differ, or it is no whole number.
std::int64_t numbers_per_text(const KernelContext& context, const Tensor<std::string>& texts, std::size_t size);

/// `count` numbers of `size` bytes each, whose bytes are turned round.
void copy_swapped(const char* from, std::int64_t count, std::size_t size, char* to) noexcept;

}  // namespace detail

template <class T>
struct Kernel<DecodeRaw, Cpu, T> {
  DecodeRaw::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return 300 + 200 * estimated_elements(init.inputs[0]); }

  void operator()(KernelContext& context) const {
    const Tensor<std::string>& texts = context.input<std::string>(0);
    const std::int64_t count = detail::numbers_per_text(context, texts, sizeof(T));
    T* const numbers = context.allocate_output<T>(0, texts.shape().concatenated(Shape{count})).data();
    if (count == 0) return;
    // The parts of a complex number are turned round by themselves.
    constexpr std::size_t parts = is_complex_element<T> ? 2 : 1;
    const bool is_swapped = attrs.little_endian != (std::endian::native == std::endian::little);
    const double cost_ns = static_cast<double>(texts.data()->size()) * (is_swapped ? 1 : 0.1) + 5;
    context.pool().parallel_for(texts.num_elements(), cost_ns, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const char* const from = texts.data()[i].data();
        if constexpr (std::is_same_v<T, bool>) {
          std::transform(from, from + count, numbers + i * count, [](char byte) { return byte != 0; });
        } else if (is_swapped) {
          detail::copy_swapped(from, count * static_cast<std::int64_t>(parts), sizeof(T) / parts,
                               reinterpret_cast<char*>(numbers + i * count));
        } else {
          std::memcpy(numbers + i * count, from, static_cast<std::size_t>(count) * sizeof(T));
        }
      }
    });
  }
};

}  // namespace dflow
