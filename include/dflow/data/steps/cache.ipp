#pragma once

#include <dflow/data/steps/cache.hpp>

#include <mutex>
#include <utility>
#include <vector>

namespace dflow::data {

namespace detail {

class Cache final : public Recipe {
 public:
  explicit Cache(SharedRecipe input) : input_(std::move(input)) {}

  std::unique_ptr<Stream> open(std::uint64_t) const override { return std::make_unique<Pass>(*this); }
  std::optional<std::uint64_t> size() const override { return input_->size(); }
  std::string describe() const override { return input_->describe() + " | cache"; }

 private:
  class Pass final : public Stream {
   public:
    explicit Pass(const Cache& cache) : cache_(cache) {}

    bool next(Item& item) override {
      const std::lock_guard lock(cache_.mutex_);
      if (!cache_.read_to(position_ + 1)) return false;
      item = cache_.items_[position_++].copy();
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      const std::lock_guard lock(cache_.mutex_);
      std::uint64_t passed = 0;
      while (passed < n && cache_.read_to(position_ + 1)) ++passed, ++position_;
      return passed;
    }
    void save(ByteWriter& out) const override { out.varint(position_); }
    void restore(ByteReader& in) override { replay(*this, in.varint()); }

   private:
    const Cache& cache_;
    std::uint64_t position_ = 0;
  };

  /// Whether there are n elements. After an error the next one who asks tries again.
  bool read_to(std::uint64_t n) const {
    while (items_.size() < n && !is_whole_) {
      Item item;
      try {
        if (!stream_) {
          stream_ = input_->open(0);
          replay(*stream_, items_.size());
        }
        is_whole_ = !stream_->next(item);
      } catch (...) {
        stream_.reset();
        throw;
      }
      if (is_whole_) {
        stream_.reset();
      } else {
        items_.push_back(std::move(item));
      }
    }
    return items_.size() >= n;
  }

  SharedRecipe input_;
  mutable std::mutex mutex_;  ///< of what follows
  mutable std::vector<Item> items_;
  mutable bool is_whole_ = false;
  mutable std::unique_ptr<Stream> stream_;
};

}  // namespace detail

DFLOW_INLINE SharedRecipe cache_recipe(SharedRecipe input) { return std::make_shared<detail::Cache>(std::move(input)); }

}  // namespace dflow::data
