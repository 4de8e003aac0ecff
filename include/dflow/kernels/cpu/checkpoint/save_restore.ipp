#pragma once

#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/kernels/cpu/checkpoint/save_restore.hpp>
#include <dflow/kernels/state/device_files.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// The arguments of SaveV2 and RestoreV2 that describe their tensors.
struct CheckpointNames {
  std::string prefix;
  std::span<const std::string> names, slices;
};

CheckpointNames checkpoint_names(const KernelContext& context, std::size_t num_tensors) {
  CheckpointNames told{context.input<std::string>(0).scalar(), context.input<std::string>(1).span(),
                       context.input<std::string>(2).span()};
  if (told.names.size() != num_tensors || told.slices.size() != num_tensors) {
    context.fail(
        str_cat(told.names.size(), " names and ", told.slices.size(), " slices for ", num_tensors, " tensors"));
  }
  return told;
}

/// Called between two tensors: a cancelled step reads and writes no further.
void require_going_on(const KernelContext& context) {
  if (context.step().cancellation.is_cancelled()) throw_error(Status::cancelled("the step was cancelled"));
}

void save_shard(KernelContext& context) {
  const SaveV2::Attrs& attrs = context.node().attrs_as<SaveV2>();
  const CheckpointNames told = checkpoint_names(context, attrs.dtypes.size());
  const std::shared_ptr<FileSystem> files = device_files(context.device());
  CheckpointShardWriter writer(*files, told.prefix, static_cast<std::uint32_t>(attrs.shard),
                               static_cast<std::uint32_t>(attrs.num_shards));
  for (std::size_t i = 0; i < told.names.size(); ++i) {
    require_going_on(context);
    const AnyTensor& tensor = context.input(static_cast<int>(i) + 3);
    if (told.slices[i].empty()) {
      writer.add(told.names[i], tensor);
      continue;
    }
    const CheckpointSlice slice = CheckpointSlice::parse(told.slices[i]);
    if (tensor.shape() != slice.extent) {
      context.fail(str_cat("tensor '", told.names[i], "' of shape ", tensor.shape().to_string(), " is no slice '",
                           told.slices[i], "'"));
    }
    writer.add_slice(told.names[i], tensor, slice.whole, slice.begin);
  }
  require_going_on(context);
  writer.finish();
}

/// Fails before any part of the tensor is read.
void require_wanted(const KernelContext& context, const SavedTensors& saved, const std::string& name, DType dtype,
                    const PartialShape& shape, const std::string& prefix) {
  const std::optional<SavedTensors::Description> found = saved.find(name);
  if (!found || found->dtype == DType::invalid) return;  // reading it says so
  const bool is_type = found->dtype == dtype;
  if (is_type && shape.is_compatible_with(found->shape)) return;
  context.fail(str_cat("tensor '", name, "' is ", dtype_name(found->dtype), found->shape.to_string(),
                       " in checkpoint '", prefix, "', wanted ", dtype_name(dtype), shape.to_string(),
                       is_type ? ": the shapes differ" : ": the element types differ"));
}

/// The wanted slices of one tensor, and the outputs they go to.
struct WantedSlices {
  std::vector<CheckpointSlice> slices;
  std::vector<std::size_t> outputs;
};

void restore_tensors(KernelContext& context) {
  const RestoreV2::Attrs& attrs = context.node().attrs_as<RestoreV2>();
  const CheckpointNames told = checkpoint_names(context, attrs.dtypes.size());
  const std::shared_ptr<FileSystem> files = device_files(context.device());
  const std::unique_ptr<SavedTensors> saved = open_saved_tensors(*files, told.prefix);
  const auto wanted_shape = [&](std::size_t i) {
    return attrs.shapes.empty() ? PartialShape::unknown() : attrs.shapes[i];
  };
  std::map<std::string_view, WantedSlices> slices_of;  // each tensor is read once for all its slices
  for (std::size_t i = 0; i < told.names.size(); ++i) {
    const bool is_slice = !told.slices[i].empty();
    if (is_slice) {
      WantedSlices& wanted = slices_of[told.names[i]];
      wanted.slices.push_back(CheckpointSlice::parse(told.slices[i]));
      wanted.outputs.push_back(i);
      if (!wanted_shape(i).is_compatible_with(wanted.slices.back().extent)) {
        context.fail(str_cat("slice '", told.slices[i], "' of tensor '", told.names[i], "' is not of shape ",
                             wanted_shape(i).to_string()));
      }
    }
    require_wanted(context, *saved, told.names[i], attrs.dtypes[i],
                   is_slice ? PartialShape(slices_of[told.names[i]].slices.back().whole) : wanted_shape(i),
                   told.prefix);
  }
  for (std::size_t i = 0; i < told.names.size(); ++i) {
    if (!told.slices[i].empty()) {
      const WantedSlices& wanted = slices_of[told.names[i]];
      if (wanted.outputs.front() != i) continue;
      require_going_on(context);
      std::vector<AnyTensor> parts = saved->read_slices(told.names[i], wanted.slices);
      for (std::size_t k = 0; k < parts.size(); ++k) {
        context.set_output(static_cast<int>(wanted.outputs[k]), std::move(parts[k]));
      }
      continue;
    }
    require_going_on(context);
    AnyTensor tensor = saved->read(told.names[i]);
    if (!wanted_shape(i).is_compatible_with(tensor.shape())) {
      context.fail(str_cat("tensor '", told.names[i], "' is not of shape ", wanted_shape(i).to_string()));
    }
    context.set_output(static_cast<int>(i), std::move(tensor));
  }
}

void merge_shards(KernelContext& context) {
  const std::span<const std::string> prefixes = context.input<std::string>(0).span();
  merge_checkpoint(*device_files(context.device()), prefixes, context.input<std::string>(1).scalar(),
                   {.replace = context.node().attrs_as<MergeV2Checkpoints>().replace});
}

}  // namespace detail

}  // namespace dflow
