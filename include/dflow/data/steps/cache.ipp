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

  std::unique_ptr<Stream> open(std::uint64_t, ReplayLimit& limit) const override {
    return std::make_unique<Pass>(*this, limit);
  }
  std::optional<std::uint64_t> size() const override { return input_->size(); }
  std::string describe() const override { return input_->describe() + " | cache"; }

 private:
  class Pass final : public Stream {
   public:
    Pass(const Cache& cache, ReplayLimit& limit) : cache_(cache), limit_(limit) {}

    bool next(Item& item) override {
      const std::lock_guard lock(cache_.mutex_);
      if (!cache_.read_to(position_ + 1, limit_)) return false;
      item = cache_.items_[position_++].copy();
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      const std::lock_guard lock(cache_.mutex_);
      const std::uint64_t begin = position_, wanted = saturating_add(begin, n);
      position_ = cache_.read_to(wanted, limit_) ? wanted : cache_.items_.size();
      return position_ - begin;
    }
    void save(ByteWriter& out) const override { out.varint(position_); }
    void restore(ByteReader& in) override { replay(*this, in.varint()); }

   private:
    const Cache& cache_;
    ReplayLimit& limit_;
    std::uint64_t position_ = 0;
  };

  /// What stays in memory counts as so many elements.
  static constexpr std::uint64_t weight_of_kept = 64;

  /// Whether there are n elements. After an error the next one who asks tries again.
  bool read_to(std::uint64_t n, ReplayLimit& limit) const {
    limit.count();
    if (items_.size() < n && !is_whole_) {
      const LentReplayLimit lent(limit_, limit);
      read_more(n, limit);
      if (lent.is_exceeded()) stream_.reset();  // another pass gets there
    }
    return items_.size() >= n;
  }
  void read_more(std::uint64_t n, ReplayLimit& limit) const {
    while (items_.size() < n && !is_whole_) {
      Item item;
      try {
        limit.count(weight_of_kept);
        if (!stream_) {
          stream_ = input_->open(0, limit_);
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
  }

  SharedRecipe input_;
  mutable std::mutex mutex_;  ///< of what follows
  mutable std::vector<Item> items_;
  mutable bool is_whole_ = false;
  mutable ReplayLimit limit_;  ///< of `stream_`, which goes through no iterator's hands alone
  mutable std::unique_ptr<Stream> stream_;
};

}  // namespace detail

DFLOW_INLINE SharedRecipe cache_recipe(SharedRecipe input) { return std::make_shared<detail::Cache>(std::move(input)); }

}  // namespace dflow::data
