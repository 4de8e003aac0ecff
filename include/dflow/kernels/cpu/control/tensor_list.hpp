#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/tensor_list.hpp>
#include <dflow/ops/control/tensor_list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

inline std::int64_t element_number(const KernelContext& context, int input) {
  return context.input(input).dtype() == DType::int32 ? context.scalar_input<std::int32_t>(input)
                                                      : context.scalar_input<std::int64_t>(input);
}

/// The shape on an input, of which -1 stands for what is not known; of a scalar nothing is.
inline PartialShape shape_input(const KernelContext& context, int input) {
  const Tensor<std::int32_t>& extents = context.input<std::int32_t>(input);
  if (extents.rank() == 0) return PartialShape::unknown();
  if (extents.rank() != 1) context.fail(str_cat("the shape on input ", input, " is no vector"));
  const std::vector<std::int64_t> dims(extents.begin(), extents.end());
  return PartialShape(std::span<const std::int64_t>(dims));
}

inline Shape known_shape_input(const KernelContext& context, int input) {
  const PartialShape shape = shape_input(context, input);
  if (!shape.is_fully_defined()) context.fail(str_cat("the shape on input ", input, " is ", shape.to_string()));
  return shape.to_shape();
}

/// Errors: InvalidArgument for an element of another type, or whose shape is not one of those.
inline void require_element(const KernelContext& context, std::int64_t i, const AnyTensor& element, DType dtype,
                            const PartialShape& shape) {
  if (element.dtype() == dtype && shape.is_compatible_with(element.shape())) return;
  context.fail(str_cat("element ", i, " of the list is ", name(element.dtype()), element.shape().to_string(), ", not ",
                       name(dtype), shape.to_string()));
}

/// Element `i`, or zeros if it is not set.
inline AnyTensor list_element(const KernelContext& context, const TensorList& list, std::int64_t i, int output,
                              const PartialShape& shape) {
  const DType dtype = context.output_dtype(output);
  if (const AnyTensor* const found = list.find(i)) {
    require_element(context, i, *found, dtype, shape);
    return *found;
  }
  if (!shape.is_fully_defined()) {
    context.fail(str_cat("element ", i, " of the list is not set, and its shape is not known: ", shape.to_string()));
  }
  return AnyTensor::zeros(dtype, shape.to_shape(), context.output_allocator(output));
}

inline void require_in_list(const KernelContext& context, const TensorList& list, std::int64_t i) {
  if (i < 0 || i >= list.size()) context.fail(str_cat("element ", i, " of a list of ", list.size()));
}

/// Row `row` of output 0, [n, ...], becomes the element, or zeros if it is not set.
inline void put_row(KernelContext& context, const TensorList& list, std::int64_t i, std::int64_t row,
                    const Shape& element_shape) {
  AnyTensor& y = context.output(0);
  const std::int64_t count = element_shape.num_elements();
  const AnyTensor* const found = list.find(i);
  if (found != nullptr) {
    require_element(context, i, *found, y.dtype(), PartialShape(element_shape));
    if (count > 0) copy_elements(y.dtype(), count, found->raw_data(), element(y, row * count));
  } else if (count > 0 && y.dtype() != DType::string) {
    std::memset(element(y, row * count), 0, static_cast<std::size_t>(count) * size_of(y.dtype()));
  }
}

inline Shape rows_shape(std::int64_t rows, const Shape& element) {
  std::vector<std::int64_t> dims{rows};
  dims.insert(dims.end(), element.dims().begin(), element.dims().end());
  return Shape(std::span<const std::int64_t>(dims));
}

