#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/kept_memory.hpp>

#include <span>
#include <utility>

namespace dflow {

KeptTensor::KeptTensor(std::shared_ptr<KeptMemory> memory, const AnyTensor& tensor)
    : dtype_(tensor.dtype()), shape_(tensor.shape()), memory_(std::move(memory)), tensor_(tensor) {}

KeptTensor::KeptTensor(std::shared_ptr<const KeptTensor> viewed, const Shape& shape)
    : dtype_(viewed->dtype_), shape_(shape), viewed_(std::move(viewed)) {}

KeptTensor::~KeptTensor() {
  if (memory_ != nullptr) memory_->forget(*this);
}

std::string KeptTensor::debug_string() const {
  return str_cat("KeptTensor(", dtype_name(dtype_), shape_.to_string(), ")");
}

AnyTensor KeptTensor::value(Allocator& allocator) const {
  if (viewed_ != nullptr) return viewed_->value(allocator).reshaped(shape_);
  if (const std::lock_guard lock(memory_->mutex_); tensor_.is_initialized()) return tensor_;
  AnyTensor copy(dtype_, shape_, allocator);
  memory_->file_->read_exactly_at(offset_, {static_cast<std::byte*>(copy.raw_data()), copy.bytes()});
  return copy;
}

KeptMemory::KeptMemory(std::size_t max_bytes, std::shared_ptr<FileSystem> files, std::string directory)
    : max_bytes_(max_bytes), files_(std::move(files)), directory_(std::move(directory)) {}

std::shared_ptr<KeptTensor> KeptMemory::keep(const AnyTensor& tensor) {
  const bool is_small_part = tensor.buffer() && tensor.buffer()->capacity_bytes() / 2 > tensor.bytes();
  if (!is_plain(tensor.dtype()) || tensor.bytes() < min_bytes || tensor.is_borrowed() || is_small_part) return nullptr;
  // Let go of without the lock, which their destructors take.
  std::shared_ptr<KeptTensor> kept(new KeptTensor(shared_from_this(), tensor));
  std::shared_ptr<KeptTensor> there;
  std::vector<AnyTensor> freed;
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = by_data_.try_emplace(tensor.raw_data(), kept.get());
  if (!is_new) {
    there = found->second->weak_from_this().lock();
    const bool is_same =
        there != nullptr && there->dtype_ == tensor.dtype() && there->tensor_.bytes() == tensor.bytes();
    if (is_same && there->shape_ == tensor.shape()) return there;
    if (is_same) return std::shared_ptr<KeptTensor>(new KeptTensor(there, tensor.shape()));
    found->second = kept.get();
  }
  try {
    kept->position_ = in_memory_.insert(in_memory_.end(), kept.get());
  } catch (...) {
    by_data_.erase(found);
    throw;
  }
  kept->is_counted_ = true;
  bytes_ += tensor.bytes();
  make_room(freed);
  return kept;
}

void KeptMemory::make_room(std::vector<AnyTensor>& freed) {
  int num_held = 0;
  constexpr int max_held = 16;  // others are looked at in later calls
  while (bytes_ > max_bytes_ && num_held < max_held && !in_memory_.empty()) {
    KeptTensor& oldest = *in_memory_.front();
    if (oldest.tensor_.buffer().use_count() > 1) {
      in_memory_.splice(in_memory_.end(), in_memory_, in_memory_.begin());
      ++num_held;
      continue;
    }
    if (file_ == nullptr) file_ = std::make_unique<ScratchFile>(*files_, directory_);
    freed.reserve(freed.size() + 1);
    const void* const data = oldest.tensor_.raw_data();
    oldest.offset_ = file_->append({static_cast<const std::byte*>(data), oldest.tensor_.bytes()});
    if (const auto found = by_data_.find(data); found != by_data_.end() && found->second == &oldest) {
      by_data_.erase(found);
    }
    bytes_ -= oldest.tensor_.bytes();
    freed.push_back(std::move(oldest.tensor_));
    oldest.is_counted_ = false;
    in_memory_.pop_front();
  }
}

void KeptMemory::forget(KeptTensor& kept) noexcept {
  const std::lock_guard lock(mutex_);
  if (!kept.is_counted_) return;
  if (const auto found = by_data_.find(kept.tensor_.raw_data()); found != by_data_.end() && found->second == &kept) {
    by_data_.erase(found);
  }
  bytes_ -= kept.tensor_.bytes();
  in_memory_.erase(kept.position_);
}

std::size_t KeptMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::uint64_t KeptMemory::bytes_in_file() const {
  const std::lock_guard lock(mutex_);
  return file_ == nullptr ? 0 : file_->size();
}

}  // namespace dflow
