#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/collectives/collective_meetings.hpp>
#include <dflow/ops/internal/member_collective.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

struct CollectiveMeetings::State {
  /// Each step has a rendezvous of its own. Within a step, meetings have the same kind of key as sent values.
  struct Key {
    const Rendezvous* step;
    std::string collective;
    std::string frame;
    std::int64_t iteration;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Member {
    KernelContext* context = nullptr;  ///< null: has not come
    AsyncKernel::Done done;
    CancellationRegistration cancellation;
  };
  struct Meeting {
    std::uint64_t number = 0;
    std::vector<Member> members;
    std::size_t num_arrived = 0;
  };

  mutable std::mutex mutex;
  std::map<Key, Meeting> meetings;
  std::uint64_t next_number = 0;

  /// The same one, not a later one under its key.
  Meeting* find(const Key& key, std::uint64_t number) {
    const auto found = meetings.find(key);
    return found != meetings.end() && found->second.number == number ? &found->second : nullptr;
  }

  static void end(std::vector<Member> members, const Status& status) {
    for (Member& member : members) {
      // Called from a token's callback too, so nothing here waits for a callback.
      static_cast<void>(member.cancellation.try_deregister());
      if (member.context != nullptr) member.done(status);
    }
  }
  void cancel(const Key& key, std::uint64_t number, const Status& status) {
    std::vector<Member> members;
    {
      const std::lock_guard lock(mutex);
      Meeting* const meeting = find(key, number);
      if (meeting == nullptr) return;
      members = std::move(meeting->members);
      meetings.erase(key);
    }
    end(std::move(members), status);
  }
};

CollectiveMeetings::CollectiveMeetings() : state_(std::make_shared<State>()) {}
CollectiveMeetings::~CollectiveMeetings() = default;

std::size_t CollectiveMeetings::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->meetings.size();
}

namespace detail {

/// Computes the outputs of all members.
Status compute_collective(std::span<KernelContext* const> members, CollectiveMeetings::Compute compute) {
  try {
    bool is_dead = false;
    for (const KernelContext* const member : members) {
      for (int i = 0; i < member->num_inputs(); ++i) is_dead |= member->is_input_dead(i);
    }
    if (is_dead) {
      for (KernelContext* const member : members) member->set_output_dead(0);
    } else {
      compute(members);
    }
    return Status();
  } catch (...) {
    return status_of_current_exception();
  }
}

}  // namespace detail

void CollectiveMeetings::arrive(KernelContext& context, AsyncKernel::Done done, Compute compute) {
  const auto& attrs = context.node().attrs_as<MemberCollective>();
  const StepContext& step = context.step();
  if (step.rendezvous == nullptr)
    return done(Status::internal("members of a collective run in a step without rendezvous"));
  const CancellationToken cancellation = step.cancellation;
  const std::shared_ptr<State> state = state_;
  const auto place = static_cast<std::size_t>(attrs.member), size = static_cast<std::size_t>(attrs.members);
  std::optional<State::Key> made;
  std::uint64_t number = 0;
  std::vector<State::Member> all;
  std::vector<KernelContext*> contexts;
  try {
    made.emplace(State::Key{step.rendezvous, attrs.collective, std::string(step.frame), step.iteration});
    contexts.reserve(size);
    std::vector<State::Member> members(size);
    const std::lock_guard lock(state->mutex);
    State::Meeting& meeting = state->meetings[*made];
    if (meeting.members.empty()) {
      meeting.members = std::move(members);
      meeting.number = state->next_number++;
    }
    number = meeting.number;
    State::Member& member = meeting.members[place];
    member.context = &context;
    member.done = std::move(done);
    if (++meeting.num_arrived == size) {
      all = std::move(meeting.members);
      state->meetings.erase(*made);
    }
  } catch (...) {  // no memory to come
    return done(status_of_current_exception());
  }
  if (!all.empty()) {
    for (const State::Member& member : all) contexts.push_back(member.context);
    return State::end(std::move(all), detail::compute_collective(contexts, compute));
  }
  // From here on the run of this member, and with it its node, may end at any time.
  const State::Key& key = *made;
  CancellationRegistration registration;
  try {
    registration =
        cancellation.on_cancel([state, key, number](const Status& status) { state->cancel(key, number, status); });
  } catch (...) {
    return state->cancel(key, number, status_of_current_exception());
  }
  const std::lock_guard lock(state->mutex);
  if (State::Meeting* const meeting = state->find(key, number)) {
    meeting->members[place].cancellation = std::move(registration);
  } else {
    static_cast<void>(registration.try_deregister());
  }
}

}  // namespace dflow
