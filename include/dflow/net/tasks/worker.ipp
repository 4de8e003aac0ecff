#pragma once

#include <dflow/net/protocol/call.hpp>
#include <dflow/net/tasks/worker.hpp>
#include <dflow/op/import.hpp>
#include <dflow/passes/step_graph_def.hpp>

#include <algorithm>
#include <chrono>

namespace dflow::net {

/// The shares of steps that one session of a client keeps here.
struct Worker::ClientShares {
  explicit ClientShares(std::unique_ptr<PartCompiler> with) : compiler(std::move(with)) {}

  struct Share {
    std::shared_ptr<CompiledStep> step;  ///< null while it is compiled
    std::vector<Responder> waiting;      ///< for it to be
    ByteCharge charge;                   ///< the client's
  };

  const std::unique_ptr<PartCompiler> compiler;
  std::mutex mutex;
  std::map<std::uint64_t, Share> shares;  ///< by numbers that clients choose, so no hash table
};

/// One run of a share.
struct Worker::Run {
  RunShare request;
  std::string owner;
  Responder respond;
  std::shared_ptr<CompiledStep> step;
  std::unique_ptr<CompiledStep::Memory> memory;
  std::shared_ptr<StepHandle> handle;
  Clock::time_point began;
  std::string_view client_task() const noexcept { return std::string_view(owner).substr(0, owner.find(';')); }
  CancellationToken cancellation;  ///< the connection that the request came by is gone, and nobody hears of its end
  CancellationRegistration registration;
};

Worker::Worker(Options options) : options_(std::move(options)), began_(options_.clock->now()) {
  // Errors of the devices' tables show here, and not with the first session.
  static_cast<void>(PartCompiler(options_.devices, options_.ops.kernels(), {options_.pool.get()}));
}

Worker::~Worker() = default;

bool Worker::handle(const Visit& visit, Incoming& request, Responder& respond) {
  switch (static_cast<Method>(request.method)) {
    case Method::list_devices:
      expect_no_body(request.body);
      list_devices(respond);
      return true;
    case Method::register_share:
      register_share(visit, request, respond);
      return true;
    case Method::forget_share:
      forget_share(visit.id(), from_body<ShareName>(request.body));
      respond(Outgoing());
      return true;
    case Method::close_session:
      close_session(visit.id(), from_body<ShareName>(request.body).session);
      respond(Outgoing());
      return true;
    case Method::run_share:
      run_share(visit, request, respond);
      return true;
    case Method::cancel_step:
      cancel_step(from_body<CancelStep>(request.body));
      respond(Outgoing());
      return true;
    case Method::receive_tensor:
      receive_tensor(request, respond);
      return true;
    case Method::task_log:
      if (options_.log == nullptr) return false;
      respond(Outgoing{to_body(options_.log->handle(from_body<LogRequest>(request.body))), {}});
      return true;
    case Method::push_tensor:
      take_tensor(visit, request);
      respond(Outgoing());
      return true;
    default:
      return false;
  }
}

void Worker::list_devices(Responder& respond) {
  DeviceList list;
  for (const std::shared_ptr<Device>& device : options_.devices) list.devices.push_back(device->info());
  respond(Outgoing{to_body(list), {}});
}

// ---- shares ----

/// A client that has lost a connection, which this task may not know yet, sends its shares again: a number always
/// stands for the same share.
void Worker::register_share(const Visit& visit, Incoming& request, Responder& respond) {
  const ShareName name = from_body<ShareName>(request.body);
  ByteCharge charge = detail::charge_graph(request);
  std::shared_ptr<ClientShares> session;
  {
    const std::lock_guard lock(mutex_);
    throw_if_error(stopped_);
    if (visit.is_over()) throw_error(Status::unavailable("the connection has ended"));
    session = sessions_.find(visit.id(), name.session);
    if (session == nullptr) {
      session = std::make_shared<ClientShares>(std::make_unique<PartCompiler>(
          options_.devices, options_.ops.kernels(), PartCompiler::Options{options_.pool.get(), options_.clock.get()}));
      sessions_.add(visit.id(), name.session, session, options_.max_sessions);
    }
  }
  bool is_registered = false;
  {
    const std::lock_guard lock(session->mutex);
    const bool is_new = !session->shares.contains(name.share);
    if (is_new && session->shares.size() >= options_.max_shares) {
      throw_error(Status::resource_exhausted(str_cat("more than ", options_.max_shares, " shares of one session")));
    }
    ClientShares::Share& share = session->shares[name.share];
    is_registered = share.step != nullptr;
    try {
      if (is_new) share.charge = std::move(charge);
      if (!is_registered) share.waiting.push_back(std::move(respond));
    } catch (...) {
      if (is_new) session->shares.erase(name.share);
      throw;
    }
    if (!is_new && !is_registered) return;
  }
  // NOLINTNEXTLINE(bugprone-use-after-move): it waits in the share only where that is not registered
  if (is_registered) return respond(Outgoing());
  try {
    options_.pool->schedule(
        [self = shared_from_this(), session, number = name.share, payload = std::move(request.payload)]() mutable {
          std::shared_ptr<CompiledStep> step;
          Status status;
          try {
            const std::string_view bytes(reinterpret_cast<const char*>(payload.data()), payload.size());
            step = self->compile(*session, from_body<SharePartitions>(bytes));
          } catch (...) {
            status = status_of_current_exception().with_task(self->options_.task);
          }
          end_registering(*session, number, std::move(step), status);
        });
  } catch (...) {
    end_registering(*session, name.share, nullptr, status_of_current_exception());
  }
}

void Worker::end_registering(ClientShares& session, std::uint64_t number, std::shared_ptr<CompiledStep> step,
                             const Status& status) {
  std::vector<Responder> waiting;
  {
    const std::lock_guard lock(session.mutex);
    const auto found = session.shares.find(number);
    if (found == session.shares.end()) return;  // it has been forgotten meanwhile
    waiting.swap(found->second.waiting);
    found->second.step = std::move(step);
    if (!status.ok()) session.shares.erase(found);
  }
  for (Responder& respond : waiting) {
    if (status.ok()) {
      respond(Outgoing());
    } else {
      respond(status);
    }
  }
}

std::shared_ptr<CompiledStep> Worker::compile(ClientShares& session, const SharePartitions& partitions) {
  auto step = std::make_shared<CompiledStep>();
  step->pool = options_.pool.get();
  for (const SharePartitions::Partition& partition : partitions.partitions) {
    const auto device = std::find_if(options_.devices.begin(), options_.devices.end(),
                                     [&](const auto& candidate) { return candidate->name() == partition.device; });
    if (device == options_.devices.end()) {
      throw_error(Status::not_found(str_cat("this task has no device '", partition.device, "'")));
    }
    Graph graph;
    import_graph_into(graph, partition.part.graph, options_.ops.ops(), {.is_part_of_step = true});
    Partition part;
    part.device = static_cast<std::size_t>(device - options_.devices.begin());
    part.graph = part_of_step(*graph.store(), partition.part, static_cast<std::int32_t>(part.device));
    step->parts.push_back(session.compiler->compile(std::move(part), {}, nullptr));
  }
  step->uses_rendezvous = true;
  step->settle();
  return step;
}

void Worker::forget_share(const Visit::Id& visit, const ShareName& name) {
  std::shared_ptr<ClientShares> session;
  {
    const std::lock_guard lock(mutex_);
    session = sessions_.find(visit, name.session);
  }
  if (session == nullptr) return;
  ClientShares::Share share;  // goes without the lock
  const std::lock_guard lock(session->mutex);
  const auto found = session->shares.find(name.share);
  if (found == session->shares.end()) return;
  share = std::move(found->second);
  session->shares.erase(found);
}

void Worker::close_session(const Visit::Id& visit, std::uint64_t session) {
  std::shared_ptr<ClientShares> closed;
  const std::lock_guard lock(mutex_);
  closed = sessions_.take(visit, session);
}

void Worker::forget(const Visit& visit, const Status& why) {
  std::vector<std::shared_ptr<ClientShares>> closed;
  {
    const std::lock_guard lock(mutex_);
    closed = sessions_.take_all(visit.id());
  }
  cancel_runs([&](const Run& run) { return run.owner == visit.owner(); }, why);
  options_.steps->cancel_all_of(visit.owner(), why);
}

// ---- runs ----

void Worker::run_share(const Visit& visit, Incoming& request, Responder& respond) {
  auto run = std::make_shared<Run>();
  run->began = options_.clock->now();
  run->request = from_body<RunShare>(request.body);
  run->owner = visit.owner();
  const ShareName name = run->request.name;
  std::shared_ptr<ClientShares> session;
  {
    const std::lock_guard lock(mutex_);
    throw_if_error(stopped_);
    session = sessions_.find(visit.id(), name.session);
  }
  if (session != nullptr) {
    const std::lock_guard lock(session->mutex);
    const auto found = session->shares.find(name.share);
    if (found != session->shares.end()) run->step = found->second.step;
  }
  if (run->step == nullptr) throw_error(Status::not_found(str_cat("share ", name.share, " is not registered here")));
  run->respond = std::move(respond);
  run->cancellation = request.cancellation;
  start(std::move(run));
}

void Worker::start(std::shared_ptr<Run> run) {
  std::shared_ptr<StepRendezvous> rendezvous;
  try {
    run->memory = run->step->take_memory();
    StepHandle::Options options;
    options.id = run->request.step;
    options.clock = options_.clock;
    if (run->request.time_left_ns > 0) {
      options.deadline = options_.clock->after(std::chrono::nanoseconds(run->request.time_left_ns));
    }
    options.trace = run->request.trace;
    rendezvous = options_.steps->begin(options.id, run->owner);
    options.rendezvous = rendezvous;
    run->handle = std::make_shared<StepHandle>(std::move(options));
    for (PushedTensor& pushed : run->request.pushed) {
      throw_if_error(
          rendezvous->send(RendezvousKey::parse(pushed.key).value(), std::move(pushed.tensor), pushed.is_dead));
    }
    const std::span<AnyTensor> none;
    run->step->fill(*run->handle, *run->memory, none, none);
    {
      const std::lock_guard lock(mutex_);
      throw_if_error(stopped_);
      running_.emplace(run->request.step, run);
    }
  } catch (...) {
    if (run->memory != nullptr) run->step->give_back(std::move(run->memory), true);
    run->handle = nullptr;
    const Status why = status_of_current_exception().with_task(options_.task);
    if (options_.counters != nullptr) options_.counters->count_part(why.code());
    return run->respond(why);
  }
  const std::shared_ptr<StepHandle> handle = run->handle;
  run->registration = run->cancellation.on_cancel([weak = std::weak_ptr<StepHandle>(handle)](const Status& why) {
    if (const std::shared_ptr<StepHandle> lost = weak.lock()) lost->cancel(why);
  });
  // A run that ends in this call takes its tensors for the client along.
  GatheredPushes gathered(run->request.step, run->client_task());
  handle->start([self = shared_from_this(), run](const Status& status) { self->finish(run, status); });
  std::vector<PushedTensor> left = gathered.take();
  for (PushedTensor& pushed : left) rendezvous->push_on(std::move(pushed));
}

void Worker::finish(const std::shared_ptr<Run>& run, const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = running_.equal_range(run->request.step);
    const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second == run; });
    if (found != end) running_.erase(found);
  }
  if (options_.counters != nullptr) options_.counters->count_part(status.code());
  run->registration.try_deregister();
  RunShareReply reply;
  if (GatheredPushes* const gathered = GatheredPushes::find(run->request.step, run->client_task())) {
    reply.pushed = gathered->take();
  }
  if (logs()) {
    if (status.ok()) log_sent(*run, reply.pushed);
    options_.log->add({.what = LogRecord::What::ran,
                       .step = run->request.step,
                       .name = str_cat(run->request.name.share),
                       .peer = std::string(run->client_task()),
                       .start_ns = detail::clock_ns(run->began),
                       .code = status.code()});
  }
  reply.came_ns = detail::clock_ns(run->began);
  if (StatsCollector* const stats = run->handle->stats()) {
    reply.is_traced = true;
    reply.began_ns = detail::clock_ns(stats->start());
    reply.stats = stats->finish();
  }
  run->step->give_back(std::move(run->memory), !status.ok());
  run->handle = nullptr;
  if (status.ok()) {
    reply.answered_ns = detail::clock_ns(options_.clock->now());
    run->respond(Outgoing{to_body(reply), {}});
  } else {
    run->respond(status.with_task(options_.task));
  }
}

