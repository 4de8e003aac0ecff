#pragma once

#include <dflow/kernels/cuda/driver/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// Stands in for the model of a driver: CUDA itself, with a count of the calls. Tests that are written for the model
/// then run on the GPUs of this machine.
namespace dflow::testing {

/// The options of the model; CUDA takes its own.
struct FakeDriverOptions {
  int devices = 1;
  std::size_t memory_bytes = 0;
  std::uint64_t seed = 1;
  bool has_cudnn = true;
  bool has_nccl = false;
  bool has_nvrtc = false;
};

/// Thread safety: as Driver.
class FakeDriver final : public cuda::Driver, public cuda::Products, public cuda::Sorts {
 public:
  explicit FakeDriver(FakeDriverOptions options = {})
      : cuda_(cuda::cuda_driver()),
        has_cudnn_(options.has_cudnn),
        has_nccl_(options.has_nccl),
        has_nvrtc_(options.has_nvrtc) {}

  std::vector<std::string> violations() const { return {}; }
  std::string alive() const { return "0 streams, 0 events, 0 blocks, 0 pinned blocks, 0 plans"; }
  std::map<std::string, std::uint64_t> launches() const {
    const std::lock_guard lock(mutex_);
    return launches_;
  }
  std::vector<cuda::ProductCall> products_made() const {
    const std::lock_guard lock(mutex_);
    return products_made_;
  }
  std::uint64_t num_sorts() const {
    const std::lock_guard lock(mutex_);
    return num_sorts_;
  }
  std::uint64_t num_products() const {
    const std::lock_guard lock(mutex_);
    return num_products_;
  }