/// The shape without its leading dimension.
inline Shape row_shape(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

/// What all of those elements have: the first that is set says it where the input does not. `number(row)`: which.
template <class Number>
Shape common_element_shape(const KernelContext& context, const TensorList& list, PartialShape shape, std::int64_t rows,
                           Number number) {
  for (std::int64_t row = 0; row < rows && !shape.is_fully_defined(); ++row) {
    const AnyTensor* const found = list.find(number(row));
    if (found == nullptr) continue;
    require_element(context, number(row), *found, context.output_dtype(0), shape);
    shape = PartialShape(found->shape());
  }
  if (!shape.is_fully_defined()) {
    context.fail(str_cat("no element is set, and their shape is not known: ", shape.to_string()));
  }
  return shape.to_shape();
}

inline void stack_list(KernelContext& context, std::int64_t num_elements) {
  const TensorList& list = list_of(context.input(0));
  if (num_elements >= 0 && list.size() != num_elements) {
    context.fail(str_cat("the list has ", list.size(), " elements, not ", num_elements));
  }
  const auto same = [](std::int64_t row) { return row; };
  const Shape element = common_element_shape(context, list, shape_input(context, 1), list.size(), same);
  context.allocate_output(0, rows_shape(list.size(), element));
  for (std::int64_t i = 0; i < list.size() && element.num_elements() > 0; ++i) put_row(context, list, i, i, element);
}

inline void gather_list(KernelContext& context) {
  const TensorList& list = list_of(context.input(0));
  const Tensor<std::int32_t>& numbers = context.input<std::int32_t>(1);
  if (numbers.rank() != 1) context.fail("the elements' numbers are no vector");
  for (const std::int32_t i : numbers.span()) require_in_list(context, list, i);
  const auto number = [&](std::int64_t row) { return std::int64_t{numbers.data()[row]}; };
  const std::int64_t rows = numbers.num_elements();
  const Shape element = common_element_shape(context, list, shape_input(context, 2), rows, number);
  context.allocate_output(0, rows_shape(rows, element));
  for (std::int64_t row = 0; row < rows; ++row) put_row(context, list, number(row), row, element);
}

/// Rows of a result whose shape is on input `shape_of`; `number(row)` says which element each is.
template <class Number>
void dense_rows(KernelContext& context, int shape_input_number, Number number) {
  const TensorList& list = list_of(context.input(0));
  const Shape shape = known_shape_input(context, shape_input_number);
  if (shape.rank() == 0) context.fail("the result has a leading dimension");
  const Shape element = row_shape(shape);
  context.allocate_output(0, shape);
  if (element.num_elements() == 0) return;
  for (std::int64_t row = 0; row < shape.dim(0); ++row) put_row(context, list, number(row), row, element);
}

inline void gather_rows(KernelContext& context) {
  const Tensor<std::int32_t>& numbers = context.input<std::int32_t>(1);
  const Shape shape = known_shape_input(context, 2);
  if (numbers.rank() != 1 || shape.rank() == 0 || numbers.dim(0) != shape.dim(0)) {
    context.fail("there is not one number for each row of the result");
  }
  dense_rows(context, 2, [&](std::int64_t row) { return std::int64_t{numbers.data()[row]}; });
}

/// Rows of x, each an element that shares its memory.
inline AnyTensor row_of(const AnyTensor& x, std::int64_t row, const Shape& element) {
  return x.slice(row, row + 1).reshaped(element);
}

inline void unstack_tensor(KernelContext& context) {
  const AnyTensor& x = context.input(0);
  constexpr std::int64_t max_rows = std::int64_t{1} << 24;
  if (x.rank() == 0) context.fail("a scalar has no rows");
  if (x.dim(0) > max_rows) throw_error(resource_exhausted(str_cat("a list of the ", x.dim(0), " rows of a tensor")));
  const Shape element = row_shape(x.shape());
  std::vector<AnyTensor> rows;
  rows.reserve(static_cast<std::size_t>(x.dim(0)));
  for (std::int64_t row = 0; row < x.dim(0); ++row) rows.push_back(row_of(x, row, element));
  context.set_output(0, make_list(TensorList(std::move(rows))));
}

inline void scatter_tensor(KernelContext& context) {
  const AnyTensor& x = context.input(0);
  const Tensor<std::int32_t>& numbers = context.input<std::int32_t>(1);
  const std::int64_t size = context.scalar_input<std::int32_t>(2);
  if (x.rank() == 0 || numbers.rank() != 1 || numbers.dim(0) != x.dim(0)) {
    context.fail("there is not one number for each row");
  }
  const Shape element = row_shape(x.shape());
  TensorList list;
  if (size >= 0) list.resize(size);
  for (std::int64_t row = 0; row < x.dim(0); ++row) {
    const std::int64_t i = numbers.data()[row];
    if (i < 0 || (size >= 0 && i >= size)) context.fail(str_cat("element ", i, " of a list of ", size));
    if (list.find(i) == nullptr) {
      list.set(i, row_of(x, row, element));
    } else {
      TensorList one;
      one.set(i, row_of(x, row, element));
      list.add(one, *context.device().allocator);
    }
  }
  context.set_output(0, make_list(std::move(list)));
}

inline void set_list_item(KernelContext& context, bool resizes) {
  const std::int64_t i = element_number(context, 1);
  if (!resizes) require_in_list(context, list_of(context.input(0)), i);
  forward_or_copy_list(context, 0, 0).set(i, context.input(2));
}

inline void push_list_item(KernelContext& context) {
  TensorList& list = forward_or_copy_list(context, 0, 0);
  const std::int64_t i = list.size();
  list.set(i, context.input(1));
  context.set_output(1, Tensor<std::int64_t>(i));
}

inline void pop_list_item(KernelContext& context) {
  const std::int64_t i = list_of(context.input(0)).size() - 1;
  if (i < 0) context.fail("the list is empty");
  context.set_output(1, list_element(context, list_of(context.input(0)), i, 1, shape_input(context, 1)));
  forward_or_copy_list(context, 0, 0).resize(i);
  context.set_output(2, Tensor<std::int64_t>(i));
}

inline void sum_lists(KernelContext& context) {
  // Into the longest of those that nobody else has.
  int own = 0;
  for (int i = 1; i < context.num_inputs(); ++i) {
    const bool is_better = context.owns_input(i) >= context.owns_input(own);
    if (is_better && (context.owns_input(i) > context.owns_input(own) ||
                      list_of(context.input(i)).num_set() > list_of(context.input(own)).num_set())) {
      own = i;
    }
  }
  TensorList& sum = forward_or_copy_list(context, own, 0);
  for (int i = 0; i < context.num_inputs(); ++i) {
    if (i != own) sum.add(list_of(context.input(i)), *context.device().allocator);
  }
}

/// A list with one element.
inline void one_in_list(KernelContext& context, int number, int element) {
  TensorList list;
  list.set(element_number(context, number), context.input(element));
  context.set_output(0, make_list(std::move(list)));
}

/// What all kernels of lists are: cheap, and not divided among threads.
struct ListKernel {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit&) const { return 80; }
};
/// Those that move all elements.
struct ListCopyKernel {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }
};

}  // namespace detail

