#pragma once

#include <dflow/core/rendezvous.hpp>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace dflow {

/// The meeting point of the partitions of one step inside one process: a table of tensors that were sent before they were asked for, and of
/// callbacks that asked before the tensor was there.
///
/// Thread safety: safe. Callbacks run in the thread of the call that completes the pair.
class LocalRendezvous final : public Rendezvous {
 public:
  LocalRendezvous() = default;

  Status send(const RendezvousKey& key, AnyTensor tensor, bool is_dead) override;
  void recv_async(const RendezvousKey& key, RecvDone done) override;
  void abort(Status status) override;

 private:
  struct Item {
    bool has_tensor = false;
    bool is_dead = false;
    AnyTensor tensor;
    RecvDone waiting;
  };

  std::mutex mutex_;
  std::unordered_map<std::string, Item> items_;
  Status aborted_;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/runtime/local_rendezvous.ipp>
#endif
