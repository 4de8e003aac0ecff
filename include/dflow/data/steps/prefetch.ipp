#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/thread_name.hpp>
#include <dflow/data/steps/prefetch.hpp>
#include <dflow/data/steps/replayed_input.hpp>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace dflow::data {

namespace detail {

class Prefetch final : public Recipe {
 public:
  Prefetch(SharedRecipe input, std::uint64_t n) : input_(std::move(input)), n_(n) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(input_->open(context), n_);
  }
  std::optional<std::uint64_t> size() const override { return input_->size(); }
  std::string describe() const override { return input_->describe() + " | prefetch"; }

 private:
  class Pass final : public Stream {
   public:
    Pass(std::unique_ptr<Stream> input, std::uint64_t n) : input_(std::move(input)), n_(n) {}
    ~Pass() override {
      {
        const std::lock_guard lock(mutex_);
        is_stopped_ = true;
      }
      has_room_.notify_one();
      if (thread_.joinable()) thread_.join();
    }

    bool next(Item& item) override {
      if (!thread_.joinable()) start();
      std::unique_lock lock(mutex_);
      has_news_.wait(lock, [this] { return !ready_.empty() || has_ended_; });
      if (ready_.empty()) {
        if (error_) std::rethrow_exception(error_);
        return false;
      }
      item = std::move(ready_.front());
      ready_.pop_front();
      ++given_;
      lock.unlock();
      has_room_.notify_one();
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override { return thread_.joinable() ? Stream::skip(n) : input_->skip(n); }

    void save(ByteWriter& out) const override {
      const std::lock_guard lock(mutex_);
      if (log_.is_empty()) {  // the thread has not started
        out.varint(0);
        return input_->save(out);
      }
      const SnapshotLog::Snapshot& snapshot = log_.before(given_);
      out.varint(given_ - snapshot.index);
      out.bytes(std::as_bytes(std::span(snapshot.state.data(), snapshot.state.size())));
    }
    void restore(ByteReader& in) override {
      const std::uint64_t ahead = read_replayed(in, max_read_ahead);
      input_->restore(in);
      replay(*input_, ahead);
    }

   private:
    static constexpr std::uint64_t snapshot_every = 32;

    void start() {
      log_.add(0, SnapshotLog::of(*input_, 0).state);
      try {
        thread_ = std::thread([this] { produce(); });
      } catch (const std::system_error& error) {
        throw_error(Status::resource_exhausted(str_cat("data: prefetch cannot start a thread: ", error.what())));
      }
    }

    void produce() noexcept {
      dflow::detail::name_this_thread("dflow-prefetch", 0);
      std::exception_ptr error;
      try {
        Item item;
        for (std::uint64_t made = 1; wait_for_room() && input_->next(item); ++made) {
          SnapshotLog::Snapshot snapshot;
          const bool is_due = made % snapshot_every == 0;
          if (is_due) snapshot = SnapshotLog::of(*input_, made);
          {
            const std::lock_guard lock(mutex_);
            if (is_due) {
              log_.forget_before(given_);
              log_.add(made, std::move(snapshot.state));
            }
            ready_.push_back(std::move(item));
          }
          has_news_.notify_one();
        }
      } catch (...) {
        error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        has_ended_ = true;
        error_ = error;
      }
      has_news_.notify_one();
    }
    bool wait_for_room() {
      std::unique_lock lock(mutex_);
      has_room_.wait(lock, [this] { return is_stopped_ || ready_.size() < n_; });
      return !is_stopped_;
    }

    std::unique_ptr<Stream> input_;  ///< the thread's, once there is one
    const std::uint64_t n_;
    mutable std::mutex mutex_;  ///< of what follows
    std::condition_variable has_news_, has_room_;
    std::deque<Item> ready_;
    SnapshotLog log_;
    std::uint64_t given_ = 0;
    bool has_ended_ = false, is_stopped_ = false;
    std::exception_ptr error_;
    std::thread thread_;
  };

  SharedRecipe input_;
  std::uint64_t n_;
};

}  // namespace detail

SharedRecipe prefetch_recipe(SharedRecipe input, std::uint64_t n) {
  require_count("the elements that prefetch reads ahead", n);
  if (n > max_read_ahead / 2) throw_error(Status::invalid_argument(str_cat("data: prefetch of ", n, " elements")));
  return std::make_shared<detail::Prefetch>(std::move(input), n);
}

}  // namespace dflow::data
