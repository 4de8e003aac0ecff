#pragma once

/// Public: the ops that a session knows, and kernels by device type.

#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/runtime/default_kernels.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace dflow {

/// The ops that a session knows, and kernels for them by device type. A list of ops converts to an OpSet, with the
/// kernels for the devices that a session makes itself:
///
/// ```cpp
/// df::Session session(graph, {.ops = df::standard_ops + df::ops<Swish>});
/// df::Session inference(graph, {.ops = df::ops<df::MatMul, df::Relu>});     // links no other kernel
/// df::Session on_npu(graph, {.ops = {ops, {npu_kernels}}});
/// ```
///
/// If several tables for one device type have an op, the first one counts. The tables given to the constructor come
/// first, then the tables added, each in the order given, then the kernels that come with the list of ops.
///
/// Thread safety: const functions may be called from any thread.
class OpSet {
 public:
  /// Errors: InvalidArgument if an op of the list has the same name as an op of the library.
  template <bool with_standard, class... Ops>
  // NOLINTNEXTLINE(google-explicit-constructor): a list of ops says it all
  OpSet(OpList<with_standard, Ops...> list, std::vector<KernelTable> more = {})
      : ops_(list), num_given_(more.size()), kernels_(std::move(more)) {
    kernels_.add(default_kernels(list));
  }
  OpSet(OpTable ops, std::vector<KernelTable> kernels)
      : ops_(ops), num_given_(kernels.size()), kernels_(std::move(kernels)) {}

  const OpTable& ops() const noexcept { return ops_; }
  const KernelTables& kernels() const noexcept { return kernels_; }
  void add(KernelTable table) { kernels_.insert(num_given_++, std::move(table)); }

 private:
  OpTable ops_;
  std::size_t num_given_;  ///< tables before those that come with the list
  KernelTables kernels_;
};

}  // namespace dflow