void Worker::log_sent(const Run& run, std::span<const PushedTensor> pushed) {
  for (const PushedTensor& sent : pushed) {
    const RendezvousKey key = RendezvousKey::parse(sent.key).value();
    TaskLog& log = *options_.log;
    log.add_tensor(log.begin_tensor(LogRecord::What::sent, run.request.step, key, run.client_task()), sent.tensor);
  }
}

void Worker::cancel_runs(FunctionRef<bool(const Run&)> is_meant, const Status& why) {
  std::vector<std::shared_ptr<StepHandle>> handles;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [step, run] : running_) {
      if (run->handle != nullptr && is_meant(*run)) handles.push_back(run->handle);
    }
  }
  for (const std::shared_ptr<StepHandle>& handle : handles) handle->cancel(why);
}

void Worker::cancel_step(const CancelStep& cancel) {
  const Status why = cancel.why.ok() ? Status::cancelled("the step was cancelled") : cancel.why;
  std::vector<std::shared_ptr<StepHandle>> handles;
  {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = running_.equal_range(cancel.step);
    for (auto run = begin; run != end; ++run) {
      if (run->second->handle != nullptr) handles.push_back(run->second->handle);
    }
  }
  for (const std::shared_ptr<StepHandle>& handle : handles) handle->cancel(why);
  options_.steps->cancel(cancel.step, why);
}

