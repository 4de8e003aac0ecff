#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/ops/data_flow/partition.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace dflow {

namespace detail {

/// The op's shape function looks at the partitions, says how many rows each gets, and refuses bad ones.
struct DynamicPartitionKernel {
  double cost_ns(const KernelInit& init) const {
    return 300 + estimated_elements(init.inputs[0]) * copy_cost_ns(init.node.outputs[0].dtype);
  }

  void operator()(KernelContext& context) const {
    with_inferred_shapes(context, [&](std::span<const PartialShape> shapes) {
      for (int i = 0; i < context.num_outputs(); ++i) {
        context.allocate_output(i, shapes[static_cast<std::size_t>(i)].to_shape());
      }
    });
    const AnyTensor& data = context.input(0);
    const auto partitions = context.input<std::int32_t>(1).span();
    if (data.num_elements() == 0) return;
    const auto rows = static_cast<std::int64_t>(partitions.size());
    const std::int64_t width = data.num_elements() / rows;
    std::vector<std::int64_t> filled(static_cast<std::size_t>(context.num_outputs()));
    std::vector<void*> targets(partitions.size());
    for (std::size_t i = 0; i < partitions.size(); ++i) {
      std::int64_t& row = filled[static_cast<std::size_t>(partitions[i])];
      targets[i] = element(context.output(partitions[i]), row * width);
      ++row;
    }
    const DType dtype = data.dtype();
    context.pool().parallel_for(
        rows, static_cast<double>(width) * copy_cost_ns(dtype) + 5, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            copy_elements(dtype, width, element(data, i * width), targets[static_cast<std::size_t>(i)]);
          }
        });
  }
};

/// Finds the last source row for each row of the output, then copies each row once.
struct DynamicStitchKernel {
  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    AnyTensor& y = context.allocate_output(0, shape);
    if (y.num_elements() == 0) return;
    const std::int64_t rows = shape[0], width = y.num_elements() / rows;
    const int count = context.num_inputs() / 2;
    std::vector<const void*> sources(static_cast<std::size_t>(rows), nullptr);
    for (int part = 0; part < count; ++part) {
      const AnyTensor& data = context.input(count + part);
      std::int64_t i = 0;
      for (const std::int32_t index : context.input<std::int32_t>(part).span()) {
        sources[static_cast<std::size_t>(index)] = element(data, i * width);
        ++i;
      }
    }
    const DType dtype = y.dtype();
    context.pool().parallel_for(rows, static_cast<double>(width) * copy_cost_ns(dtype) + 5,
                                [&](std::int64_t begin, std::int64_t end) {
                                  for (std::int64_t i = begin; i < end; ++i) {
                                    const void* source = sources[static_cast<std::size_t>(i)];
                                    void* target = element(y, i * width);
                                    if (source == nullptr) {
                                      clear_elements(dtype, width, target);
                                    } else {
                                      copy_elements(dtype, width, source, target);
                                    }
                                  }
                                });
  }
};

}  // namespace detail

template <>
struct Kernel<DynamicPartition, Cpu> : detail::DynamicPartitionKernel {};
template <>
struct Kernel<DynamicStitch, Cpu> : detail::DynamicStitchKernel {};

template <class T>
struct Kernel<ShardOfRow, Cpu, T> {
  static constexpr bool splits = false;
  ShardOfRow::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return 200 + estimated_elements(init.inputs[0]) * 8; }

  void operator()(KernelContext& context) const {
    const Tensor<T>& ids = context.input<T>(0);
    const auto shards = context.allocate_output<std::int32_t>(0, ids.shape()).span();
    const auto rows = context.allocate_output<T>(1, ids.shape()).span();
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const std::int64_t id = ids.span()[i];
      if (id < 0 || id >= attrs.num_rows) {
        context.fail(detail::bad_shard_id(attrs, static_cast<std::int64_t>(i), ids.shape(), id));
      }
      const RowInShard at = find_row_in_shard(id, attrs.num_rows, attrs.num_shards, attrs.strategy);
      shards[i] = static_cast<std::int32_t>(at.shard);
      rows[i] = static_cast<T>(at.row);
    }
  }
};

}  // namespace dflow
