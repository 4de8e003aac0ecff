#pragma once

#include <dflow/net/protocol/call.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/net/tasks/peer_tensors.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace dflow::net {

namespace detail {

/// A tensor on its way from another task into the memory where it is wanted.
struct ReceivedTensor {
  RecvArgs args;
  Rendezvous::RecvDone done;
  std::string key;
  AnyTensor tensor;
  std::shared_ptr<char[]> strings;
  std::uint64_t strings_bytes = 0;

  TensorHead check_head(std::string_view body) const {
    TensorHead head = from_body<TensorHead>(body);
    if (head.is_dead || args.dtype == DType::invalid ||
        (head.dtype == args.dtype && args.shape.is_compatible_with(head.shape))) {
      return head;
    }
    throw_error(Status::invalid_argument(str_cat("received ", dtype_name(head.dtype), head.shape.to_string(), " as '",
                                                 key, "', wanted ", dtype_name(args.dtype), args.shape.to_string())));
  }

  /// The memory has owners of its own: the connection may still write there when the receive has been given up.
  PayloadMemory place(std::string_view body, std::uint64_t size) {
    const TensorHead head = check_head(body);
    if (head.is_dead) throw_error(Status::data_loss(str_cat("the dead tensor '", key, "' has elements")));
    if (head.dtype == DType::string) {
      if (static_cast<std::uint64_t>(head.shape.num_elements()) > size) {
        throw_error(Status::data_loss(str_cat("'", key, "' has fewer strings than its shape says")));
      }
      strings = std::make_shared_for_overwrite<char[]>(size);  // untouched, it takes none before it comes
      strings_bytes = size;
      return {std::as_writable_bytes(std::span(strings.get(), size)), strings};
    }
    if (num_bytes(head.dtype, head.shape) != size) {
      throw_error(Status::data_loss(
          str_cat("'", key, "' comes as ", dtype_name(head.dtype), head.shape.to_string(), " of ", size, " bytes")));
    }
    Allocator& allocator = args.allocator == nullptr ? default_cpu_allocator() : *args.allocator;
    tensor = AnyTensor(head.dtype, head.shape, allocator);
    return {{static_cast<std::byte*>(tensor.raw_data()), size}, std::make_shared<AnyTensor>(tensor)};
  }

  /// Bytes that `finish` looks at one by one.
  std::uint64_t bytes_to_read() const noexcept {
    const bool is_checked = tensor.is_initialized() && tensor.dtype() == DType::boolean;
    return strings_bytes + (is_checked ? tensor.bytes() : 0);
  }

  void finish(Status status, std::string_view body) {
    bool is_dead = false;
    try {
      if (status.ok()) {
        const TensorHead head = check_head(body);
        is_dead = head.is_dead;
        if (!is_dead && !tensor.is_initialized()) {
          if (head.shape.num_elements() != 0 && strings == nullptr) {
            throw_error(Status::data_loss(str_cat("'", key, "' comes without its elements")));
          }
          tensor = AnyTensor(head.dtype, head.shape);
          if (strings != nullptr) decode_strings({strings.get(), strings_bytes}, tensor);
        }
        if (!is_dead) check_elements(tensor);
      }
    } catch (...) {
      status = status_of_current_exception();
    }
    if (!status.ok() || is_dead) tensor.reset();
    done(std::move(status), std::move(tensor), is_dead);
  }
};

}  // namespace detail

void PeerTensors::receive(const std::string& task, std::uint64_t step, const RendezvousKey& key, const RecvArgs& args,
                          CancellationToken cancellation, Rendezvous::RecvDone done) {
  const auto received = std::make_shared<detail::ReceivedTensor>();
  received->args = args;
  if (options_.log != nullptr && options_.log->is_on()) {
    LogRecord record = options_.log->begin_tensor(LogRecord::What::received, step, key, task);
    done = [done = std::move(done), log = options_.log, record = std::move(record)](Status status, AnyTensor tensor,
                                                                                    bool is_dead) mutable {
      log->add_tensor(std::move(record), tensor, status.code());
      done(std::move(status), std::move(tensor), is_dead);
    };
  }
  received->done = std::move(done);
  received->key = key.tensor_name();
  const bool is_small = args.shape.is_fully_defined() && args.dtype != DType::invalid && args.dtype != DType::string &&
                        static_cast<std::uint64_t>(args.shape.to_shape().num_elements()) <=
                            options_.small_tensor_bytes / size_of(args.dtype);
  Call call = detail::make_call(Method::receive_tensor, to_body(ReceiveTensor{step, key.text()}));
  call.cancellation = std::move(cancellation);
  call.place_payload = [received](std::string_view body, std::uint64_t size) -> StatusOr<PayloadMemory> {
    try {
      return received->place(body, size);
    } catch (...) {
      return status_of_current_exception();
    }
  };
  options_.peers->call(task, is_small ? Channel::control : Channel::data, std::move(call),
                       [received, pool = options_.pool](Status status, std::string body) {
                         const bool is_long = received->bytes_to_read() > detail::max_io_thread_bytes;
                         detail::run_in_pool(is_long ? pool.get() : nullptr,
                                             [received, status = std::move(status), body = std::move(body)]() mutable {
                                               received->finish(std::move(status), body);
                                             });
                       });
}