template <>
struct Kernel<EmptyTensorList, Cpu> : detail::ListKernel {
  void operator()(KernelContext& context) const { context.set_output(0, make_list({})); }
};

template <>
struct Kernel<TensorListReserve, Cpu> : detail::ListKernel {
  void operator()(KernelContext& context) const {
    TensorList list;
    list.resize(context.scalar_input<std::int32_t>(0));
    context.set_output(0, make_list(std::move(list)));
  }
};

template <>
struct Kernel<TensorListLength, Cpu> : detail::ListKernel {
  void operator()(KernelContext& context) const {
    context.set_output(0, Tensor<std::int32_t>(static_cast<std::int32_t>(list_of(context.input(0)).size())));
  }
};

template <>
struct Kernel<TensorListResize, Cpu> : detail::ListKernel {
  void operator()(KernelContext& context) const {
    forward_or_copy_list(context, 0, 0).resize(context.scalar_input<std::int32_t>(1));
  }
};

template <class T>
struct Kernel<TensorListFromTensor, Cpu, T> : detail::ListKernel {
  void operator()(KernelContext& context) const { detail::unstack_tensor(context); }
};

template <class T>
struct Kernel<TensorListStack, Cpu, T> : detail::ListCopyKernel {
  TensorListStack::Attrs attrs;
  void operator()(KernelContext& context) const { detail::stack_list(context, attrs.num_elements); }
};

template <class T>
struct Kernel<TensorListToTensor, Cpu, T> : detail::ListCopyKernel {
  void operator()(KernelContext& context) const {
    detail::dense_rows(context, 1, [](std::int64_t row) { return row; });
  }
};

template <class T, class U>
struct Kernel<TensorListGetItem, Cpu, T, U> : detail::ListKernel {
  TensorListGetItem::Attrs attrs;
  void operator()(KernelContext& context) const {
    const TensorList& list = list_of(context.input(0));
    const std::int64_t i = detail::element_number(context, 1);
    if (!attrs.zero_if_missing) detail::require_in_list(context, list, i);
    context.set_output(0, detail::list_element(context, list, i, 0, detail::shape_input(context, 2)));
  }
};

template <class T, class U>
struct Kernel<TensorListSetItem, Cpu, T, U> : detail::ListKernel {
  TensorListSetItem::Attrs attrs;
  void operator()(KernelContext& context) const { detail::set_list_item(context, attrs.resize_if_index_out_of_bounds); }
};

template <class T>
struct Kernel<TensorListPushBack, Cpu, T> : detail::ListKernel {
  void operator()(KernelContext& context) const { detail::push_list_item(context); }
};

template <class T>
struct Kernel<TensorListPopBack, Cpu, T> : detail::ListKernel {
  void operator()(KernelContext& context) const { detail::pop_list_item(context); }
};

template <class T>
struct Kernel<TensorListGather, Cpu, T> : detail::ListCopyKernel {
  void operator()(KernelContext& context) const { detail::gather_list(context); }
};

template <class T>
struct Kernel<TensorListGatherRows, Cpu, T> : detail::ListCopyKernel {
  void operator()(KernelContext& context) const { detail::gather_rows(context); }
};

template <class T>
struct Kernel<TensorListScatter, Cpu, T> : detail::ListKernel {
  void operator()(KernelContext& context) const { detail::scatter_tensor(context); }
};

template <>
struct Kernel<TensorListSum, Cpu> : detail::ListKernel {
  void operator()(KernelContext& context) const { detail::sum_lists(context); }
};

template <class T, class U>
struct Kernel<TensorListOne, Cpu, T, U> : detail::ListKernel {
  void operator()(KernelContext& context) const { detail::one_in_list(context, 0, 1); }
};

template <>
struct Kernel<TensorListOneList, Cpu> : detail::ListKernel {
  void operator()(KernelContext& context) const {
    static_cast<void>(list_of(context.input(1)));
    detail::one_in_list(context, 0, 1);
  }
};

template <class T>
struct Kernel<TensorListUnset, Cpu, T> : detail::ListKernel {
  void operator()(KernelContext& context) const {
    const std::int64_t i = detail::element_number(context, 1);
    forward_or_copy_list(context, 0, 0).unset(i);
  }
};

}  // namespace dflow
