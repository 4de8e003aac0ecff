#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/device_group.hpp>
#include <dflow/ops/internal/member_collective.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace dflow::cuda {

namespace detail {

CudaMemory& memory_of(const DeviceContext& device) { return static_cast<CudaMemory&>(*device.memory); }

std::vector<int> numbers_of(std::span<CudaMemory* const> memories) {
  std::vector<int> numbers;
  numbers.reserve(memories.size());
  for (CudaMemory* const memory : memories) numbers.push_back(memory->core().device());
  return numbers;
}

/// The status for an error of the library, or the driver, that names the devices.
Status status_of_collective(ErrorCode code, const std::vector<int>& devices, std::string_view doing,
                            const std::string& why) noexcept {
  try {
    std::string what = "GPUs";
    for (const int device : devices) what += str_cat(" ", device);
    return cuda::status_of(code, str_cat(what, ": ", doing, why.empty() ? "" : ": ", why));
  } catch (...) {
    return status_of_current_exception();
  }
}

/// Returns memory that is kept for reuse, and waits until the driver has seen that.
void make_way(std::span<CudaMemory* const> memories) {
  for (CudaMemory* const memory : memories) {
    memory->allocator().reclaim();
    memory->core().driver().wait_until_idle(memory->core().device(), memory->core().memory_order());
  }
}

/// A complex number is added as two real numbers.
constexpr DType part_of(DType dtype) noexcept {
  return dtype == DType::complex64 ? DType::float32 : dtype == DType::complex128 ? DType::float64 : dtype;
}

/// The shape of each member's result. Throws InvalidArgument, naming two shapes that should be one.
Shape result_shape(CollectiveKind kind, std::span<KernelContext* const> members) {
  const Shape& first = members.front()->input(0).shape();
  if (kind == CollectiveKind::broadcast) return first;
  for (std::size_t m = 1; m < members.size(); ++m) {
    const Shape& other = members[m]->input(0).shape();
    if (other == first) continue;
    members[m]->fail(str_cat("the members' values have different shapes: value 0 ", first.to_string(), ", value ", m,
                             " ", other.to_string()));
  }
  if (kind != CollectiveKind::gather) return first;
  std::vector<std::int64_t> dims(first.begin(), first.end());
  dims.front() *= static_cast<std::int64_t>(members.size());
  return Shape(dims);
}

}  // namespace detail

std::shared_ptr<DeviceGroup> DeviceGroup::of(const std::shared_ptr<Driver>& driver) {
  if (driver->collectives() == nullptr) return nullptr;
  struct Groups {
    std::mutex mutex;
    std::map<Driver*, std::weak_ptr<DeviceGroup>> by_driver;
  };
  static Groups& groups = *new Groups;  // never destroyed: devices may come and go while a program ends
  const std::lock_guard lock(groups.mutex);
  std::erase_if(groups.by_driver, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<DeviceGroup>& place = groups.by_driver[driver.get()];
  std::shared_ptr<DeviceGroup> group = place.lock();
  if (group == nullptr) {
    group.reset(new DeviceGroup(driver));
    place = group;
  }
  return group;
}

DeviceGroup::DeviceGroup(std::shared_ptr<Driver> driver)
    : driver_(std::move(driver)), library_(*driver_->collectives()) {}

DeviceGroup::~DeviceGroup() = default;

DeviceGroup::Counts DeviceGroup::counts() const {
  Counts counts;
  {
    const std::lock_guard lock(mutex_);
    counts = counts_;
  }
  counts.waiting = meetings_.size();
  return counts;
}

bool DeviceGroup::can_compute(CollectiveKind kind, DType dtype, std::span<const DeviceContext* const> members) {
  if (kind == CollectiveKind::gather || kind == CollectiveKind::broadcast) {
    if (!is_plain(dtype)) return false;
  } else if (!library_.can_reduce(kind == CollectiveKind::sum ? detail::part_of(dtype) : dtype)) {
    return false;
  }
  std::vector<CudaMemory*> memories;
  memories.reserve(members.size());
  for (const DeviceContext* const member : members) memories.push_back(&detail::memory_of(*member));
  std::vector<int> numbers = detail::numbers_of(memories);
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) return false;
  try {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Communicators> by = connect(lock, memories);
    const std::lock_guard lock_of_connection(by->mutex);
    return by->handle != CommunicatorsHandle::none;
  } catch (const Error&) {
    return false;
  }
}

