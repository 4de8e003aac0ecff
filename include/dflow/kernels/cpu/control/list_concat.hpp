#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/kernels/cpu/control/tensor_list.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Bounds what is kept of each element.
inline std::int64_t require_few_elements(std::int64_t count) {
  constexpr std::int64_t max_elements = std::int64_t{1} << 24;
  if (count <= max_elements) return count;
  throw_error(resource_exhausted(str_cat("a list of ", count, " elements as rows of a tensor")));
}

/// The elements of a list as the rows of a tensor.
class ListConcat {
 public:
  explicit ListConcat(KernelContext& context)
      : context_(context), list_(list_of(context.input(0))), asked_(shape_input(context, 1)) {
    if (asked_.has_rank() && asked_.rank() == 0) context.fail("the elements of the list are scalars");
    if (context.input(2).rank() != 1) context.fail("the numbers of rows are no vector");
  }

  void run() {
    const std::int64_t size = require_few_elements(list_.size());
    look_at_elements();
    const Shape row = row_shape_of_all();
    Tensor<std::int64_t>& counts = context_.allocate_output<std::int64_t>(1, Shape{size});
    std::vector<std::int64_t> begins(static_cast<std::size_t>(size));
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      begins[static_cast<std::size_t>(i)] = total;
      counts.data()[i] = rows_of(i);
      total = checked_add(total, counts.data()[i]);
    }
    AnyTensor& y = context_.allocate_output(0, rows_shape(total, row));
    if (y.num_elements() == 0) return;
    const std::int64_t width = row.num_elements();
    const double mean_rows = static_cast<double>(total) / static_cast<double>(size);
    const double cost_ns = 10 + mean_rows * static_cast<double>(width) * copy_cost_ns(y.dtype());
    context_.pool().parallel_for(size, cost_ns, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        put(list_.find(i), y, begins[static_cast<std::size_t>(i)] * width, counts.data()[i] * width);
      }
    });
  }

 private:
  /// Merges what those say that are set.
  void look_at_elements() {
    PartialShape wanted = asked_;
    bool is_first = true;
    for (std::int64_t i = 0; i < list_.size(); ++i) {
      const AnyTensor* const element = list_.find(i);
      if (element == nullptr) continue;
      require_element(context_, i, *element, context_.output_dtype(0), wanted);
      if (element->rank() == 0) context_.fail(str_cat("element ", i, " of the list is a scalar"));
      if (is_first) wanted = PartialShape(element->shape()).with_dim(0, asked_.dim(0));
      if (is_first) common_rows_ = element->dim(0);
      if (element->dim(0) != common_rows_) common_rows_ = dynamic;
      is_first = false;
    }
    asked_ = wanted;
    if (asked_.dim(0) != dynamic) common_rows_ = asked_.dim(0);
  }

  Shape row_shape_of_all() const {
    if (asked_.has_rank() && asked_.erased(0).is_fully_defined()) return asked_.erased(0).to_shape();
    context_.fail(str_cat("no element is set, and their shape is not known: ", asked_.to_string()));
  }

  std::int64_t rows_of(std::int64_t i) const {
    if (const AnyTensor* const element = list_.find(i)) return element->dim(0);
    const Tensor<std::int64_t>& given = context_.input<std::int64_t>(2);
    const std::int64_t rows = i < given.num_elements() ? given.data()[i] : common_rows_;
    if (rows < 0) context_.fail(str_cat("element ", i, " of the list is not set, and has ", rows, " rows"));
    return rows;
  }

  static void put(const AnyTensor* found, AnyTensor& y, std::int64_t at, std::int64_t count) {
    if (found != nullptr) {
      copy_elements(y.dtype(), count, found->raw_data(), element(y, at));
    } else if (count > 0 && y.dtype() != DType::string) {
      std::memset(element(y, at), 0, static_cast<std::size_t>(count) * size_of(y.dtype()));
    }
  }

  KernelContext& context_;
  const TensorList& list_;
  PartialShape asked_;                  ///< what is known of every element
  std::int64_t common_rows_ = dynamic;  ///< that all elements have
};

/// Tensors of some rows each, one behind the other, that share x's memory.
inline void split_into_list(KernelContext& context) {
  const AnyTensor& x = context.input(0);
  const PartialShape asked = shape_input(context, 1);
  const Tensor<std::int64_t>& counts = context.input<std::int64_t>(2);
  if (x.rank() == 0) context.fail("a scalar has no rows");
  if (counts.rank() != 1) context.fail("the numbers of rows are no vector");
  if (asked.has_rank() && (asked.rank() == 0 || !asked.with_dim(0, dynamic).is_compatible_with(x.shape()))) {
    context.fail(str_cat("rows of ", x.shape().to_string(), " are no elements of shape ", asked.to_string()));
  }
  std::vector<AnyTensor> parts;
  parts.reserve(static_cast<std::size_t>(require_few_elements(counts.num_elements())));
  std::int64_t at = 0;
  for (const std::int64_t rows : counts.span()) {
    if (rows < 0 || rows > x.dim(0) - at) {
      context.fail(str_cat("element ", parts.size(), " of ", rows, " rows from row ", at, " of ", x.dim(0)));
    }
    parts.push_back(x.slice(at, at + rows));
    at += rows;
  }
  if (at != x.dim(0)) context.fail(str_cat("the elements have ", at, " rows of ", x.dim(0)));
  context.set_output(0, make_list(TensorList(std::move(parts))));
}

}  // namespace detail

template <class T>
struct Kernel<TensorListConcatV2, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }
  void operator()(KernelContext& context) const { detail::ListConcat(context).run(); }
};

template <class T>
struct Kernel<TensorListSplit, Cpu, T> : detail::ListKernel {
  void operator()(KernelContext& context) const { detail::split_into_list(context); }
};

}  // namespace dflow
