#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>
#include <string>

namespace dflow {

/// Hands its input to the step's rendezvous. `partition` puts a Send where an edge leaves a device.
struct Send : StatefulOp<"_Send", AllTypes> {
  struct Attrs {
    std::string tensor_name;
    std::string send_device;
    std::string recv_device;
    std::uint64_t send_device_incarnation = 0;
    bool host_memory = false;  ///< the input is in host memory, wherever the device computes
    /// true: the tensor goes to the receiver's task at once. false: it waits until the receiver asks for it. The Recv
    /// has the same value.
    bool pushed = false;
  };
  using Outputs = Out<>;
  static constexpr OpRole role = OpRole::send;
  static void infer(InferContext& context);
};

/// Gives the tensor that the matching Send handed to the rendezvous, as soon as the tensor is there.
struct Recv : StatefulOp<"_Recv", AllTypes> {
  struct Attrs {
    std::string tensor_name;
    std::string send_device;
    std::string recv_device;
    std::uint64_t send_device_incarnation = 0;
    PartialShape shape;
    bool host_memory = false;  ///< the output is wanted in host memory, wherever the device computes
    bool pushed = false;       ///< as the Send
  };
  using Inputs = In<>;
  static constexpr OpRole role = OpRole::recv;
  static constexpr std::array<std::string_view, 1> type_names{"tensor_type"};
  static void infer(InferContext& context);
};

}  // namespace dflow