/// With the lock held; it may be released meanwhile.
std::shared_ptr<DeviceGroup::Communicators> DeviceGroup::connect(std::unique_lock<std::mutex>& lock,
                                                                 std::span<CudaMemory* const> memories) {
  const std::vector<int> devices = detail::numbers_of(memories);
  try {
    return find_or_make(devices);
  } catch (const Error& error) {
    if (error.code() != Code::resource_exhausted) throw;
  }
  // The library takes memory of its own.
  lock.unlock();
  detail::make_way(memories);
  lock.lock();
  return find_or_make(devices);
}

std::shared_ptr<DeviceGroup::Communicators> DeviceGroup::find_or_make(const std::vector<int>& devices) {
  const auto found =
      std::find_if(used_.begin(), used_.end(), [&](const auto& each) { return each->devices == devices; });
  // Steps may hold an earlier connection that has ended.
  auto made = std::make_shared<Communicators>(devices);
  if (found != used_.end()) {
    used_.splice(used_.begin(), used_, found);
    std::shared_ptr<Communicators> last = used_.front();
    const std::lock_guard lock(last->mutex);
    if (check(*last) || last->refusals >= max_refusals) return last;
    made->refusals = last->refusals;
    used_.front() = made;
  } else {
    if (used_.size() >= max_communicators) {
      disconnect(*used_.back());
      used_.pop_back();
    }
    used_.push_front(made);
  }
  std::string why;
  const ErrorCode code = library_.make_communicators(devices, made->handle, why);
  if (code == ErrorCode::ok) {
    ++counts_.made;
    made->refusals = 0;
    return made;
  }
  made->handle = CommunicatorsHandle::none;
  if (code == ErrorCode::not_supported) {
    made->refusals = max_refusals;
    return made;
  }
  if (code != ErrorCode::out_of_memory) ++made->refusals;
  throw_error(detail::status_of_collective(code, devices, "connecting them", why));
}

DeviceGroup::MemberStream& DeviceGroup::stream_of(const DeviceCore& core) {
  MemberStream& of = streams_[core.device()];
  if (of.stream == StreamHandle::none) {
    core.require_ok(driver_->create_stream(core.device(), of.stream), "creating a stream for collectives");
  }
  if (of.passed == EventHandle::none) {
    core.require_ok(driver_->create_event(core.device(), of.passed), "creating an event of collectives");
  }
  return of;
}

/// Whether the devices are connected and no error was found since. With its mutex held.
bool DeviceGroup::check(Communicators& by) noexcept {
  if (by.handle == CommunicatorsHandle::none) return false;
  std::string why;
  const ErrorCode code = library_.check_communicators(by.handle, why);
  if (code == ErrorCode::ok) return true;
  end(by, detail::status_of_collective(code, by.devices, "a collective", why), 0);
  return false;
}

/// Ends the connection and the collectives in progress on it, with error `failure` for collectives from number `from`
/// on. With its mutex held.
void DeviceGroup::end(Communicators& by, Status failure, std::uint64_t from) noexcept {
  if (by.handle == CommunicatorsHandle::none) return;
  by.failure = std::move(failure);
  by.fails_from = from;
  library_.destroy_communicators(by.handle, true);
  by.handle = CommunicatorsHandle::none;
}

