#pragma once

#include <dflow/core/rendezvous.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace dflow {

/// The meeting point of the partitions of one step inside one process. It is a table of tensors that were sent before
/// a receive, and of callbacks that asked before the tensor was there.
///
/// Delivered tensors are forgotten, so a loop takes no more memory than its tensors under way. For each key outside
/// of loops a number of 64 bits is kept; by this number a second send or receive of a key fails (Aborted).
///
/// Thread safety: safe. A callback runs in the thread of the call that completes the pair. If the tensor has to cross
/// into another memory, the callback runs in the thread of the copy.
class LocalRendezvous final : public Rendezvous {
 public:
  LocalRendezvous() = default;
  ~LocalRendezvous() override;

  Status send(const RendezvousKey& key, AnyTensor tensor, bool is_dead, const SendArgs& args = {}) override;
  using Rendezvous::recv_async;
  void recv_async(const RendezvousKey& key, const RecvArgs& args, RecvDone done) override;
  void abort(Status status) override;

  /// Tensors and callbacks that wait. For tests and statistics.
  std::size_t num_pending() const;
  /// Why the rendezvous was aborted; ok if it was not.
  Status end() const;
  /// How many tensors were asked for and are not there.
  std::size_t num_wanted() const;
  /// At most `max` keys of wanted tensors, in no order.
  std::vector<RendezvousKey> wanted(std::size_t max) const;

 private:
  struct Sent {
    AnyTensor tensor;
    bool is_dead = false;
    SendArgs args;
  };
  struct Wanted {
    RecvDone done;
    RecvArgs args;
    CancellationRegistration cancellation;
  };
  /// Either the tensor or the callback is there.
  struct Item {
    bool is_sent = false;
    Sent sent;
    Wanted wanted;
  };
  struct KeyHash {
    std::size_t operator()(const RendezvousKey& key) const noexcept { return static_cast<std::size_t>(key.hash()); }
  };

  using Items = std::unordered_map<RendezvousKey, Item, KeyHash>;
  /// The state that a token's callback may still look for when the rendezvous is gone.
  struct Table {
    /// With the mutex held. False if a pair of that key has met before.
    bool note_delivery(const RendezvousKey& key) {
      return !key.is_outside_loops() || delivered.insert(key.hash()).second;
    }
    bool was_delivered(const RendezvousKey& key) const {
      return key.is_outside_loops() && delivered.contains(key.hash());
    }
    void give_up(const RendezvousKey& key, const Status& status);

    mutable std::mutex mutex;
    Items items;
    std::size_t num_wanted = 0;  ///< of the items
    std::unordered_set<std::uint64_t> delivered;
    Status aborted;
  };

  static void deliver(Sent sent, Wanted wanted);

  const std::shared_ptr<Table> table_ = std::make_shared<Table>();
};

}  // namespace dflow
