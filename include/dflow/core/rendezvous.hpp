#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/core/device_memory.hpp>
#include <dflow/core/partial_shape.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace dflow {

/// Names one tensor on its way from a Send to a Recv within a step. The parts are the source device and its
/// incarnation (which fences off a peer that was restarted), the destination device, the edge's name, and the loop
/// frame and iteration that made the tensor. Both sides build equal keys on their own. The hash is computed once.
///
/// Thread safety: immutable.
class RendezvousKey {
 public:
  RendezvousKey(std::string_view source_device, std::uint64_t source_incarnation, std::string_view destination_device,
                std::string_view tensor_name, std::string_view frame = {}, std::int64_t iteration = 0);

  /// The same edge in iteration `iteration` of loop frame `frame`.
  RendezvousKey in_frame(std::string_view frame, std::int64_t iteration) const;

  /// Reads the text that `text()` gave. Errors: InvalidArgument that quotes it.
  static StatusOr<RendezvousKey> parse(std::string_view text);

  /// "source;incarnation;destination;tensor;frame:iteration".
  const std::string& text() const noexcept { return text_; }
  std::uint64_t hash() const noexcept { return hash_; }

  std::string_view source_device() const noexcept { return part(0); }
  std::string_view destination_device() const noexcept { return part(2); }
  std::string_view tensor_name() const noexcept { return part(3); }
  std::uint64_t source_incarnation() const noexcept { return incarnation_; }
  /// True if its frame is empty and its iteration 0: the key of one pair in a step.
  bool is_outside_loops() const noexcept { return text_.ends_with(";:0"); }

  friend bool operator==(const RendezvousKey& a, const RendezvousKey& b) noexcept {
    return a.hash_ == b.hash_ && a.text_ == b.text_;
  }

 private:
  std::string_view part(int index) const noexcept;

  std::string text_;
  std::uint64_t hash_;
  std::uint64_t incarnation_;
};

/// A feed or fetch of a step that crosses between the client's memory and a device's.
///
/// Thread safety: a value type.
struct ClientEdge {
  std::size_t index = 0;  ///< among the whole step's feeds, or fetches
  RendezvousKey key;
  DType dtype = DType::invalid;  ///< of a fetch; invalid: any type
  bool pushed = false;           ///< to or from another task, which it goes to at once
};

/// The device and memory that a tensor comes from when it is handed over.
struct SendArgs {
  /// The memory that it is in; null: host memory.
  DeviceMemory* memory = nullptr;
  /// Both sides know that the tensor is small: between two tasks it is sent at once, without a request.
  bool pushed = false;
};

/// The place that wants a tensor, so that the tensor is received into the buffer that its consumer will use.
struct RecvArgs {
  /// The memory that it is wanted in; null: host memory.
  DeviceMemory* memory = nullptr;
  /// For its bytes in host memory; null: the process's.
  Allocator* allocator = nullptr;
  /// The receiver's knowledge of the tensor beforehand; invalid and unknown if it knows nothing.
  DType dtype = DType::invalid;
  PartialShape shape = PartialShape::unknown();
  /// Gives up this one receive.
  CancellationToken cancellation = {};
  /// As of `SendArgs`.
  bool pushed = false;
};

/// The place in which the Sends and Recvs of one step meet, in one process or across many.
///
/// - Never blocks: `send` hands over and returns, `recv_async` takes a completion.
/// - For one key there is one send and one receive, in either order. Outside of loops there is one pair in the whole
///   step: a send or receive after the pair has met is an error too. A key of a loop frame is forgotten when its pair
///   has met, and may be used again. A receive that was given up leaves its key as if it had not been asked for.
/// - A sent tensor is shared with its receiver if both are in one memory, and copied across the border if they are
///   not. The sender does not write it any more.
/// - A dead tensor (from the untaken side of a branch) is sent as well, so that the receiver learns of it.
/// - After `abort` every pending and later receive completes with the status, and every later send returns it.
///
/// Thread safety: all functions may be called from any thread.
class Rendezvous {
 public:
  /// Called exactly once. Runs on the thread of `send`, `recv_async`, `abort`, the canceller or a copy, so it must be
  /// short and must not block; it may call the rendezvous again. `tensor` is uninitialised if `is_dead` or not ok.
  using RecvDone = UniqueFunction<void(Status status, AnyTensor tensor, bool is_dead)>;

  virtual ~Rendezvous();
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Errors: aborted's status; Aborted if the key was sent before, in a loop frame only as long as it is not received.
  virtual Status send(const RendezvousKey& key, AnyTensor tensor, bool is_dead, const SendArgs& args = {}) = 0;
  /// Errors, given to `done`: aborted's status; the token's status; the errors of the copy into the wanted memory.
  /// Aborted if the key is being received already or, outside of loops, was received before.
  virtual void recv_async(const RendezvousKey& key, const RecvArgs& args, RecvDone done) = 0;
  /// The same for host memory.
  void recv_async(const RendezvousKey& key, RecvDone done) { recv_async(key, RecvArgs{}, std::move(done)); }
  /// The first status stays. An ok status counts as cancelled.
  virtual void abort(Status status) = 0;
};

}  // namespace dflow
