#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/kernels/shared/list_output.hpp>
#include <dflow/state/tensor_list.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

/// The work of list kernels on any device. Only `Elements` touches elements, and each device has its own:
///
/// ```cpp
/// static AnyTensor zeros(KernelContext&, int output, const Shape&);
/// /// Row i of output 0, of `count` elements, becomes the elements of *find(i), or zeros where that is null. There are
/// /// elements: count > 0.
/// static void put_rows(KernelContext&, std::int64_t rows, std::int64_t count, find);
/// /// Part i of output 0 becomes part(i), a ListPart.
/// static void put_parts(KernelContext&, std::int64_t parts, part);
/// /// sum += more, in place if nobody else has `sum`. Errors: InvalidArgument if it is no number.
/// static void add(KernelContext&, AnyTensor& sum, const AnyTensor& more);
/// /// The sum of two or more elements of one type and shape, in their order; 16-bit floats are rounded once. Errors:
/// as
/// /// of add.
/// static AnyTensor sum(KernelContext&, std::span<const AnyTensor> terms);
/// ```
namespace dflow::detail {

/// Elements from `at` on; the part may be empty. They are elements of the tensor `from`, or zeros if it is null.
struct ListPart {
  const AnyTensor* from;
  std::int64_t at, count;
};

inline std::int64_t element_number(const KernelContext& context, int input) {
  return context.input(input).dtype() == DType::int32 ? context.scalar_input<std::int32_t>(input)
                                                      : context.scalar_input<std::int64_t>(input);
}

/// The shape on an input: -1 is an unknown extent, and a scalar is an unknown shape.
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

/// Errors: InvalidArgument for an element of another type, or of an incompatible shape.
inline void require_element(const KernelContext& context, std::int64_t i, const AnyTensor& element, DType dtype,
                            const PartialShape& shape) {
  if (element.dtype() == dtype && shape.is_compatible_with(element.shape())) return;
  context.fail(str_cat("element ", i, " of the list is ", dtype_name(element.dtype()), element.shape().to_string(),
                       ", not ", dtype_name(dtype), shape.to_string()));
}

/// Element `i`, or zeros if it is not set.
template <class Elements>
AnyTensor list_element(KernelContext& context, const TensorList& list, std::int64_t i, int output,
                       const PartialShape& shape) {
  const DType dtype = context.output_dtype(output);
  if (const AnyTensor* const found = list.find(i)) {
    require_element(context, i, *found, dtype, shape);
    return *found;
  }
  if (!shape.is_fully_defined()) {
    context.fail(str_cat("element ", i, " of the list is not set, and its shape is not known: ", shape.to_string()));
  }
  return Elements::zeros(context, output, shape.to_shape());
}

inline void require_in_list(const KernelContext& context, const TensorList& list, std::int64_t i) {
  if (i < 0 || i >= list.size()) context.fail(str_cat("element ", i, " of a list of ", list.size()));
}

inline Shape rows_shape(std::int64_t rows, const Shape& element) {
  std::vector<std::int64_t> dims{rows};
  dims.insert(dims.end(), element.dims().begin(), element.dims().end());
  return Shape(std::span<const std::int64_t>(dims));
}

/// The shape without its leading dimension.
inline Shape row_shape(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

/// The shape of all those elements. If the input does not give it, the first set element does. `number(row)`: the
/// number of the row's element.
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

/// The elements become the rows of output 0, [rows, ...]; an element that is not set becomes zeros. `number(row)`:
/// the number of the row's element.
template <class Elements, class Number>
void put_list_rows(KernelContext& context, const TensorList& list, std::int64_t rows, const Shape& element,
                   Number number) {
  if (rows == 0 || element.num_elements() == 0) return;
  Elements::put_rows(context, rows, element.num_elements(), [&](std::int64_t row) {
    const AnyTensor* const found = list.find(number(row));
    if (found != nullptr) {
      require_element(context, number(row), *found, context.output_dtype(0), PartialShape(element));
    }
    return found;
  });
}

template <class Elements>
void stack_list(KernelContext& context, std::int64_t num_elements) {
  const TensorList& list = list_of(context.input(0));
  if (num_elements >= 0 && list.size() != num_elements) {
    context.fail(str_cat("the list has ", list.size(), " elements, not ", num_elements));
  }
  const auto same = [](std::int64_t row) { return row; };
  const Shape element = common_element_shape(context, list, shape_input(context, 1), list.size(), same);
  context.allocate_output(0, rows_shape(list.size(), element));
  put_list_rows<Elements>(context, list, list.size(), element, same);
}

template <class Elements>
void gather_list(KernelContext& context) {
  const TensorList& list = list_of(context.input(0));
  const Tensor<std::int32_t>& numbers = context.input<std::int32_t>(1);
  if (numbers.rank() != 1) context.fail("the elements' numbers are no vector");
  for (const std::int32_t i : numbers.span()) require_in_list(context, list, i);
  const auto number = [&](std::int64_t row) { return std::int64_t{numbers.data()[row]}; };
  const std::int64_t rows = numbers.num_elements();
  const Shape element = common_element_shape(context, list, shape_input(context, 2), rows, number);
  context.allocate_output(0, rows_shape(rows, element));
  for (std::int64_t row = 0; row < rows && element.num_elements() == 0; ++row) {
    const AnyTensor* const found = list.find(number(row));
    if (found != nullptr) {
      require_element(context, number(row), *found, context.output_dtype(0), PartialShape(element));
    }
  }
  put_list_rows<Elements>(context, list, rows, element, number);
}

/// Rows of a result whose shape is on input `shape_of`; `number(row)` is the number of the row's element.
template <class Elements, class Number>
void dense_rows(KernelContext& context, int shape_input_number, Number number) {
  const TensorList& list = list_of(context.input(0));
  const Shape shape = known_shape_input(context, shape_input_number);
  if (shape.rank() == 0) context.fail("the result has a leading dimension");
  const Shape element = row_shape(shape);
  context.allocate_output(0, shape);
  put_list_rows<Elements>(context, list, shape.dim(0), element, number);
}

template <class Elements>
void gather_rows_of_list(KernelContext& context) {
  const Tensor<std::int32_t>& numbers = context.input<std::int32_t>(1);
  const Shape shape = known_shape_input(context, 2);
  if (numbers.rank() != 1 || shape.rank() == 0 || numbers.dim(0) != shape.dim(0)) {
    context.fail("there is not one number for each row of the result");
  }
  dense_rows<Elements>(context, 2, [&](std::int64_t row) { return std::int64_t{numbers.data()[row]}; });
}

/// Rows of x, each an element that shares its memory.
inline AnyTensor row_of(const AnyTensor& x, std::int64_t row, const Shape& element) {
  return x.slice(row, row + 1).reshaped(element);
}

inline void unstack_tensor(KernelContext& context) {
  const AnyTensor& x = context.input(0);
  constexpr std::int64_t max_rows = std::int64_t{1} << 24;
  if (x.rank() == 0) context.fail("a scalar has no rows");
  if (x.dim(0) > max_rows)
    throw_error(Status::resource_exhausted(str_cat("a list of the ", x.dim(0), " rows of a tensor")));
  const Shape element = row_shape(x.shape());
  std::vector<AnyTensor> rows;
  rows.reserve(static_cast<std::size_t>(x.dim(0)));
  for (std::int64_t row = 0; row < x.dim(0); ++row) rows.push_back(row_of(x, row, element));
  context.set_output(0, make_list(TensorList(std::move(rows))));
}

template <class Elements>
void scatter_tensor(KernelContext& context) {
  const AnyTensor& x = context.input(0);
  const Tensor<std::int32_t>& numbers = context.input<std::int32_t>(1);
  const std::int64_t size = context.scalar_input<std::int32_t>(2);
  if (x.rank() == 0 || numbers.rank() != 1 || numbers.dim(0) != x.dim(0)) {
    context.fail("there is not one number for each row");
  }
  const Shape element = row_shape(x.shape());
  TensorList list;
  if (size >= 0) list.resize(size);
  std::map<std::int64_t, std::vector<AnyTensor>> repeated;  // the rows of an element that has more than one
  for (std::int64_t row = 0; row < x.dim(0); ++row) {
    const std::int64_t i = numbers.data()[row];
    if (i < 0 || (size >= 0 && i >= size)) context.fail(str_cat("element ", i, " of a list of ", size));
    const AnyTensor* const first = list.find(i);
    if (first == nullptr) {
      list.set(i, row_of(x, row, element));
    } else {
      std::vector<AnyTensor>& rows = repeated[i];
      if (rows.empty()) rows.push_back(*first);
      rows.push_back(row_of(x, row, element));
    }
  }
  for (const auto& [i, rows] : repeated) list.set(i, Elements::sum(context, rows));
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

template <class Elements>
void pop_list_item(KernelContext& context) {
  const std::int64_t i = list_of(context.input(0)).size() - 1;
  if (i < 0) context.fail("the list is empty");
  context.set_output(1, list_element<Elements>(context, list_of(context.input(0)), i, 1, shape_input(context, 1)));
  forward_or_copy_list(context, 0, 0).resize(i);
  context.set_output(2, Tensor<std::int64_t>(i));
}

template <class Elements>
void sum_lists(KernelContext& context) {
  // Adds into the longest list that nobody else has.
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
    if (i == own) continue;
    sum.add(list_of(context.input(i)), [&](AnyTensor& to, const AnyTensor& more) { Elements::add(context, to, more); });
  }
}

/// A list with one element.
inline void one_in_list(KernelContext& context, int number, int element) {
  TensorList list;
  list.set(element_number(context, number), context.input(element));
  context.set_output(0, make_list(std::move(list)));
}

/// Bounds the memory that is kept for each element.
inline std::int64_t require_few_elements(std::int64_t count) {
  constexpr std::int64_t max_elements = std::int64_t{1} << 24;
  if (count <= max_elements) return count;
  throw_error(Status::resource_exhausted(str_cat("a list of ", count, " elements as rows of a tensor")));
}

/// The elements of a list as the rows of a tensor.
template <class Elements>
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
    Elements::put_parts(context_, size, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      return ListPart{list_.find(i), begins[at] * width, counts.data()[i] * width};
    });
  }

 private:
  /// Merges the shapes of the set elements.
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

  KernelContext& context_;
  const TensorList& list_;
  PartialShape asked_;                  ///< the known part of every element's shape
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

/// The element of a list for the iteration that the second input gives. Errors: InvalidArgument if it has none.
inline const AnyTensor& kept_element(KernelContext& context) {
  const TensorList& list = list_of(context.input(0));
  const auto i = context.scalar_input<std::int64_t>(1);
  const AnyTensor* const element = list.find(i);
  if (element == nullptr) context.fail(str_cat("iteration ", i, " of ", list.size()));
  return *element;
}

}  // namespace dflow::detail
