// The snippets of docs/embedding.md.

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/dflow.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

// [pool]
class AppPool final : public df::ThreadPool {
 public:
  explicit AppPool(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  }
  ~AppPool() override {
    {
      std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    ready_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int num_threads() const noexcept override { return static_cast<int>(threads_.size()) + 1; }  // and the caller
  void schedule(df::Task task) override {
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    ready_.notify_one();
  }
  bool current_thread_is_worker() const noexcept override { return current() == this; }

 private:
  static const AppPool*& current() {
    thread_local const AppPool* pool = nullptr;
    return pool;
  }
  void work() {
    current() = this;
    for (std::unique_lock lock(mutex_);;) {
      ready_.wait(lock, [this] { return is_done_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      df::Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<df::Task> tasks_;
  bool is_done_ = false;
  std::vector<std::thread> threads_;
};
// [pool]

void run() {
  df::Graph graph({.seed = 1});
  auto x = df::placeholder<float>(graph, {df::dynamic, 64});
  auto y = df::dense(x, 64, {.activation = df::Activation::tanh});
  const auto batch = df::Tensor<float>::full({32, 64}, 0.5f);
  // [deadline]
  df::Session session(graph, {.pool = std::make_shared<AppPool>(3)});
  session.run(df::initialize_variables(graph));
  auto predict = session.prepare(df::feeds(x), df::fetches(y));

  std::stop_source stop;  // stop.request_stop() ends the step
  try {
    auto result =
        predict.run({.deadline = std::chrono::seconds(10), .stop = stop.get_token()}, /*metadata=*/nullptr, batch);
  } catch (const df::Error& error) {
    if (error.code() != df::Code::deadline_exceeded && error.code() != df::Code::cancelled) throw;
    std::printf("given up: %s\n", error.what());
  }
  // [deadline]
  stop.request_stop();
  bool was_stopped = false;
  try {
    predict.run({.stop = stop.get_token()}, nullptr, batch);
  } catch (const df::Error& error) {
    was_stopped = error.code() == df::Code::cancelled;
  }
  require(was_stopped, "a stopped step is cancelled");
  require(predict(batch).shape() == df::Shape{32, 64}, "the session goes on");
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
