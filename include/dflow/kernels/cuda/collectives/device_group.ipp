#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/collectives/member_collective.hpp>
#include <dflow/kernels/cuda/collectives/device_group.hpp>
#include <dflow/kernels/cuda/memory/cuda_memory.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dflow::cuda {

namespace detail {

DFLOW_INLINE const DeviceCore& core_of(const DeviceContext& device) {
  return static_cast<CudaMemory&>(*device.memory).core();
}

DFLOW_INLINE std::vector<int> numbers_of(std::span<const DeviceCore* const> cores) {
  std::vector<int> numbers;
  for (const DeviceCore* const core : cores) numbers.push_back(core->device());
  return numbers;
}

/// What the library says of devices.
DFLOW_INLINE Status status_of_collective(ErrorCode code, const std::vector<int>& devices, std::string_view doing,
                                         const std::string& why) {
  std::string what = "GPUs";
  for (const int device : devices) what += str_cat(" ", device);
  return status_of(code, str_cat(what, ": ", doing, why.empty() ? "" : ": ", why));
}

/// One complex number is added as two real ones.
constexpr DType part_of(DType dtype) noexcept {
  return dtype == DType::complex64 ? DType::float32 : dtype == DType::complex128 ? DType::float64 : dtype;
}

/// Of what each member gets. Throws InvalidArgument, naming two shapes that should be one.
DFLOW_INLINE Shape result_shape(CollectiveKind kind, std::span<KernelContext* const> members) {
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

DFLOW_INLINE DeviceGroup::DeviceGroup(std::shared_ptr<Driver> driver)
    : driver_(std::move(driver)), library_(*driver_->collectives()) {}

DFLOW_INLINE DeviceGroup::~DeviceGroup() = default;

DFLOW_INLINE DeviceGroup::Counts DeviceGroup::counts() const {
  Counts counts;
  {
    const std::lock_guard lock(mutex_);
    counts = counts_;
  }
  counts.waiting = meetings_.size();
  return counts;
}

DFLOW_INLINE bool DeviceGroup::can_compute(CollectiveKind kind, DType dtype,
                                           std::span<const DeviceContext* const> members) {
  if (kind == CollectiveKind::gather || kind == CollectiveKind::broadcast) {
    if (!is_plain(dtype)) return false;
  } else if (!library_.can_reduce(kind == CollectiveKind::sum ? detail::part_of(dtype) : dtype)) {
    return false;
  }
  std::vector<const DeviceCore*> cores;
  for (const DeviceContext* const member : members) cores.push_back(&detail::core_of(*member));
  std::vector<int> numbers = detail::numbers_of(cores);
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) return false;
  try {
    const std::lock_guard lock(mutex_);
    return find_or_make(cores)->handle != CommunicatorsHandle::none;
  } catch (const Error&) {
    return false;
  }
}

DFLOW_INLINE DeviceGroup::Used::iterator DeviceGroup::find_or_make(std::span<const DeviceCore* const> cores) {
  std::vector<int> devices = detail::numbers_of(cores);
  const auto found =
      std::find_if(used_.begin(), used_.end(), [&](const Communicators& each) { return each.devices == devices; });
  if (found != used_.end()) {
    used_.splice(used_.begin(), used_, found);
    return used_.begin();
  }
  if (used_.size() >= max_communicators) drop(std::prev(used_.end()), false);
  used_.push_front({std::move(devices)});
  Communicators& made = used_.front();
  std::string why;
  const ErrorCode code = library_.make_communicators(made.devices, made.handle, why);
  if (code == ErrorCode::not_supported) {
    made.handle = CommunicatorsHandle::none;
  } else if (code != ErrorCode::ok) {
    const std::vector<int> without = std::move(made.devices);
    used_.pop_front();
    throw_error(detail::status_of_collective(code, without, "connecting them", why));
  } else {
    ++counts_.made;
  }
  return used_.begin();
}

DFLOW_INLINE StreamHandle DeviceGroup::stream_of(const DeviceCore& core) {
  StreamHandle& stream = streams_[&core];
  if (stream == StreamHandle::none) {
    core.require_ok(driver_->create_stream(core.device(), stream), "creating a stream for collectives");
  }
  return stream;
}

DFLOW_INLINE void DeviceGroup::drop(Used::iterator communicators, bool aborts) noexcept {
  if (communicators->handle != CommunicatorsHandle::none) {
    // A device that is lost runs nothing any more, and the others would wait for it.
    const std::vector<int>& devices = communicators->devices;
    for (const auto& [core, stream] : streams_) {
      if (stream == StreamHandle::none || std::find(devices.begin(), devices.end(), core->device()) == devices.end()) {
        continue;
      }
      aborts = aborts || driver_->wait_until_idle(core->device(), stream) != ErrorCode::ok;
    }
    library_.destroy_communicators(communicators->handle, aborts);
  }
  used_.erase(communicators);
}

DFLOW_INLINE void DeviceGroup::leave(const DeviceCore& core) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto each = used_.begin(); each != used_.end();) {
    const auto next = std::next(each);
    if (std::find(each->devices.begin(), each->devices.end(), core.device()) != each->devices.end()) drop(each, false);
    each = next;
  }
  const auto stream = streams_.find(&core);
  if (stream == streams_.end()) return;
  if (stream->second != StreamHandle::none) driver_->destroy_stream(core.device(), stream->second);
  streams_.erase(stream);
}

