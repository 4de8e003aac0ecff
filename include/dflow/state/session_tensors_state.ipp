#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/state/session_tensors_state.hpp>

#include <mutex>
#include <unordered_map>
#include <utility>

namespace dflow {

struct SessionTensorsState::Kept {
  struct Entry {
    AnyTensor tensor;
    std::int64_t bytes = 0;
  };

  std::mutex mutex;
  std::unordered_map<std::int64_t, Entry> by_number;
  std::int64_t next = 1;
  std::int64_t bytes = 0;
};

namespace detail {

std::int64_t bytes_with_texts(const AnyTensor& tensor) {
  std::size_t bytes = tensor.bytes();
  if (tensor.dtype() == DType::string) {
    for (const std::string& text : tensor.span<std::string>()) bytes += text.size();
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace detail

SessionTensorsState::SessionTensorsState(std::string name, DType dtype, std::int64_t memory_limit)
    : name_(std::move(name)), dtype_(dtype), memory_limit_(memory_limit), kept_(std::make_unique<Kept>()) {}
SessionTensorsState::~SessionTensorsState() = default;

std::string SessionTensorsState::debug_string() const {
  return str_cat("SessionTensors(", dtype_name(dtype_),
                 memory_limit_ == 0 ? "" : str_cat(", at most ", memory_limit_, " bytes"), ")");
}

std::int64_t SessionTensorsState::keep(AnyTensor tensor) {
  if (tensor.dtype() != dtype_) {
    throw_error(Status::invalid_argument(
        str_cat("'", name_, "' keeps tensors of type ", dtype_name(dtype_), ", not ", dtype_name(tensor.dtype()))));
  }
  const std::int64_t bytes = detail::bytes_with_texts(tensor);
  const std::lock_guard lock(kept_->mutex);
  if (memory_limit_ != 0 && bytes > memory_limit_ - kept_->bytes) {
    throw_error(Status::resource_exhausted(str_cat("'", name_, "' holds ", kept_->bytes, " bytes of at most ",
                                                   memory_limit_, ": there is no room for ", bytes, " more")));
  }
  kept_->by_number.emplace(kept_->next, Kept::Entry{std::move(tensor), bytes});
  kept_->bytes += bytes;
  return kept_->next++;
}

AnyTensor SessionTensorsState::get(std::int64_t number) const {
  const std::lock_guard lock(kept_->mutex);
  const auto found = kept_->by_number.find(number);
  if (found != kept_->by_number.end()) return found->second.tensor;
  throw_error(Status::not_found(str_cat("'", name_, "' has no tensor of number ", number)));
}

AnyTensor SessionTensorsState::take(std::int64_t number) {
  const std::lock_guard lock(kept_->mutex);
  const auto found = kept_->by_number.find(number);
  if (found == kept_->by_number.end()) {
    throw_error(Status::not_found(str_cat("'", name_, "' has no tensor of number ", number)));
  }
  AnyTensor taken = std::move(found->second.tensor);
  kept_->bytes -= found->second.bytes;
  kept_->by_number.erase(found);
  return taken;
}

std::int64_t SessionTensorsState::size() const {
  const std::lock_guard lock(kept_->mutex);
  return static_cast<std::int64_t>(kept_->by_number.size());
}

}  // namespace dflow
