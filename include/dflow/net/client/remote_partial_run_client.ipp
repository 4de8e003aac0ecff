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
#include <dflow/session/target.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::net::detail {

/// A partial run of a step that the master runs, in the client's process. A feed is sent as it comes. A fetch is asked
/// for as soon as the master has all feeds that it needs. One request more waits for the end of the step.
///
/// Thread safety: safe.
class RemotePartialRunClient final : public RemotePartialRun,
                                     public std::enable_shared_from_this<RemotePartialRunClient> {
 public:
  RemotePartialRunClient(std::shared_ptr<const RemoteStepRequest> step, std::vector<std::vector<bool>> needed_feeds,
                         Events events)
      : step_(std::move(step)),
        needed_feeds_(std::move(needed_feeds)),
        events_(std::move(events)),
        is_there_(step_->names.feeds.size()),
        is_asked_for_(step_->names.fetches.size()) {}

  /// Whatever the result, the master need not keep the run any more.
  ~RemotePartialRunClient() override {
    if (connection_ == nullptr) return;
    try {
      connection_->call(make_call(Method::end_partial_run, to_body(name_)), [](const Status&, const std::string&) {});
    } catch (...) {  // no memory for it: it ends with the session
    }
  }

  void start(StepHandle& step, Done done) override {
    std::unique_lock lock(mutex_);
    if (!cancelled_.ok()) {
      lock.unlock();
      return done(cancelled_);
    }
    handle_ = step.weak_from_this();
    deadline_ = step.deadline();
    is_traced_ = step.stats() != nullptr;
    done_ = std::move(done);
    lock.unlock();
    step_->session->prepare(step_->num_nodes, {},
                            [self = shared_from_this()](Status status, const std::shared_ptr<Connection>& connection) {
                              if (!status.ok()) return self->finish(std::move(status));
                              try {
                                self->begin(connection);
                              } catch (...) {
                                self->finish(status_of_current_exception());
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
    requests_.cancel(status);
    if (done) done(cancelled_);
  }

  void feed(std::size_t feed, AnyTensor value) override {
    try {
      std::vector<AnyTensor> tensors;
      // Borrowed memory is its lender's when this has returned.
      tensors.push_back(value.is_borrowed() ? value.deep_copy() : std::move(value));
      auto [described, elements] = to_payload(std::move(tensors));
      ContinuePartialRun request;
      request.feeds.emplace_back(step_->names.feeds[feed], described[0]);
      ask(std::move(request), std::move(elements),
          [this, feed](const RunSessionReply&, FetchedTensors&, std::int64_t) { ask_for_more(feed); });
    } catch (...) {
      finish(status_of_current_exception());
    }
  }

 private:
  void begin(const std::shared_ptr<Connection>& connection) {
    BeginPartialRun begin;
    begin.session = step_->session->number();
    begin.trace = is_traced_;
    begin.feeds = step_->names.feeds;
    begin.fetches = step_->names.fetches;
    begin.targets = step_->names.targets;
    begin.time_left_ns = time_left_ns(deadline_, step_->session->clock());
    Call call = make_call(Method::begin_partial_run, to_body(begin));
    // The call is not given up when the step is cancelled: a run that has begun must be ended.
    connection->call(std::move(call), [self = shared_from_this(), connection, number = begin.session](
                                          Status status, const std::string& body) {
      if (take_forgotten(status)) self->step_->session->make_again(number);
      try {
        throw_if_error(status);
        self->take_begun(connection, from_body<PartialRunName>(body));
      } catch (...) {
        self->finish(status_of_current_exception().with_task(self->step_->session->master()));
      }
    });
  }

  void take_begun(const std::shared_ptr<Connection>& connection, const PartialRunName& name) {
    {
      const std::lock_guard lock(mutex_);
      connection_ = connection;
      name_ = name;
    }
    if (!while_it_lasts([&](StepHandle&) { events_.begun(); })) return;
    ContinuePartialRun until_end;
    until_end.until_end = true;
    ask(std::move(until_end), {},
        [this](const RunSessionReply& reply, FetchedTensors&, std::int64_t asked) { take_end(reply, asked); });
    ask_for_more({});
  }

  /// The master has this feed. Fetches for which it was the last missing feed can now be asked for; the first call
  /// asks for the fetches that need no feed.
  void ask_for_more(std::optional<std::size_t> feed) {
    std::vector<std::size_t> possible;
    {
      const std::lock_guard lock(mutex_);
      if (feed) is_there_[*feed] = true;
      for (std::size_t f = 0; f < is_asked_for_.size(); ++f) {
        if (is_asked_for_[f] || !has_feeds_for(f)) continue;
        is_asked_for_[f] = true;
        possible.push_back(f);
      }
    }
    for (const std::size_t fetch : possible) {
      ContinuePartialRun request;
      request.fetches.push_back(step_->names.fetches[fetch]);
      ask(std::move(request), {}, [this, fetch](const RunSessionReply& reply, FetchedTensors& tensors, std::int64_t) {
        const RemoteSession::StepNames& names = step_->names;
        std::vector<AnyTensor> taken = tensors.take(reply, std::span(names.fetches).subspan(fetch, 1),
                                                    std::span(names.fetched_types).subspan(fetch, 1));
        events_.made(fetch, std::move(taken[0]));
        count([&] { ++num_made_; });
      });
    }
  }

  /// With the mutex held.
  bool has_feeds_for(std::size_t fetch) const {
    for (std::size_t f = 0; f < is_there_.size(); ++f) {
      if (needed_feeds_[fetch][f] && !is_there_[f]) return false;
    }
    return true;
  }

  void take_end(const RunSessionReply& reply, std::int64_t asked) {
    while_it_lasts([&](StepHandle& step) {
      const std::int64_t now = clock_ns(step_->session->clock().now());
      if (step.stats() != nullptr) add_stats(*step.stats(), reply.run, ClockOffset(), asked, now, now);
    });
    count([&] { has_ended_there_ = true; });
  }

  /// The part is done when the step has ended there and all that it has made is here.
  template <class Change>
  void count(const Change& change) {
    bool is_all = false;
    {
      const std::lock_guard lock(mutex_);
      change();
      is_all = has_ended_there_ && num_made_ == is_asked_for_.size();
    }
    if (is_all) finish({});
  }

  /// Calls `use(step)` with a step that does not end meanwhile. False if it has ended.
  template <class Use>
  bool while_it_lasts(const Use& use) {
    const std::shared_ptr<StepHandle> step = handle_.lock();
    if (step == nullptr) return false;
    const StepHandle::Hold hold(*step);
    if (!hold) return false;
    use(*step);
    return true;
  }

  /// Sends a request for the run. `use(reply, tensors, asked)` gets the master's reply to the request that was sent
  /// at `asked`, while the step lasts; an error ends it.
  template <class Use>
  void ask(ContinuePartialRun request, Payload elements, Use use) {
    request.name = name_;
    const auto tensors = std::make_shared<FetchedTensors>();
    Call call = make_call(Method::continue_partial_run, to_body(request));
    call.message.payload = std::move(elements);
    call.cancellation = requests_.token();
    call.place_payload = [tensors](std::string_view body, std::uint64_t size) { return tensors->place(body, size); };
    const std::int64_t asked = clock_ns(step_->session->clock().now());
    connection_->call(std::move(call), [self = shared_from_this(), tensors, asked, use = std::move(use)](
                                           Status status, const std::string& body) {
      try {
        throw_if_error(status);
        const RunSessionReply reply = from_body<RunSessionReply>(body);
        self->while_it_lasts([&](StepHandle&) { use(reply, *tensors, asked); });
      } catch (...) {
        self->finish(status_of_current_exception().with_task(self->step_->session->master()));
      }
    });
  }

  void finish(Status status) {
    Done done;
    {
      const std::lock_guard lock(mutex_);
      done = std::exchange(done_, nullptr);
    }
    if (!done) return;  // cancelled
    if (!status.ok()) requests_.cancel(status);
    done(std::move(status));
  }

  const std::shared_ptr<const RemoteStepRequest> step_;
  const std::vector<std::vector<bool>> needed_feeds_;
  Events events_;
  std::weak_ptr<StepHandle> handle_;
  Clock::time_point deadline_ = Clock::never;
  bool is_traced_ = false;
  // Set before it may be fed.
  std::shared_ptr<Connection> connection_;
  PartialRunName name_;
  CancellationSource requests_;
  std::mutex mutex_;  ///< guards the members below
  std::vector<bool> is_there_;
  std::vector<bool> is_asked_for_;
  std::size_t num_made_ = 0;
  bool has_ended_there_ = false;
  Done done_;
  Status cancelled_;
};

}  // namespace dflow::net::detail
