#pragma once

#include "cuda/fake_collectives.hpp"
#include "cuda/fake_convolutions.hpp"
#include "cuda/fake_programs.hpp"

#include <dflow/base/unique_function.hpp>
#include <dflow/kernels/cuda/driver/driver.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow::testing {

struct FakeDriverOptions {
  int devices = 1;
  std::size_t memory_bytes = std::size_t{1} << 24;  ///< of each device
  std::uint64_t seed = 1;                           ///< of the order in which streams make progress
  int driver_version = 13000;
  int runtime_version = 13000;
  bool has_cudnn = true;
  bool has_nccl = false;          ///< devices of one group compute collectives together
  bool has_nvrtc = false;         ///< chains of elementwise ops become kernels
  bool loses_one = false;         ///< an error that sticks takes the device that had it, and not all
  bool holds_host_calls = false;  ///< the host is called by `make_held_host_calls` alone
};

/// True if the declared uses cover all memory that a library's call touches.
bool is_said(const cuda::MemoryUse& touched, std::span<const cuda::MemoryUse> uses);

/// A model of CUDA's runtime that runs on the host. A thread of its own works off the streams in an order that a seed
/// chooses, the emulated grid runs the kernels, and only issued work can touch the memory.
///
/// It checks the order of each call when the call is made, and reports:
/// - a block that is used on two streams without an event between them,
/// - a block that goes back while another stream may use it,
/// - a copy from memory that is not pinned,
/// - pinned memory that goes back before any thread has seen that its copy is done,
/// - streams that wait for each other for ever, and objects that are still alive at the end.
///
/// Work that is issued to a stream that captures becomes part of a graph, and must be work of that stream and of that
/// thread alone. Products, convolutions and decompositions are checked when the libraries are asked for them, and
/// computed on the host as they were recorded.
///
/// Thread safety: as Driver.
class FakeDriver final : public cuda::Driver,
                         public cuda::Products,
                         public cuda::Sorts,
                         public cuda::Solvers,
                         public cuda::Transforms {
 public:
  explicit FakeDriver(FakeDriverOptions options = {});
  ~FakeDriver() override;

  /// All violations so far, one line each.
  std::vector<std::string> violations() const;
  /// All objects that are alive: streams, events, blocks, pinned blocks, plans and communicators of libraries, and
  /// graphs.
  std::string alive() const;
  bool is_idle() const;
  /// After an error that sticks, nothing runs any more.
  bool is_lost() const;

  std::uint64_t num_calls() const;
  std::map<std::string, std::uint64_t> launches() const;  ///< by the function's name
  std::vector<cuda::ProductCall> products_made() const;   ///< the calls for which plans were made, in order
  std::uint64_t num_sorts() const;
  std::uint64_t num_graphs_launched() const;
  std::map<cuda::SolverKind, std::uint64_t> solver_calls() const;  ///< how many of each kind
  std::uint64_t num_products() const;                              ///< that were issued
  const FakeConvolutions& cudnn() const;
  FakePrograms& nvrtc();
  FakeCollectives& nccl();

  /// Call number `n` from now on, counted from 0, fails with that error; a sticky one stays.
  void fail_call(std::uint64_t n, cuda::ErrorCode code);
  /// Work number `n` from now on fails with that error instead of running. All later calls fail too, only on its
  /// device if the options say so.
  void fail_work(std::uint64_t n, cuda::ErrorCode code);
  /// Makes the calls of the host that are held, as a driver's thread does that comes late; says how many they were.
  std::size_t make_held_host_calls();
  /// No stream makes progress until `resume`.
  void pause();
  void resume();

  /// Issues work as a library does: `work` runs in stream order with the memory open.
  cuda::ErrorCode issue(int device, cuda::StreamHandle stream, std::span<const cuda::MemoryUse> uses,
                        UniqueFunction<void()> work);
  /// Issues one member of a call that several streams compute together. One of the members has the `work`, with the
  /// memory of all open.
  cuda::ErrorCode issue_member(int device, cuda::StreamHandle stream, std::vector<cuda::MemoryUse> uses,
                               const std::shared_ptr<FakeGroupCall>& together, UniqueFunction<void()> work);
  /// Ends the calls that have not run; true if all had run, or `aborts`, or nothing runs any more.
  bool end_group_calls(std::span<const std::shared_ptr<FakeGroupCall>> calls, bool aborts);
  /// One call of a library that issues nothing: ok, or the error that it fails with.
  cuda::ErrorCode count_call(int device);
  void report(std::string violation);

  cuda::ErrorCode count_devices(int& count) noexcept override;
  cuda::ErrorCode versions(int& driver, int& runtime) noexcept override;
  cuda::ErrorCode properties(int device, cuda::DeviceProperties& properties) noexcept override;
  cuda::ErrorCode memory_info(int device, std::size_t& free_bytes, std::size_t& total_bytes) noexcept override;
  cuda::ErrorCode create_stream(int device, cuda::StreamHandle& stream) noexcept override;
  cuda::ErrorCode destroy_stream(int device, cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode create_event(int device, cuda::EventHandle& event) noexcept override;
  cuda::ErrorCode destroy_event(int device, cuda::EventHandle event) noexcept override;
  cuda::ErrorCode record(int device, cuda::EventHandle event, cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode wait(int device, cuda::StreamHandle stream, cuda::EventHandle event) noexcept override;
  cuda::ErrorCode query(int device, cuda::EventHandle event) noexcept override;
  cuda::ErrorCode wait_until_idle(int device, cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode allocate(int device, std::size_t bytes, cuda::StreamHandle stream, void*& block) noexcept override;
  cuda::ErrorCode free(int device, void* block, cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode allocate_pinned(std::size_t bytes, void*& block) noexcept override;
  cuda::ErrorCode free_pinned(void* block) noexcept override;
  cuda::ErrorCode copy(int device, void* to, const void* from, std::size_t bytes, cuda::CopyKind kind,
                       cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode copy_peer(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                            cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode fill(int device, void* to, int byte, std::size_t bytes, cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode launch(int device, const cuda::KernelFunction& function, cuda::GridShape shape, const void* arguments,
                         std::span<const cuda::MemoryUse> uses, cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode call_host(int device, cuda::StreamHandle stream, void (*function)(void* data),
                            void* data) noexcept override;
  cuda::ErrorCode begin_capture(int device, cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode end_capture(int device, cuda::StreamHandle stream, cuda::GraphHandle* graph) noexcept override;
  cuda::ErrorCode launch_graph(int device, cuda::GraphHandle graph, cuda::StreamHandle stream) noexcept override;
  cuda::ErrorCode destroy_graph(int device, cuda::GraphHandle graph) noexcept override;
  cuda::Products& products() noexcept override { return *this; }
  cuda::Sorts& sorts() noexcept override { return *this; }
  cuda::Solvers& solvers() noexcept override { return *this; }
  cuda::Transforms& transforms() noexcept override { return *this; }
  cuda::Convolutions* convolutions() noexcept override;
  cuda::Programs* programs() noexcept override;
  cuda::Collectives* collectives() noexcept override;

  cuda::ErrorCode make_product_plan(int device, const cuda::ProductCall& call, std::size_t max_workspace_bytes,
                                    cuda::ProductPlanHandle& plan, std::size_t& workspace_bytes) noexcept override;
  cuda::ErrorCode destroy_product_plan(int device, cuda::ProductPlanHandle plan) noexcept override;
  cuda::ErrorCode run_product(int device, cuda::ProductPlanHandle plan, const cuda::ProductOperands& operands,
                              std::span<const cuda::MemoryUse> uses, cuda::StreamHandle stream) noexcept override;

  cuda::ErrorCode sort_workspace(int device, std::int64_t count, std::int32_t key_bits,
                                 std::size_t& bytes) noexcept override;
  cuda::ErrorCode sort_pairs(int device, const cuda::SortCall& call, void* workspace, std::size_t workspace_bytes,
                             std::span<const cuda::MemoryUse> uses, cuda::StreamHandle stream) noexcept override;

  cuda::ErrorCode solver_workspace(int device, const cuda::SolverCall& call, const cuda::SolverOperands& operands,
                                   std::size_t& bytes) noexcept override;
  cuda::ErrorCode run_solver(int device, const cuda::SolverCall& call, const cuda::SolverOperands& operands,
                             std::span<const cuda::MemoryUse> uses, cuda::StreamHandle stream) noexcept override;

  cuda::ErrorCode transform_workspace(int device, const cuda::TransformCall& call,
                                      std::size_t& bytes) noexcept override;
  cuda::ErrorCode run_transform(int device, const cuda::TransformCall& call, void* from, void* to, void* workspace,
                                std::size_t workspace_bytes, std::span<const cuda::MemoryUse> uses,
                                cuda::StreamHandle stream) noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dflow::testing