void Worker::lose_tensors_of(const TaskIdentity& peer, std::uint64_t mark, const Status& why) {
  options_.steps->cancel_waits_for(peer.task, peer.incarnation, mark, why.with_task(peer.task));
}

void Worker::stop(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_.ok()) return;
    stopped_ = why;
  }
  cancel_runs([](const Run&) { return true; }, why);
  options_.steps->cancel_all(why);
}

detail::SessionCount Worker::count_sessions() const {
  const std::lock_guard lock(mutex_);
  return sessions_.count();
}

TaskStatus Worker::status() const {
  const Clock::time_point now = options_.clock->now();
  const auto age_ns = [&](Clock::time_point since) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now - since).count();
  };
  TaskStatus status;
  status.task = options_.task;
  status.incarnation = options_.incarnation;
  status.age_ns = age_ns(began_);
  for (const std::shared_ptr<Device>& device : options_.devices) status.devices.push_back(device->name());
  std::vector<std::shared_ptr<ClientShares>> sessions;
  {
    const std::lock_guard lock(mutex_);
    status.num_sessions = sessions_.size();
    for (const auto& [visit, of_client] : sessions_.by_visit()) {
      for (const auto& [number, session] : of_client) {
        if (sessions.size() == TaskStatus::max_entries) break;
        status.sessions.push_back({visit.task, visit.incarnation, number, 0});
        sessions.push_back(session);
      }
    }
    status.num_steps = running_.size();
    std::vector<const Run*> oldest;
    oldest.reserve(running_.size());
    for (const auto& [step, run] : running_) oldest.push_back(run.get());
    const auto shown = oldest.begin() + static_cast<std::ptrdiff_t>(std::min(oldest.size(), TaskStatus::max_entries));
    std::partial_sort(oldest.begin(), shown, oldest.end(), [](const Run* a, const Run* b) {
      return std::pair(a->began, a->request.step) < std::pair(b->began, b->request.step);
    });
    oldest.erase(shown, oldest.end());
    status.steps.reserve(oldest.size());
    for (const Run* const run : oldest) {
      status.steps.push_back(
          {run->request.step, std::string(run->client_task()), run->request.name.share, age_ns(run->began)});
    }
  }
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    const std::lock_guard lock(sessions[i]->mutex);
    status.sessions[i].num_shares = sessions[i]->shares.size();
  }
  status.num_waits = options_.steps->num_waits();
  for (const StepTable::Wait& wait : options_.steps->waits(TaskStatus::max_entries)) {
    status.waits.push_back(describe(wait));
  }
  return status;
}

