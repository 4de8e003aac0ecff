#pragma once

#include <dflow/kernels/default_kernels.hpp>
#include <dflow/kernels/kernel_table.hpp>

#include <utility>
#include <vector>

namespace dflow {

/// What a session knows: ops, and kernels for them by device type. A list of ops is one, with the kernels for the
/// devices that a session makes itself:
///
/// ```cpp
/// df::Session session(graph, {.ops = df::standard_ops + df::ops<Swish>});
/// df::Session inference(graph, {.ops = df::ops<df::MatMul, df::Relu>});     // links no other kernel
/// df::Session on_npu(graph, {.ops = {ops, {npu_kernels}}});
/// ```
///
/// Thread safety: const functions may be called from any thread.
class OpSet {
 public:
  /// Errors: InvalidArgument if an op of the list has the name of one of the library's.
  template <bool with_standard, class... Ops>
  // NOLINTNEXTLINE(google-explicit-constructor): a list of ops says it all
  OpSet(OpList<with_standard, Ops...> list, std::vector<KernelTable> more = {})
      : ops_(list), kernels_(std::move(more)) {
    kernels_.add(default_kernels(list));
  }
  OpSet(OpTable ops, std::vector<KernelTable> kernels) : ops_(ops), kernels_(std::move(kernels)) {}

  const OpTable& ops() const noexcept { return ops_; }
  const KernelTables& kernels() const noexcept { return kernels_; }
  void add(KernelTable table) { kernels_.add(std::move(table)); }

 private:
  OpTable ops_;
  KernelTables kernels_;
};

}  // namespace dflow