/// The status of the collective with number `number`, when a member's work is done, or has ended with an error. If the
/// member's GPU is lost, the connection is ended, since the other members would wait for it for ever.
Status DeviceGroup::status_of(Communicators& by, std::uint64_t number, ErrorCode work) {
  const std::lock_guard lock(by.mutex);
  if (is_sticky(work)) {
    end(by, detail::status_of_collective(work, by.devices, "the work of one of them", {}), 0);
  } else {
    check(by);
  }
  return number < by.fails_from ? Status() : by.failure;
}

/// ok when all work given to these GPUs is done; not_ready if it is not done by `until`; else the error of one of the
/// GPUs.
ErrorCode DeviceGroup::wait(const std::vector<int>& devices, Time until) const noexcept {
  for (;;) {
    ErrorCode found = ErrorCode::ok;
    for (const int device : devices) {
      const auto of = streams_.find(device);
      if (of == streams_.end() || of->second.passed == EventHandle::none) continue;
      const ErrorCode code = of->second.is_recorded ? driver_->query(device, of->second.passed) : ErrorCode::unknown;
      if (code != ErrorCode::ok && code != ErrorCode::not_ready) return code;
      if (code != ErrorCode::ok) found = code;
    }
    if (found == ErrorCode::ok || std::chrono::steady_clock::now() > until) return found;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Waits until the work issued by the connection is done; ends the connection if it will never be done.
void DeviceGroup::settle(Communicators& by) noexcept {
  for (;;) {
    const ErrorCode code = wait(by.devices, std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
    const std::lock_guard lock(by.mutex);
    if (!check(by) || code == ErrorCode::ok) return;
    if (code == ErrorCode::not_ready) continue;
    return end(by, detail::status_of_collective(code, by.devices, "the work of one of them", {}), 0);
  }
}

void DeviceGroup::disconnect(Communicators& by) noexcept {
  settle(by);
  const std::lock_guard lock(by.mutex);
  if (by.handle == CommunicatorsHandle::none) return;
  library_.destroy_communicators(by.handle, false);
  by.handle = CommunicatorsHandle::none;
}

void DeviceGroup::join(const DeviceCore& core) {
  const std::lock_guard lock(mutex_);
  ++streams_[core.device()].seats;
}

void DeviceGroup::leave(const DeviceCore& core) noexcept {
  const std::lock_guard lock(mutex_);
  const auto of = streams_.find(core.device());
  const bool is_last = --of->second.seats == 0;
  std::erase_if(used_, [&](const std::shared_ptr<Communicators>& each) {
    if (std::find(each->devices.begin(), each->devices.end(), core.device()) == each->devices.end()) return false;
    is_last ? disconnect(*each) : settle(*each);
    return is_last;
  });
  // Nothing on the stream waits for another GPU any more; ended work may still be stopping.
  if (of->second.stream != StreamHandle::none) driver_->wait_until_idle(core.device(), of->second.stream);
  if (!is_last) return;
  if (of->second.passed != EventHandle::none) driver_->destroy_event(core.device(), of->second.passed);
  if (of->second.stream != StreamHandle::none) driver_->destroy_stream(core.device(), of->second.stream);
  streams_.erase(of);
}

void DeviceGroup::arrive(KernelContext& context, AsyncKernel::Done done) {
  meetings_.arrive(context, std::move(done), [this](std::span<KernelContext* const> members) { compute(members); });
}

void DeviceGroup::compute(std::span<KernelContext* const> contexts) {
  const CollectiveKind kind = contexts.front()->node().attrs_as<MemberCollective>().kind;
  const Shape shape = detail::result_shape(kind, contexts);
  const AnyTensor& first = contexts.front()->input(0);
  CollectiveCall call{kind, first.dtype(), static_cast<std::size_t>(first.num_elements())};
  if (kind == CollectiveKind::sum && is_complex(call.dtype)) {
    call.dtype = detail::part_of(call.dtype);
    call.count *= 2;
  }
  std::vector<CudaMemory*> memories;
  memories.reserve(contexts.size());
  std::vector<CollectiveMember> members;
  members.reserve(contexts.size());
  for (KernelContext* const context : contexts) {
    memories.push_back(&detail::memory_of(context->device()));
    CollectiveMember& member = members.emplace_back();
    if (context->num_inputs() != 0) member.from = context->input(0).raw_data();
    if (kind == CollectiveKind::broadcast && members.size() == 1) {
      // It has it, and others may read it.
      context->set_output(0, first);
      member.to = const_cast<void*>(member.from);
    } else if (kind == CollectiveKind::gather || kind == CollectiveKind::broadcast) {
      member.to = context->allocate_output(0, shape).raw_data();
    } else {
      member.to = context->forward_or_allocate(0, 0, shape).raw_data();
    }
  }
  if (call.count != 0) issue(call, memories, members, contexts);
}

void DeviceGroup::issue(const CollectiveCall& call, std::span<CudaMemory* const> memories,
                        std::span<CollectiveMember> members, std::span<KernelContext* const> contexts) {
  Status status;
  ErrorCode code = ErrorCode::ok;
  {
    std::unique_lock lock(mutex_);
    code = issue(lock, call, memories, members, contexts, status);
  }
  // The next step may find it.
  if (code == ErrorCode::out_of_memory) detail::make_way(memories);
  throw_if_error(status);
}

ErrorCode DeviceGroup::issue(std::unique_lock<std::mutex>& lock, const CollectiveCall& call,
                             std::span<CudaMemory* const> memories, std::span<CollectiveMember> members,
                             std::span<KernelContext* const> contexts, Status& status) {
  const std::shared_ptr<Communicators> by = connect(lock, memories);
  const std::lock_guard lock_of_connection(by->mutex);
  if (by->handle == CommunicatorsHandle::none) {
    by->refusals = 0;  // they were connected when the step was compiled: the next step tries again
    throw_if_error(by->failure);
    throw_error(detail::status_of_collective(ErrorCode::not_supported, by->devices, "connecting them", {}));
  }
  const std::uint64_t number = ++last_number_;
  std::vector<ErrorCode> ordered(members.size(), ErrorCode::ok);
  try {
    for (std::size_t m = 0; m < members.size(); ++m) {
      const DeviceCore& core = memories[m]->core();
      members[m].stream = stream_of(core).stream;
      core.order(members[m].stream, core.memory_order());
      step_of(*contexts[m])
          .check_at_end(contexts[m]->node(), by, [self = shared_from_this(), by, number](ErrorCode work) {
            return self->status_of(*by, number, work);
          });
    }
  } catch (...) {
    const ErrorCode found = wait(by->devices, Time::min());
    if (is_sticky(found)) {
      end(*by, detail::status_of_collective(found, by->devices, "the work of one of them", {}), 0);
    }
    throw;
  }
  std::string why;
  const ErrorCode code = library_.run_collective(by->handle, call, members, why);
  if (code != ErrorCode::ok) {
    status = detail::status_of_collective(code, by->devices, "computing a collective", why);
    const bool have_ended = wait(by->devices, std::chrono::steady_clock::now() + patience) == ErrorCode::ok;
    end(*by, status, have_ended ? number : 0);
  } else {
    ++counts_.issued;
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    const DeviceCore& core = memories[m]->core();
    MemberStream& of = stream_of(core);
    ordered[m] = driver_->record(core.device(), of.passed, of.stream);
    of.is_recorded = ordered[m] == ErrorCode::ok;
    if (of.is_recorded) ordered[m] = driver_->wait(core.device(), core.memory_order(), of.passed);
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (ordered[m] == ErrorCode::ok) continue;
    if (status.ok()) status = memories[m]->core().status_of(ordered[m], "ordering a collective");
    // If nobody can say when the memory has been read and written, it is not given out again.
    const auto input = std::make_shared<AnyTensor>();
    if (contexts[m]->num_inputs() != 0) *input = contexts[m]->input(0);
    memories[m]->core().keep(input);
    memories[m]->core().keep(std::make_shared<AnyTensor>(contexts[m]->output(0)));
  }
  return code;
}

}  // namespace dflow::cuda
