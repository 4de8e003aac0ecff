#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/data_flow/partition.hpp>
#include <dflow/kernels/cuda/routines/moved_rows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace dflow::cuda {

void partition_rows(KernelContext& context) {
  dflow::detail::with_inferred_shapes(context, [&](std::span<const PartialShape> shapes) {
    for (int i = 0; i < context.num_outputs(); ++i) {
      context.allocate_output(i, shapes[static_cast<std::size_t>(i)].to_shape());
    }
  });
  const AnyTensor& data = context.input(0);
  const auto partitions = context.input<std::int32_t>(1).span();
  if (data.num_elements() == 0) return;
  const auto rows = static_cast<std::int64_t>(partitions.size());
  const std::int64_t width = data.num_elements() / rows;
  // The rows of partition 0, then the rows of 1, ...
  detail::UploadedNumbers order(context, rows);
  std::vector<std::int64_t> next(static_cast<std::size_t>(context.num_outputs()) + 1);
  for (const std::int32_t partition : partitions) ++next[static_cast<std::size_t>(partition) + 1];
  for (std::size_t p = 1; p < next.size(); ++p) next[p] += next[p - 1];
  const std::vector<std::int64_t> begins = next;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t& at = next[static_cast<std::size_t>(partitions[static_cast<std::size_t>(i)])];
    order.on_host()[static_cast<std::size_t>(at++)] = i;
  }
  order.upload();
  for (int p = 0; p < context.num_outputs(); ++p) {
    const std::int64_t begin = begins[static_cast<std::size_t>(p)];
    const std::int64_t count = begins[static_cast<std::size_t>(p) + 1] - begin;
    if (count == 0) continue;
    detail::move_rows(context, data, context.output(p), {.count = count, .row = width, .from = order.from(begin)},
                      order);
  }
}

void stitch_rows(KernelContext& context) {
  const Shape shape = dflow::detail::inferred_shape(context);
  AnyTensor& y = context.allocate_output(0, shape);
  if (y.num_elements() == 0) return;
  const std::int64_t rows = shape[0], width = y.num_elements() / rows;
  const int count = context.num_inputs() / 2;
  // The last source of each row, counted through all lists.
  std::vector<std::int64_t> last(static_cast<std::size_t>(rows), -1);
  std::int64_t number = 0;
  for (int part = 0; part < count; ++part) {
    for (const std::int32_t index : context.input<std::int32_t>(part).span()) {
      last[static_cast<std::size_t>(index)] = number++;
    }
  }
  const std::int64_t named = rows - std::count(last.begin(), last.end(), -1);
  if (named < rows) clear_output(context, y);
  if (named == 0) return;
  detail::UploadedNumbers moves(context, 2 * named);  // from where each row comes, then where it goes
  std::vector<std::int64_t> ends;                     // of the moves of each list
  const std::span<std::int64_t> from = moves.on_host().first(static_cast<std::size_t>(named));
  const std::span<std::int64_t> to = moves.on_host().subspan(static_cast<std::size_t>(named));
  std::size_t next = 0;
  number = 0;
  for (int part = 0; part < count; ++part) {
    std::int64_t i = 0;
    for (const std::int32_t index : context.input<std::int32_t>(part).span()) {
      if (last[static_cast<std::size_t>(index)] == number++) {
        from[next] = i;
        to[next++] = index;
      }
      ++i;
    }
    ends.push_back(static_cast<std::int64_t>(next));
  }
  moves.upload();
  std::int64_t begin = 0;
  for (int part = 0; part < count; ++part) {
    const std::int64_t end = ends[static_cast<std::size_t>(part)];
    if (end != begin) {
      detail::move_rows(
          context, context.input(count + part), y,
          {.count = end - begin, .row = width, .from = moves.from(begin), .to = moves.from(named + begin)}, moves);
    }
    begin = end;
  }
}

void find_rows_in_shards(KernelContext& context, const ShardOfRow::Attrs& attrs, const KernelFunction& function) {
  const AnyTensor& ids = context.input(0);
  AnyTensor& shards = context.allocate_output(0, ids.shape());
  AnyTensor& rows = context.allocate_output(1, ids.shape());
  ShardArgs args;
  args.count = ids.num_elements();
  if (args.count == 0) return;
  args.num_rows = attrs.num_rows;
  args.num_shards = attrs.num_shards;
  args.strategy = attrs.strategy;
  args.ids = ids.raw_data();
  args.shards = static_cast<std::int32_t*>(shards.raw_data());
  args.rows = rows.raw_data();
  const CudaStep::Note note = step_of(context).note(context, [attrs, shape = ids.shape()](const ErrorSlot& slot) {
    std::int64_t id = 0;
    std::memcpy(&id, slot.values[0], sizeof(id));
    return Status::invalid_argument(dflow::detail::bad_shard_id(attrs, slot.position, shape, id));
  });
  args.errors = note.slot;
  args.kernel = note.kernel;
  launch(context, function, grid_for(args.count), &args, note.slot);
}

}  // namespace dflow::cuda