void PeerTensors::push(const std::string& task, std::uint64_t step, const RendezvousKey& key, const AnyTensor& tensor,
                       bool is_dead, UniqueFunction<bool()> is_wanted, UniqueFunction<void(Status)> failed) {
  constexpr auto method = static_cast<std::uint16_t>(Method::push_tensor);
  std::string body = to_body(PushTensor{step, {key.text(), is_dead, tensor}});
  if (options_.log != nullptr && options_.log->is_on()) {
    options_.log->add_tensor(options_.log->begin_tensor(LogRecord::What::sent, step, key, task), tensor);
  }
  // The step's part here may be over by then, so the other task is told of a failure, too.
  if (const std::shared_ptr<Connection> open = options_.peers->find(task, Channel::control)) {
    const Status status = open->post(method, std::move(body), step, std::move(is_wanted));
    if (!status.ok()) recall(task, {step}, status), failed(status);
    return;
  }
  options_.peers->connect(
      task, Channel::control, {},
      [self = shared_from_this(), task, step, body = std::move(body), is_wanted = std::move(is_wanted),
       failed = std::move(failed)](Status status, const std::shared_ptr<Connection>& connection) mutable {
        if (status.ok()) status = connection->post(method, std::move(body), step, std::move(is_wanted));
        if (!status.ok()) self->recall(task, {step}, status), failed(status);
      });
}

void PeerTensors::recall(const std::string& task, std::vector<std::uint64_t> steps, const Status& why) {
  const Status lost =
      Status::unavailable(str_cat("tensors of the step may be lost: ", why.message())).with_task(options_.task);
  attempt_recall(
      {task, std::move(steps), lost, options_.clock->after(options_.recall_timeout), options_.peers->backoff()});
}

/// False if it goes along with one that waits for a connection with the task: a task may be away while many steps fail.
bool PeerTensors::begin_recall(const Recall& recall) {
  constexpr std::size_t most_steps = 32768;
  const std::lock_guard lock(mutex_);
  const auto [found, is_first] = recalls_.try_emplace(recall.task, recall);
  if (is_first) return true;
  Recall& waiting = found->second;
  for (const std::uint64_t step : recall.steps) {
    if (waiting.steps.empty() || waiting.steps.back() != step) waiting.steps.push_back(step);
  }
  if (waiting.steps.size() > most_steps) {  // the oldest ones go
    waiting.steps.erase(waiting.steps.begin(), waiting.steps.begin() + most_steps / 4);
  }
  waiting.until = std::max(waiting.until, recall.until);
  return false;
}

/// Empty if none waits.
PeerTensors::Recall PeerTensors::take_recall(const std::string& task) {
  const std::lock_guard lock(mutex_);
  auto taken = recalls_.extract(task);
  return taken ? std::move(taken.mapped()) : Recall{task, {}, {}, {}, options_.peers->backoff()};
}

void PeerTensors::attempt_recall(const Recall& recall) {
  if (!begin_recall(recall)) return;
  const auto connected = [weak = weak_from_this(), task = recall.task, until = recall.until](
                             const Status&, const std::shared_ptr<Connection>& connection) {
    const std::shared_ptr<PeerTensors> self = weak.lock();
    if (self == nullptr) return;
    const Recall due = self->take_recall(task);
    if (connection != nullptr) return self->send_recall(connection, due);
    if (due.until > until) self->attempt_recall(due);  // for steps that have come later
  };
  try {
    options_.peers->connect(recall.task, Channel::control, recall.until, connected);
  } catch (...) {
    take_recall(recall.task);
    throw;
  }
}

void PeerTensors::send_recall(const std::shared_ptr<Connection>& connection, const Recall& recall) {
  for (const std::uint64_t step : recall.steps) {
    Call call = detail::make_call(Method::cancel_step, to_body(CancelStep{step, recall.lost}));
    const Recall again{recall.task, {step}, recall.lost, recall.until, recall.backoff};
    connection->call(std::move(call), [weak = weak_from_this(), again](const Status& status, const std::string&) {
      const std::shared_ptr<PeerTensors> self = weak.lock();
      if (self != nullptr && status.code() == Code::unavailable) self->recall_later(again);
    });
  }
}

/// The connection has ended before the peer has answered.
void PeerTensors::recall_later(Recall recall) {
  Clock& clock = *options_.clock;
  if (clock.now() >= recall.until) return;
  const Duration pause = recall.backoff.next(options_.random());
  clock.schedule_after(pause, [weak = weak_from_this(), recall = std::move(recall)] {
    if (const std::shared_ptr<PeerTensors> self = weak.lock()) self->attempt_recall(recall);
  });
}

}  // namespace dflow::net
