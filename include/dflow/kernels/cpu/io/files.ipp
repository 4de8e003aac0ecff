#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/files/matching_files.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cpu/io/files.hpp>
#include <dflow/kernels/state/device_files.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

void detail::read_whole_file(KernelContext& context) {
  const std::string path = context.scalar_input<std::string>(0);
  std::string content = read_regular_file(*device_files(context.device()), path);  // no step waits for a pipe
  *context.allocate_output<std::string>(0, {}).data() = std::move(content);
}

void detail::write_whole_file(KernelContext& context) {
  const std::string path = context.scalar_input<std::string>(0);
  const std::string content = context.scalar_input<std::string>(1);
  const std::shared_ptr<FileSystem> files = device_files(context.device());
  files->create_directories(parent_directory(path));
  files->write_file_atomically(path, content);
}

void detail::find_matching_files(KernelContext& context) {
  const Tensor<std::string>& patterns = context.input<std::string>(0);
  if (patterns.rank() > 1) context.fail("patterns are a scalar or a vector");
  const std::shared_ptr<FileSystem> files = device_files(context.device());
  std::vector<std::string> found;
  for (const std::string& pattern : patterns.span()) {
    std::vector<std::string> more = matching_files(*files, pattern);
    std::move(more.begin(), more.end(), std::back_inserter(found));
  }
  std::sort(found.begin(), found.end());
  Tensor<std::string>& names = context.allocate_output<std::string>(0, {static_cast<std::int64_t>(found.size())});
  std::move(found.begin(), found.end(), names.data());
}

namespace detail {

void read_constant(KernelContext& context) {
  const auto& attrs = context.node().attrs_as<ImmutableConst>();
  const std::string& path = attrs.memory_region_name;
  const std::shared_ptr<FileSystem> files = device_files(context.device());
  const std::unique_ptr<RandomAccessFile> file = files->open_for_reading(path);
  const Shape shape = attrs.shape.to_shape();
  const std::optional<std::size_t> bytes = num_bytes(context.output_dtype(0), shape);
  if (!bytes || *bytes > file->size()) {
    throw_error(Status::data_loss(str_cat("'", path, "' has ", file->size(), " bytes, too few for ",
                                          dtype_name(context.output_dtype(0)), shape.to_string())));
  }
  AnyTensor& tensor = context.allocate_output(0, shape);
  const std::span<std::byte> elements(static_cast<std::byte*>(tensor.raw_data()), *bytes);
  if (!elements.empty()) file->read_exactly_at(0, elements);
  if (tensor.dtype() != DType::boolean) return;
  if (const std::size_t at = first_no_truth_value(elements); at < elements.size()) {
    throw_error(Status::data_loss(
        str_cat("'", path, "' has ", static_cast<int>(elements[at]), " at byte ", at, ", which is no truth value")));
  }
}

ImmutableConstKernel::ImmutableConstKernel(const KernelInit& init) : FileKernel(init, &read_constant) {}

void ImmutableConstKernel::run_async(KernelContext& context, AsyncKernel::Done done) const {
  AnyTensor kept;
  {
    const std::lock_guard lock(mutex_);
    kept = kept_;
  }
  if (kept.is_initialized()) {
    context.set_output(0, std::move(kept));
    return done(Status());
  }
  FileKernel::run_async(context, [this, &context, done = std::move(done)](Status status) mutable {
    if (status.ok()) {
      const std::lock_guard lock(mutex_);
      if (!kept_.is_initialized()) kept_ = context.output(0);
      context.set_output(0, kept_);
    }
    done(std::move(status));
  });
}

}  // namespace detail

}  // namespace dflow
