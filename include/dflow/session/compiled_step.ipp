#pragma once

#include <dflow/session/compiled_step.hpp>

#include <utility>

namespace dflow {

void CompiledStep::settle() noexcept {
  is_plain_ = parts.size() == 1 && shares.empty() && parts[0].plan->is_sequential() &&
              !parts[0].device->context().is_asynchronous && sends.empty() && receives.empty() && !uses_rendezvous;
}

std::size_t CompiledStep::num_nodes() const noexcept {
  std::size_t count = num_remote_nodes;
  for (const Part& part : parts) count += part.plan->graph().nodes.size();
  return count;
}

Status CompiledStep::explain(Status status) const {
  for (const std::shared_ptr<RemoteShare>& share : shares) status = share->explain(status);
  if (remote != nullptr) status = remote->explain(status);
  return status;
}

std::unique_ptr<CompiledStep::Memory> CompiledStep::take_memory() {
  {
    const std::lock_guard lock(mutex_);
    if (num_idle_ > 0) return std::move(idle_[--num_idle_]);
  }
  auto memory = std::make_unique<Memory>();
  std::size_t num_units = 0;
  for (const Part& part : parts) {
    memory->steps.push_back(std::make_shared<Step>(part.plan));
    num_units += part.plan->units().size();
  }
  if (!parts.empty() || !shares.empty() || remote != nullptr) {
    memory->queue = std::make_shared<UnitQueue>(*pool, num_units, uses_rendezvous || !shares.empty());
  }
  return memory;
}

void CompiledStep::give_back(std::unique_ptr<Memory> memory, bool has_failed) noexcept {
  for (const std::shared_ptr<Step>& step : memory->steps) step->reset(has_failed);
  const std::lock_guard lock(mutex_);
  if (num_idle_ < max_idle) idle_[num_idle_++] = std::move(memory);
}

void CompiledStep::release_idle_memory() {
  std::array<std::unique_ptr<Memory>, max_idle> released;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  released.swap(idle_);
  num_idle_ = 0;
}

void CompiledStep::check_feeds(const FedTensors& tensors) const {
  for (std::size_t i = 0; i < tensors.size(); ++i) check_feed(i, tensors[i]);
}

void CompiledStep::check_feed(std::size_t feed, const AnyTensor& tensor) const {
  const Node& fed = *feeds[feed].node;
  const OutputInfo& info = feeds[feed].info;
  if (tensor.is_initialized() && tensor.dtype() == info.dtype && info.shape.is_compatible_with(tensor.shape())) return;
  const std::string got = tensor.is_initialized() ? str_cat(dtype_name(tensor.dtype()), " ", tensor.shape().to_string())
                                                  : std::string("an empty tensor");
  throw_error(Status::invalid_argument(str_cat("'", feeds[feed].name(), "' carries ", dtype_name(info.dtype), " ",
                                               info.shape.to_string(), ", but is fed ", got))
                  .with_node(fed.op->name, fed.name)
                  .with_location(fed.where));
}

Status CompiledStep::dead_fetch(std::size_t fetch) const {
  const Node& node = *fetched[fetch];
  return Status::invalid_argument("what was fetched is dead: its branch was not taken")
      .with_node(node.op->name, node.name)
      .with_location(node.where);
}

void CompiledStep::feed(Memory& memory, const FedTensors& fed, std::span<AnyTensor> results) const {
  for (const ClientFetch& fetch : known) {
    if (fetch.feed) results[fetch.fetch] = fed[*fetch.feed].deep_copy();
  }
  const std::span<AnyTensor> own = is_plain_ ? fed.own() : std::span<AnyTensor>();
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::vector<std::size_t>& wanted = parts[p].feeds;
    Step& step = *memory.steps[p];
    if (own.empty()) {
      for (std::size_t f = 0; f < wanted.size(); ++f) step.feed(f, fed[wanted[f]]);
    } else {
      for (std::size_t f = 0; f < wanted.size(); ++f) step.feed(f, std::move(own[wanted[f]]));
    }
  }
}

void CompiledStep::fill(StepHandle& handle, Memory& memory, const FedTensors& fed, std::span<AnyTensor> results) const {
  for (const ClientEdge& edge : sends) handle.send_from_client(edge, fed[edge.index]);
  for (const ClientEdge& edge : receives) {
    handle.receive_at_client(
        edge, [&result = results[edge.index]](AnyTensor tensor) { result = std::move(tensor); },
        [this, fetch = edge.index] { return dead_fetch(fetch); });
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    handle.add_part(std::make_shared<LocalPart>(*parts[p].device, memory.steps[p], memory.queue));
  }
  for (const std::shared_ptr<RemoteShare>& share : shares) handle.add_part(share->make_part());
  if (remote == nullptr) return;
  std::vector<AnyTensor> tensors;
  for (std::size_t i = 0; i < fed.size(); ++i) tensors.push_back(fed[i]);
  handle.add_part(remote->make_part(std::move(tensors), results));
}

void CompiledStep::collect(Memory& memory, std::span<AnyTensor> results) const {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (std::size_t f = 0; f < parts[p].fetches.size(); ++f) {
      Step& step = *memory.steps[p];
      if (step.is_fetch_dead(f)) throw_error(dead_fetch(parts[p].fetches[f]));
      step.give_fetch(f, results[parts[p].fetches[f]]);
    }
  }
  for (const ClientFetch& fetch : known) {
    if (!fetch.feed) results[fetch.fetch] = fetch.value.deep_copy();
  }
}

}  // namespace dflow
