#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/net/inspect/task_log.hpp>
#include <dflow/net/tasks/backoff.hpp>
#include <dflow/net/tasks/peers.hpp>
#include <dflow/net/tasks/step_table.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dflow::net {

/// The tensors of steps that this task asks other tasks for, and pushes to them, over its connections.
///
/// Thread safety: safe. Completions run on I/O threads, and inside a call where there is nothing to wait for.
class PeerTensors final : public TensorSource, public std::enable_shared_from_this<PeerTensors> {
 public:
  struct Options {
    std::string task;  ///< this one
    std::shared_ptr<Peers> peers;
    std::shared_ptr<Clock> clock;
    std::function<std::uint64_t()> random;       ///< numbers of 64 random bits
    std::shared_ptr<ThreadPool> pool = nullptr;  ///< reads large tensors; null: I/O threads do
    std::shared_ptr<TaskLog> log = nullptr;      ///< of tensors, if given
    /// Tensors of more bytes are asked for on the data connection, and so are tensors of unknown size, strings among
    /// them.
    std::size_t small_tensor_bytes = 64 << 10;
    /// A task that has lost pushed tensors is told so, if it can be reached within this time. Between attempts are the
    /// pauses of `Peers::connect`.
    Duration recall_timeout = std::chrono::minutes(10);
  };

  explicit PeerTensors(Options options) : options_(std::move(options)) {}

  void receive(const std::string& task, std::uint64_t step, const RendezvousKey& key, const RecvArgs& args,
               CancellationToken cancellation, Rendezvous::RecvDone done) override;
  void push(const std::string& task, std::uint64_t step, const RendezvousKey& key, const AnyTensor& tensor,
            bool is_dead, UniqueFunction<bool()> is_wanted, UniqueFunction<void(Status)> failed) override;
  /// Tells the other task that it waits in vain for tensors that it has not read, or will when it begins a step. It
  /// does not know steps that are over there, and may be a later start than that which the tensors went to.
  void recall(const std::string& task, std::vector<std::uint64_t> steps, const Status& why);

 private:
  /// Tells a task that tensors of steps are `lost`.
  struct Recall {
    std::string task;
    std::vector<std::uint64_t> steps;
    Status lost;
    Clock::time_point until;
    Backoff backoff;
  };
  void attempt_recall(const Recall& recall);
  bool begin_recall(const Recall& recall);
  Recall take_recall(const std::string& task);
  void send_recall(const std::shared_ptr<Connection>& connection, const Recall& recall);
  void recall_later(Recall recall);

  const Options options_;
  std::mutex mutex_;
  std::map<std::string, Recall> recalls_;  ///< that wait for a connection, by task
};

}  // namespace dflow::net
