#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/data/read_position.hpp>
#include <dflow/data/steps/parallel_map.hpp>
#include <dflow/data/steps/replayed_input.hpp>

#include <atomic>
#include <deque>
#include <exception>
#include <utility>

namespace dflow::data {

namespace detail {

class ParallelMap final : public Recipe {
 public:
  ParallelMap(SharedRecipe input, std::function<Item(Item)> apply, MapOptions options)
      : input_(std::move(input)), apply_(std::move(apply)), options_(std::move(options)) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::optional<std::uint64_t> size() const override { return input_->size(); }
  std::string describe() const override { return input_->describe() + " | map"; }

 private:
  class Pass final : public Stream {
   public:
    Pass(const ParallelMap& map, const PassContext& context)
        : map_(map), context_(context), input_(map.input_->open(context)) {}
    ~Pass() override {
      is_cancelled_.store(true, std::memory_order_relaxed);
      for (Call& call : calls_) pool_->wait(call.is_done);
    }

    bool next(Item& item) override {
      read_ahead();
      if (calls_.empty()) return false;
      Call& call = calls_.front();
      pool_->wait(call.is_done);
      if (call.error) std::rethrow_exception(call.error);
      item = std::move(call.item);
      calls_.pop_front();
      ++given_;
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      if (pool_ != nullptr) return Stream::skip(n);
      const std::uint64_t passed = input_->skip(n);
      log_ = {};
      read_ = given_ = given_ + passed;
      return passed;
    }
    void save(ByteWriter& out) const override {
      out.varint(given_);
      if (log_.is_empty()) {
        out.varint(0);
        return input_->save(out);
      }
      const SnapshotLog::Snapshot& snapshot = log_.before(given_);
      out.varint(given_ - snapshot.index);
      out.bytes(std::as_bytes(std::span(snapshot.state.data(), snapshot.state.size())));
    }
    void restore(ByteReader& in) override {
      read_ = given_ = read_position(in);
      const std::uint64_t ahead = read_replayed(in, max_read_ahead);
      input_->restore(in);
      replay(*input_, ahead);
    }

   private:
    static constexpr std::uint64_t snapshot_every = 64;

    struct Call {
      Item item;
      std::uint64_t number = 0;
      std::exception_ptr error;
      PoolEvent is_done;
    };

    void read_ahead() {
      if (!pool_) {
        pool_ = map_.options_.pool;
        if (!pool_)
          pool_ = std::make_shared<WorkStealingPool>(map_.options_.threads, ThreadPoolOptions{.name = "dflow-map"});
      }
      while (!has_ended_ && calls_.size() < static_cast<std::size_t>(map_.options_.ahead)) {
        if (log_.is_empty() || read_ - log_.last_index() >= snapshot_every) {
          log_.forget_before(given_);
          log_.add(read_, SnapshotLog::of(*input_, read_).state);
        }
        Item item;
        try {
          has_ended_ = !input_->next(item);
        } catch (...) {  // it comes when the elements before it have been given
          has_ended_ = true;
          Call& failed = calls_.emplace_back();
          failed.error = std::current_exception();
          failed.is_done.set();
        }
        if (has_ended_) return;
        start(std::move(item), read_++);
      }
    }
    void start(Item item, std::uint64_t number) {
      Call& call = calls_.emplace_back();
      call.item = std::move(item);
      call.number = number;
      try {
        pool_->schedule([this, &call] { run(call); });
      } catch (...) {  // no memory to queue it
        run(call);
      }
    }
    void run(Call& call) noexcept {
      try {
        if (!is_cancelled_.load(std::memory_order_relaxed) && !call.item.is_failure()) {
          context_.make(call.item, "map", call.number, [&] { call.item = map_.apply_(std::move(call.item)); });
        }
      } catch (...) {
        call.error = std::current_exception();
      }
      call.is_done.set();
    }

    const ParallelMap& map_;
    PassContext context_;
    std::unique_ptr<Stream> input_;
    SnapshotLog log_;
    std::uint64_t read_ = 0, given_ = 0;
    bool has_ended_ = false;
    std::atomic<bool> is_cancelled_{false};
    std::deque<Call> calls_;
    std::shared_ptr<ThreadPool> pool_;  ///< destroyed first: its threads end
  };

  SharedRecipe input_;
  std::function<Item(Item)> apply_;
  MapOptions options_;
};

}  // namespace detail

SharedRecipe parallel_map_recipe(SharedRecipe input, std::function<Item(Item)> apply, MapOptions options) {
  if (options.threads < 1 || options.threads > WorkStealingPool::max_threads) {
    throw_error(Status::invalid_argument(str_cat("data: map with ", options.threads, " threads")));
  }
  if (options.ahead < 0 || static_cast<std::uint64_t>(options.ahead) > max_read_ahead / 2) {
    throw_error(Status::invalid_argument(str_cat("data: map cannot read ", options.ahead, " elements ahead")));
  }
  const int threads = options.pool ? options.pool->num_threads() : options.threads;
  if (options.ahead == 0) options.ahead = 2 * threads;
  return std::make_shared<detail::ParallelMap>(std::move(input), std::move(apply), std::move(options));
}

}  // namespace dflow::data