  using Code = cuda::ErrorCode;
  Code count_devices(int& count) noexcept override { return cuda_->count_devices(count); }
  Code versions(int& driver, int& runtime) noexcept override { return cuda_->versions(driver, runtime); }
  Code properties(int device, cuda::DeviceProperties& properties) noexcept override {
    return cuda_->properties(device, properties);
  }
  Code memory_info(int device, std::size_t& free_bytes, std::size_t& total_bytes) noexcept override {
    return cuda_->memory_info(device, free_bytes, total_bytes);
  }
  Code create_stream(int device, cuda::StreamHandle& stream) noexcept override {
    return cuda_->create_stream(device, stream);
  }
  Code destroy_stream(int device, cuda::StreamHandle stream) noexcept override {
    return cuda_->destroy_stream(device, stream);
  }
  Code create_event(int device, cuda::EventHandle& event) noexcept override {
    return cuda_->create_event(device, event);
  }
  Code destroy_event(int device, cuda::EventHandle event) noexcept override {
    return cuda_->destroy_event(device, event);
  }
  Code record(int device, cuda::EventHandle event, cuda::StreamHandle stream) noexcept override {
    return cuda_->record(device, event, stream);
  }
  Code wait(int device, cuda::StreamHandle stream, cuda::EventHandle event) noexcept override {
    return cuda_->wait(device, stream, event);
  }
  Code query(int device, cuda::EventHandle event) noexcept override { return cuda_->query(device, event); }
  Code wait_until_idle(int device, cuda::StreamHandle stream) noexcept override {
    return cuda_->wait_until_idle(device, stream);
  }
  Code allocate(int device, std::size_t bytes, cuda::StreamHandle stream, void*& block) noexcept override {
    return cuda_->allocate(device, bytes, stream, block);
  }
  Code free(int device, void* block, cuda::StreamHandle stream) noexcept override {
    return cuda_->free(device, block, stream);
  }
  Code allocate_pinned(std::size_t bytes, void*& block) noexcept override {
    return cuda_->allocate_pinned(bytes, block);
  }
  Code free_pinned(void* block) noexcept override { return cuda_->free_pinned(block); }
  Code copy(int device, void* to, const void* from, std::size_t bytes, cuda::CopyKind kind,
            cuda::StreamHandle stream) noexcept override {
    return cuda_->copy(device, to, from, bytes, kind, stream);
  }
  Code copy_peer(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                 cuda::StreamHandle stream) noexcept override {
    return cuda_->copy_peer(to, to_device, from, from_device, bytes, stream);
  }
  Code fill(int device, void* to, int byte, std::size_t bytes, cuda::StreamHandle stream) noexcept override {
    return cuda_->fill(device, to, byte, bytes, stream);
  }
  Code launch(int device, const cuda::KernelFunction& function, cuda::GridShape shape, const void* arguments,
              std::span<const cuda::MemoryUse> uses, cuda::StreamHandle stream) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      ++launches_[function.name];
    }
    return cuda_->launch(device, function, shape, arguments, uses, stream);
  }
  Code call_host(int device, cuda::StreamHandle stream, void (*function)(void* data), void* data) noexcept override {
    return cuda_->call_host(device, stream, function, data);
  }

  Code begin_capture(int device, cuda::StreamHandle stream) noexcept override {
    return cuda_->begin_capture(device, stream);
  }
  Code end_capture(int device, cuda::StreamHandle stream, cuda::GraphHandle* graph) noexcept override {
    return cuda_->end_capture(device, stream, graph);
  }
  Code launch_graph(int device, cuda::GraphHandle graph, cuda::StreamHandle stream) noexcept override {
    return cuda_->launch_graph(device, graph, stream);
  }
  Code destroy_graph(int device, cuda::GraphHandle graph) noexcept override {
    return cuda_->destroy_graph(device, graph);
  }

  cuda::Products& products() noexcept override { return *this; }
  Code make_product_plan(int device, const cuda::ProductCall& call, std::size_t max_workspace_bytes,
                         cuda::ProductPlanHandle& plan, std::size_t& workspace_bytes) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      products_made_.push_back(call);
    }
    return cuda_->products().make_product_plan(device, call, max_workspace_bytes, plan, workspace_bytes);
  }
  Code destroy_product_plan(int device, cuda::ProductPlanHandle plan) noexcept override {
    return cuda_->products().destroy_product_plan(device, plan);
  }
  Code run_product(int device, cuda::ProductPlanHandle plan, const cuda::ProductOperands& operands,
                   std::span<const cuda::MemoryUse> uses, cuda::StreamHandle stream) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      ++num_products_;
    }
    return cuda_->products().run_product(device, plan, operands, uses, stream);
  }

  cuda::Solvers& solvers() noexcept override { return cuda_->solvers(); }
  cuda::Transforms& transforms() noexcept override { return cuda_->transforms(); }
  cuda::Convolutions* convolutions() noexcept override { return has_cudnn_ ? cuda_->convolutions() : nullptr; }
  cuda::Programs* programs() noexcept override { return has_nvrtc_ ? cuda_->programs() : nullptr; }
  cuda::Collectives* collectives() noexcept override { return has_nccl_ ? cuda_->collectives() : nullptr; }

  cuda::Sorts& sorts() noexcept override { return *this; }
  Code sort_workspace(int device, std::int64_t count, std::int32_t key_bits, std::size_t& bytes) noexcept override {
    return cuda_->sorts().sort_workspace(device, count, key_bits, bytes);
  }
  Code sort_pairs(int device, const cuda::SortCall& call, void* workspace, std::size_t workspace_bytes,
                  std::span<const cuda::MemoryUse> uses, cuda::StreamHandle stream) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      ++num_sorts_;
    }
    return cuda_->sorts().sort_pairs(device, call, workspace, workspace_bytes, uses, stream);
  }

 private:
  const std::shared_ptr<cuda::Driver> cuda_;
  const bool has_cudnn_;
  const bool has_nccl_;
  const bool has_nvrtc_;
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> launches_;
  std::vector<cuda::ProductCall> products_made_;
  std::uint64_t num_products_ = 0, num_sorts_ = 0;
};

}  // namespace dflow::testing
