#pragma once

#include <dflow/base/files/matching_files.hpp>
#include <dflow/kernels/cpu/io/files.hpp>
#include <dflow/kernels/state/device_files.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
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

}  // namespace dflow