DFLOW_INLINE void DeviceGroup::arrive(KernelContext& context, AsyncKernel::Done done) {
  meetings_.arrive(context, std::move(done), [this](std::span<KernelContext* const> members) { compute(members); });
}

DFLOW_INLINE void DeviceGroup::compute(std::span<KernelContext* const> contexts) {
  const CollectiveKind kind = contexts.front()->node().attrs_as<MemberCollective>().kind;
  const Shape shape = detail::result_shape(kind, contexts);
  const AnyTensor& first = contexts.front()->input(0);
  CollectiveCall call{kind, first.dtype(), static_cast<std::size_t>(first.num_elements())};
  if (kind == CollectiveKind::sum && is_complex(call.dtype)) {
    call.dtype = detail::part_of(call.dtype);
    call.count *= 2;
  }
  std::vector<const DeviceCore*> cores;
  std::vector<CollectiveMember> members;
  for (KernelContext* const context : contexts) {
    cores.push_back(&detail::core_of(context->device()));
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
  if (call.count != 0) issue(call, cores, members, contexts);
}

DFLOW_INLINE void DeviceGroup::issue(const CollectiveCall& call, std::span<const DeviceCore* const> cores,
                                     std::span<CollectiveMember> members, std::span<KernelContext* const> contexts) {
  const std::lock_guard lock(mutex_);
  const Used::iterator by = find_or_make(cores);
  const std::vector<int> devices = by->devices;
  const auto require = [&](ErrorCode code, std::string_view doing, const std::string& why) {
    if (code != ErrorCode::ok) throw_error(detail::status_of_collective(code, devices, doing, why));
  };
  if (by->handle == CommunicatorsHandle::none) {
    used_.erase(by);  // they were connected when the step was compiled: the next step tries again
    require(ErrorCode::not_supported, "connecting them", {});
  }
  std::string why;
  ErrorCode code = library_.check_communicators(by->handle, why);
  if (code != ErrorCode::ok) drop(by, true);
  require(code, "a collective before this one", why);
  for (std::size_t m = 0; m < cores.size(); ++m) {
    members[m].stream = stream_of(*cores[m]);
    cores[m]->order(members[m].stream, cores[m]->memory_order());
  }
  code = library_.run_collective(by->handle, call, members, why);
  if (code != ErrorCode::ok) drop(by, true);
  ++counts_.issued;
  Status ordered;
  for (std::size_t m = 0; m < cores.size(); ++m) {
    try {
      cores[m]->order(cores[m]->memory_order(), members[m].stream);
    } catch (...) {
      ordered = status_of_current_exception();
      // Where nobody can say when it has been read and written, the memory is not given out again.
      const auto input = std::make_shared<AnyTensor>();
      if (contexts[m]->num_inputs() != 0) *input = contexts[m]->input(0);
      cores[m]->keep(input);
      cores[m]->keep(std::make_shared<AnyTensor>(contexts[m]->output(0)));
    }
  }
  require(code, "computing a collective", why);
  throw_if_error(ordered);
}

}  // namespace dflow::cuda
