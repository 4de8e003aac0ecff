#pragma once

#include <dflow/core/kept_memory.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/shared/list_elements.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/ops/control/tensor_list.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// The kernels of lists; a device derives its own kernels from them. `Elements`: of
/// <dflow/kernels/shared/list_elements.hpp>.
namespace dflow::detail {

/// The traits of all of them: cheap, and not divided among threads.
struct ListKernel {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit&) const { return 80; }
};

struct EmptyListKernel : ListKernel {
  void operator()(KernelContext& context) const { context.set_output(0, make_list({})); }
};
struct ReserveListKernel : ListKernel {
  void operator()(KernelContext& context) const {
    TensorList list;
    list.resize(context.scalar_input<std::int32_t>(0));
    context.set_output(0, make_list(std::move(list)));
  }
};
struct ListLengthKernel : ListKernel {
  void operator()(KernelContext& context) const {
    context.set_output(0, Tensor<std::int32_t>(static_cast<std::int32_t>(list_of(context.input(0)).size())));
  }
};
struct ResizeListKernel : ListKernel {
  void operator()(KernelContext& context) const {
    forward_or_copy_list(context, 0, 0).resize(context.scalar_input<std::int32_t>(1));
  }
};
struct UnstackListKernel : ListKernel {
  void operator()(KernelContext& context) const { unstack_tensor(context); }
};
struct SplitListKernel : ListKernel {
  void operator()(KernelContext& context) const { split_into_list(context); }
};
struct SetListItemKernel : ListKernel {
  TensorListSetItem::Attrs attrs;
  void operator()(KernelContext& context) const { set_list_item(context, attrs.resize_if_index_out_of_bounds); }
};
struct PushListItemKernel : ListKernel {
  void operator()(KernelContext& context) const { push_list_item(context); }
};
struct OneInListKernel : ListKernel {
  void operator()(KernelContext& context) const { one_in_list(context, 0, 1); }
};
struct OneListInListKernel : ListKernel {
  void operator()(KernelContext& context) const {
    static_cast<void>(list_of(context.input(1)));
    one_in_list(context, 0, 1);
  }
};
struct UnsetListItemKernel : ListKernel {
  void operator()(KernelContext& context) const {
    const std::int64_t i = element_number(context, 1);
    forward_or_copy_list(context, 0, 0).unset(i);
  }
};
template <class Elements>
struct GetListItemKernel : ListKernel {
  TensorListGetItem::Attrs attrs;
  void operator()(KernelContext& context) const {
    const TensorList& list = list_of(context.input(0));
    const std::int64_t i = element_number(context, 1);
    if (!attrs.zero_if_missing) require_in_list(context, list, i);
    context.set_output(0, list_element<Elements>(context, list, i, 0, shape_input(context, 2)));
  }
};
template <class Elements>
struct PopListItemKernel : ListKernel {
  void operator()(KernelContext& context) const { pop_list_item<Elements>(context); }
};
template <class Elements>
struct ScatterListKernel : ListKernel {
  void operator()(KernelContext& context) const { scatter_tensor<Elements>(context); }
};
template <class Elements>
struct SumListsKernel : ListKernel {
  void operator()(KernelContext& context) const { sum_lists<Elements>(context); }
};

// The kernels that move all elements.

template <class Elements>
struct StackListKernel {
  TensorListStack::Attrs attrs;
  void operator()(KernelContext& context) const { stack_list<Elements>(context, attrs.num_elements); }
};
template <class Elements>
struct ListToTensorKernel {
  void operator()(KernelContext& context) const {
    dense_rows<Elements>(context, 1, [](std::int64_t row) { return row; });
  }
};
template <class Elements>
struct GatherListKernel {
  void operator()(KernelContext& context) const { gather_list<Elements>(context); }
};
template <class Elements>
struct GatherListRowsKernel {
  void operator()(KernelContext& context) const { gather_rows_of_list<Elements>(context); }
};
template <class Elements>
struct ConcatListKernel {
  void operator()(KernelContext& context) const { ListConcat<Elements>(context).run(); }
};

// The kernels for gradients of loops, and of functions that call themselves.

struct KeptListKernel {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit&) const { return 40; }
};

struct PushKeptKernel : KeptListKernel {
  void operator()(KernelContext& context) const {
    TensorList& list = forward_or_copy_list(context, 0, 0);
    list.set(list.size(), context.input(1));
  }
};
struct CallTapeKernel : KeptListKernel {
  void operator()(KernelContext& context) const {
    std::vector<AnyTensor> values;
    values.reserve(static_cast<std::size_t>(context.num_inputs()));
    for (int i = 0; i < context.num_inputs(); ++i) values.push_back(context.input(i));
    context.set_output(0, make_list(TensorList(std::move(values))));
  }
};
struct KeptElementKernel : KeptListKernel {
  KeptElement::Attrs attrs;

  void operator()(KernelContext& context) const {
    const AnyTensor& element = kept_element(context);
    const auto* const kept = dynamic_cast<const KeptTensor*>(resource_of(element));
    const DType dtype = kept == nullptr ? element.dtype() : kept->dtype();
    const Shape& shape = kept == nullptr ? element.shape() : kept->shape();
    const DType wanted = context.output_dtype(0);
    if (dtype != wanted || !attrs.shape.is_compatible_with(shape)) {
      context.fail(str_cat("the list has ", dtype_name(dtype), shape.to_string(), ", not ", dtype_name(wanted),
                           attrs.shape.to_string()));
    }
    context.set_output(0, kept == nullptr ? element : kept->value(context.output_allocator(0)));
  }
};
struct KeptHandleElementKernel : KeptListKernel {
  void operator()(KernelContext& context) const {
    const AnyTensor& element = kept_element(context);
    if (element.dtype() != DType::resource) context.fail("the list has no handles");
    context.set_output(0, element);
  }
};
struct KeptListElementKernel : KeptListKernel {
  void operator()(KernelContext& context) const {
    const AnyTensor* const element = list_of(context.input(0)).find(context.scalar_input<std::int64_t>(1));
    if (element == nullptr) return context.set_output(0, make_list({}));
    static_cast<void>(list_of(*element));
    context.set_output(0, *element);
  }
};

}  // namespace dflow::detail