TaskStatus::Wait describe(const StepTable::Wait& wait) {
  const std::string& text = wait.key.text();
  return {wait.step, std::string(wait.key.tensor_name()), std::string(wait.key.source_device()),
          std::string(wait.key.destination_device()), text.substr(text.rfind(';') + 1)};
}

// ---- tensors ----

Outgoing tensor_reply(AnyTensor tensor, bool is_dead) {
  if (is_dead) return {to_body(TensorHead{true, DType::invalid, {}}), {}};
  detail::check_travels(tensor);
  Outgoing reply;
  reply.body = to_body(TensorHead{false, tensor.dtype(), tensor.shape()});
  if (tensor.dtype() == DType::string) {
    auto bytes = std::make_shared<const std::string>(encode_strings(tensor));
    reply.payload.parts.push_back(detail::as_byte_span(*bytes));
    reply.payload.owner = std::move(bytes);
  } else if (tensor.bytes() != 0) {
    reply.payload.parts.push_back({static_cast<const std::byte*>(tensor.raw_data()), tensor.bytes()});
    reply.payload.owner = std::make_shared<const AnyTensor>(std::move(tensor));
  }
  return reply;
}

namespace detail {

/// Whether it takes long to write the strings of a tensor into a message.
bool has_long_text(const AnyTensor& tensor) {
  if (tensor.dtype() != DType::string) return false;
  std::size_t bytes = 0;
  for (const std::string& text : tensor.span<std::string>()) {
    bytes += 1 + text.size();
    if (bytes > max_io_thread_bytes) return true;
  }
  return false;
}

/// A tensor that was asked for, while there is a log.
struct LoggedSend {
  LogRecord record;
  std::shared_ptr<TaskLog> log;
};

/// Charges the tensor to its client until the last handle to it is gone. Errors: ResourceExhausted.
Status charge(const RendezvousKey& key, AnyTensor& tensor, std::shared_ptr<ByteBudget> budget) {
  if (budget == nullptr) return {};
  ByteCharge charge(std::move(budget));
  if (Status full = charge.add(waiting_bytes(key, tensor)); !full.ok()) return full;
  if (!tensor.is_initialized()) tensor = AnyTensor(DType::uint8, Shape({0}));  // of a dead one
  const DType dtype = tensor.dtype();
  const Shape shape = tensor.shape();
  void* const data = tensor.raw_data();
  const std::size_t bytes = tensor.bytes();
  tensor = AnyTensor::adopt(dtype, shape, data, bytes, [kept = std::move(tensor), charge = std::move(charge)] {});
  return {};
}
}  // namespace detail

