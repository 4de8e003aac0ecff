#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/reduction/prod_gradient.hpp>

#include <array>
#include <type_traits>
#include <vector>

namespace dflow {

namespace detail {

/// The groups of elements that a reduction combines: element j of group g lies at base(g) + offsets[j].
class ReductionGroups {
 public:
  /// axes: checked by the op's shape function, which inferred_shape calls with the values of the step.
  ReductionGroups(const Shape& x, const AnyTensor& axes) {
    std::uint32_t mask = 0;
    for (const std::int64_t axis : SmallIntegers(axes)) mask |= 1u << (axis < 0 ? axis + x.rank() : axis);
    const auto strides = row_major_strides(x);
    offsets_.push_back(0);
    for (int i = 0; i < x.rank(); ++i) {
      const std::int64_t stride = strides[static_cast<std::size_t>(i)];
      if ((mask >> i & 1u) == 0) {
        kept_[static_cast<std::size_t>(num_kept_)] = {x[i], stride};
        ++num_kept_;
        count_ *= x[i];
        continue;
      }
      std::vector<std::int64_t> more;
      more.reserve(offsets_.size() * static_cast<std::size_t>(x[i]));
      for (const std::int64_t offset : offsets_) {
        for (std::int64_t at = 0; at < x[i]; ++at) more.push_back(offset + at * stride);
      }
      offsets_ = std::move(more);
    }
  }

  std::int64_t count() const { return count_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  std::int64_t base(std::int64_t group) const {
    std::int64_t at = 0;
    for (int i = num_kept_; i-- > 0;) {
      const auto [extent, stride] = kept_[static_cast<std::size_t>(i)];
      at += group % extent * stride;
      group /= extent;
    }
    return at;
  }

 private:
  struct KeptDim {
    std::int64_t extent;
    std::int64_t stride;
  };
  std::vector<std::int64_t> offsets_;
  std::array<KeptDim, max_rank> kept_{};
  int num_kept_ = 0;
  std::int64_t count_ = 1;
};

template <class T>
using ProductOf = std::conditional_t<sizeof(T) == 2, float, T>;

}  // namespace detail

template <class T>
struct Kernel<ExclusiveProd, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 1000 + estimated_elements(init.inputs[0]) * 4; }

  /// y_j is the product of all elements before j times the product of all elements after j.
  void operator()(KernelContext& context) const {
    using Wide = detail::ProductOf<T>;
    const Shape shape = detail::inferred_shape(context);
    const T* x = context.input<T>(0).data();
    T* y = context.allocate_output<T>(0, shape).data();
    if (shape.num_elements() == 0) return;
    const detail::ReductionGroups groups(shape, context.input(1));
    const std::vector<std::int64_t>& offsets = groups.offsets();
    context.pool().parallel_for(groups.count(), 4.0 * static_cast<double>(offsets.size()),
                                [&](std::int64_t begin, std::int64_t end) {
                                  std::vector<Wide> before(offsets.size());
                                  for (std::int64_t group = begin; group < end; ++group) {
                                    const std::int64_t base = groups.base(group);
                                    Wide product(1);
                                    for (std::size_t j = 0; j < offsets.size(); ++j) {
                                      before[j] = product;
                                      product = product * static_cast<Wide>(x[base + offsets[j]]);
                                    }
                                    product = Wide(1);
                                    for (std::size_t j = offsets.size(); j-- > 0;) {
                                      y[base + offsets[j]] = static_cast<T>(before[j] * product);
                                      product = product * static_cast<Wide>(x[base + offsets[j]]);
                                    }
                                  }
                                });
  }
};

template <class T>
struct Kernel<ExclusiveProdGrad, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 1000 + estimated_elements(init.inputs[0]) * 8; }

  /// The exclusive product of dual numbers x + dy e: its derivative part is the result.
  void operator()(KernelContext& context) const {
    using Wide = detail::ProductOf<T>;
    struct Dual {
      Wide value;
      Wide derivative;
      Dual times(const Dual& b) const { return {value * b.value, value * b.derivative + derivative * b.value}; }
    };
    const Shape shape = detail::inferred_shape(context);
    const T *x = context.input<T>(0).data(), *dy = context.input<T>(2).data();
    T* dx = context.allocate_output<T>(0, shape).data();
    if (shape.num_elements() == 0) return;
    const detail::ReductionGroups groups(shape, context.input(1));
    const std::vector<std::int64_t>& offsets = groups.offsets();
    context.pool().parallel_for(
        groups.count(), 8.0 * static_cast<double>(offsets.size()), [&](std::int64_t begin, std::int64_t end) {
          std::vector<Dual> before(offsets.size());
          for (std::int64_t group = begin; group < end; ++group) {
            const std::int64_t base = groups.base(group);
            const auto at = [&](std::size_t j) {
              return Dual{static_cast<Wide>(x[base + offsets[j]]), static_cast<Wide>(dy[base + offsets[j]])};
            };
            Dual product{Wide(1), Wide(0)};
            for (std::size_t j = 0; j < offsets.size(); ++j) {
              before[j] = product;
              product = product.times(at(j));
            }
            product = {Wide(1), Wide(0)};
            for (std::size_t j = offsets.size(); j-- > 0;) {
              dx[base + offsets[j]] = static_cast<T>(before[j].times(product).derivative);
              product = product.times(at(j));
            }
          }
        });
  }
};

}  // namespace dflow
