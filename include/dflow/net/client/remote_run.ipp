#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/net/client/fetched_tensors.ipp>
#include <dflow/net/client/remote_session_client.ipp>
#include <dflow/net/master/cluster_tasks.hpp>
#include <dflow/net/protocol/call.hpp>
#include <dflow/net/protocol/clock_offset.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/master_messages.hpp>
#include <dflow/runtime/step_handle.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::net::detail {

/// One run of a step that the master runs, in the client's process.
class RemoteRun final : public StepPart, public std::enable_shared_from_this<RemoteRun> {
 public:
  /// Borrowed memory is its lender's when the step has ended, and may still be on its way then.
  RemoteRun(std::shared_ptr<const RemoteStepRequest> step, std::vector<AnyTensor> feeds, std::span<AnyTensor> results)
      : step_(std::move(step)), feeds_(std::move(feeds)), results_(results) {
    for (AnyTensor& feed : feeds_) {
      if (feed.is_borrowed()) feed = feed.deep_copy();
    }
  }

  void start(StepHandle& step, Done done) override {
    std::unique_lock lock(mutex_);
    if (!cancelled_.ok()) {
      lock.unlock();
      return done(cancelled_);
    }
    deadline_ = step.deadline();
    stats_ = step.stats();
    done_ = std::move(done);
    lock.unlock();
    step_->session->prepare(step_->num_nodes, {},
                            [self = shared_from_this()](Status status, const std::shared_ptr<Connection>& connection) {
                              if (!status.ok()) return self->finish(std::move(status), {});
                              try {
                                self->send(*connection);
                              } catch (...) {
                                self->finish(status_of_current_exception(), {});
                              }
                            });
  }

  void cancel(const Status& status) override {
    Done done;
    {
      const std::lock_guard lock(mutex_);
      if (!cancelled_.ok()) return;
      cancelled_ = status.ok() ? Status::cancelled("the step was cancelled") : status;
      done = std::exchange(done_, nullptr);
    }
    cancellation_.cancel(status);
    if (done) done(cancelled_);
  }

 private:
  void send(Connection& connection) {
    RunSession run;
    Call call;
    try {
      const RemoteSession::StepNames& names = step_->names;
      run.session = step_->session->number();
      auto [described, elements] = to_payload(feeds_);
      for (std::size_t i = 0; i < described.size(); ++i) run.feeds.emplace_back(names.feeds[i], described[i]);
      run.fetches = names.fetches;
      run.targets = names.targets;
      {
        const std::lock_guard lock(mutex_);
        if (!done_) return;
        run.trace = stats_ != nullptr;
      }
      run.time_left_ns = time_left_ns(deadline_, step_->session->clock());
      call = make_call(Method::run_session, to_body(run));
      call.message.payload = std::move(elements);
    } catch (...) {
      return finish(status_of_current_exception(), {});
    }
    call.cancellation = cancellation_.token();
    call.place_payload = [self = shared_from_this()](std::string_view body, std::uint64_t size) {
      return self->fetched_.place(body, size);
    };
    const std::int64_t asked = clock_ns(step_->session->clock().now());
    connection.call(std::move(call),
                    [self = shared_from_this(), asked, number = run.session](Status status, const std::string& body) {
                      if (take_forgotten(status)) self->step_->session->make_again(number);
                      self->finish(status.with_task(self->step_->session->master()), body, asked);
                    });
  }

  void finish(Status status, const std::string& body, std::int64_t asked = 0) {
    Done done;
    {
      const std::lock_guard lock(mutex_);
      done = std::exchange(done_, nullptr);
    }
    if (!done) return;  // cancelled; the step and its results may be gone
    try {
      throw_if_error(status);
      const RunSessionReply reply = from_body<RunSessionReply>(body);
      std::vector<AnyTensor> tensors = fetched_.take(reply, step_->names.fetches, step_->names.fetched_types);
      const std::int64_t now = clock_ns(step_->session->clock().now());
      if (stats_ != nullptr) add_stats(*stats_, reply.run, ClockOffset(), asked, now, now);
      std::move(tensors.begin(), tensors.end(), results_.begin());
    } catch (...) {
      status = status_of_current_exception();
    }
    done(std::move(status));
  }

  const std::shared_ptr<const RemoteStepRequest> step_;
  std::vector<AnyTensor> feeds_;
  const std::span<AnyTensor> results_;
  Clock::time_point deadline_ = Clock::never;
  StatsCollector* stats_ = nullptr;
  CancellationSource cancellation_;
  FetchedTensors fetched_;
  std::mutex mutex_;  ///< guards what follows
  Done done_;
  Status cancelled_;
};

}  // namespace dflow::net::detail
