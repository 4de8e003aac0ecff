#pragma once

#include <dflow/data/steps/cache.hpp>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace dflow::data {

namespace detail {

class Cache final : public Recipe {
 public:
  explicit Cache(SharedRecipe input) : input_(std::move(input)) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::optional<std::uint64_t> size() const override { return input_->size(); }
  std::string describe() const override { return input_->describe() + " | cache"; }

 private:
  class Pass final : public Stream {
   public:
    Pass(const Cache& cache, const PassContext& context) : cache_(cache), context_(context) {}

    bool next(Item& item) override {
      std::unique_lock lock(cache_.mutex_);
      if (reads_alone(position_ + 1)) {
        lock.unlock();
        if (!alone().next(item)) return false;
        ++position_;
        return true;
      }
      if (!cache_.read_to(position_ + 1, context_, lock)) return false;
      item = cache_.items_[position_++].copy();
      if (!context_.gives_failures) item.throw_failure();
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      std::unique_lock lock(cache_.mutex_);
      const std::uint64_t begin = position_, wanted = saturating_add(begin, n);
      if (reads_alone(wanted)) {
        lock.unlock();
        position_ += alone().skip(n);
      } else {
        position_ = cache_.read_to(wanted, context_, lock) ? wanted : cache_.items_.size();
      }
      return position_ - begin;
    }
    void save(ByteWriter& out) const override { out.varint(position_); }
    void restore(ByteReader& in) override { replay(*this, in.varint()); }

   private:
    /// With the lock. A pass that reads waits in a pool for its elements, and its thread may run this pass meanwhile.
    /// If this pass waited, it would wait for ever.
    bool reads_alone(std::uint64_t n) const {
      return alone_ != nullptr || (cache_.lacks(n) && cache_.reader_ == std::this_thread::get_id());
    }
    /// The input, read for this pass alone from `position_` on.
    Stream& alone() {
      if (alone_ == nullptr) {
        std::unique_ptr<Stream> stream = cache_.input_->open({0, context_.limit, context_.gives_failures});
        replay(*stream, position_);
        alone_ = std::move(stream);
      }
      return *alone_;
    }

    const Cache& cache_;
    PassContext context_;
    std::uint64_t position_ = 0;
    std::unique_ptr<Stream> alone_;
  };

  /// An element that stays in memory counts as this many elements.
  static constexpr std::uint64_t weight_of_kept = 64;

  /// With the lock.
  bool lacks(std::uint64_t n) const { return items_.size() < n && !is_whole_; }
  /// Whether there are n elements. One pass at a time reads more, without the lock. After an error the next caller
  /// tries again.
  bool read_to(std::uint64_t n, const PassContext& context, std::unique_lock<std::mutex>& lock) const {
    context.limit.count();
    while (lacks(n)) {
      if (reader_ != std::thread::id()) {
        changed_.wait(lock);
        continue;
      }
      reader_ = std::this_thread::get_id();
      std::exception_ptr failed;
      try {
        const LentReplayLimit lent(limit_, context.limit);
        read_more(n, context, lock);
        if (lent.is_exceeded()) stream_.reset();  // another pass gets there
      } catch (...) {
        failed = std::current_exception();
      }
      reader_ = {};
      changed_.notify_all();
      if (failed != nullptr) std::rethrow_exception(failed);
    }
    return items_.size() >= n;
  }
  /// `limit_` and `stream_` are this pass's meanwhile. Returns, or throws, with the lock.
  void read_more(std::uint64_t n, const PassContext& context, std::unique_lock<std::mutex>& lock) const {
    while (lacks(n)) {
      Item item;
      bool has_item = false;
      const std::uint64_t num_kept = items_.size();
      lock.unlock();
      try {
        context.limit.count(weight_of_kept);
        if (gives_failures_ != context.gives_failures) stream_.reset();
        if (!stream_) {
          gives_failures_ = context.gives_failures;
          stream_ = input_->open({0, limit_, gives_failures_});
          replay(*stream_, num_kept);
        }
        has_item = stream_->next(item);
        if (!has_item) stream_.reset();
      } catch (...) {
        stream_.reset();
        lock.lock();
        throw;
      }
      lock.lock();
      is_whole_ = !has_item;
      if (has_item) items_.push_back(std::move(item));
      changed_.notify_all();
    }
  }

  SharedRecipe input_;
  mutable std::mutex mutex_;  ///< of the members below
  mutable std::vector<Item> items_;
  mutable bool is_whole_ = false;
  mutable std::thread::id reader_;  ///< of the pass that reads; of no thread if none does
  mutable std::condition_variable changed_;
  // For the pass that reads.
  mutable ReplayLimit limit_;  ///< of `stream_`, which goes through no iterator's hands alone
  mutable std::unique_ptr<Stream> stream_;
  mutable bool gives_failures_ = false;  ///< `stream_`
};

}  // namespace detail

SharedRecipe cache_recipe(SharedRecipe input) { return std::make_shared<detail::Cache>(std::move(input)); }

}  // namespace dflow::data