/// An error of the tensor ends the step: nobody else would hear of it. Strings are charged before they are made: they
/// take far more memory than the bytes of the request.
void Worker::take_tensor(const Visit& visit, const Incoming& request) {
  const auto [step, strings] = PushTensor::step_and_strings(request.body);
  ByteCharge making(request.budget);
  if (Status full = making.add(strings * sizeof(std::string)); !full.ok()) return options_.steps->cancel(step, full);
  PushTensor push = from_body<PushTensor>(request.body);
  making.release();
  const RendezvousKey key = RendezvousKey::parse(push.tensor.key).value();
  Status status;
  const Visit::Id& sender = visit.id();
  if (detail::task_of(key.source_device()) != sender.task || key.source_incarnation() != sender.incarnation) {
    status = Status::invalid_argument(str_cat("'", push.tensor.key, "' is not ", sender.task, "'s to send"));
  } else {
    status = detail::charge(key, push.tensor.tensor, request.budget);
    if (status.ok())
      status = options_.steps->take(push.step, visit.owner(), key, push.tensor.tensor, push.tensor.is_dead);
  }
  // Its end may have been told before it was taken.
  if (visit.is_over()) options_.steps->cancel_all_of(visit.owner(), Status::unavailable("the connection has ended"));
  if (logs()) {
    TaskLog& log = *options_.log;
    log.add_tensor(log.begin_tensor(LogRecord::What::received, push.step, key, sender.task), push.tensor.tensor,
                   status.code());
  }
  if (!status.ok()) options_.steps->cancel(push.step, status);
}

void Worker::receive_tensor(const Incoming& request, Responder& respond) {
  const ReceiveTensor receive = from_body<ReceiveTensor>(request.body);
  const RendezvousKey key = RendezvousKey::parse(receive.key).value();
  if (detail::task_of(key.source_device()) != options_.task) {
    throw_error(Status::invalid_argument(str_cat("'", receive.key, "' is not sent by ", options_.task)));
  }
  if (key.source_incarnation() != options_.incarnation) {
    throw_error(Status::aborted(str_cat(options_.task, " has been started anew: it is no longer the one that '",
                                        key.tensor_name(), "' was to come from")));
  }
  std::unique_ptr<detail::LoggedSend> logged;
  if (logs()) {
    logged = std::make_unique<detail::LoggedSend>();
    logged->log = options_.log;
    logged->record =
        options_.log->begin_tensor(LogRecord::What::sent, receive.step, key, detail::task_of(key.destination_device()));
  }
  options_.steps->serve(receive.step, key, request.cancellation,
                        [respond = std::move(respond), logged = std::move(logged), pool = options_.pool](
                            Status status, AnyTensor tensor, bool is_dead) mutable {
                          if (logged != nullptr) {
                            logged->log->add_tensor(std::move(logged->record), tensor, status.code());
                          }
                          if (!status.ok()) return respond(std::move(status));
                          const bool is_long = !is_dead && detail::has_long_text(tensor);
                          auto reply = [respond = std::move(respond), tensor = std::move(tensor), is_dead]() mutable {
                            try {
                              respond(tensor_reply(std::move(tensor), is_dead));
                            } catch (...) {
                              respond(status_of_current_exception());
                            }
                          };
                          detail::run_in_pool(is_long ? pool.get() : nullptr, std::move(reply));
                        });
}

}  // namespace dflow::net
