#pragma once

namespace dflow {

/// Which passes transform a step's graph; results are the same with all of them off.
struct PassOptions {
  bool constant_folding = true;
  bool common_subexpressions = true;
  /// One node does the work of two where the device has a kernel for that: a product with its bias and activation.
  bool fusion = true;
  /// Elementwise nodes that hang together run as one kernel, which is made when the step is compiled, on devices that
  /// can make kernels: GPUs, where NVRTC is there.
  bool chains = true;
  /// Kernels write into inputs that nobody else reads any more.
  bool buffer_reuse = true;
  /// Nodes of one op that do not depend on one another run as one where the device has a kernel for that: updates of
  /// variables on a GPU.
  bool joint_kernels = true;
  /// Calls, branches and loops run as Switches, Merges and frames (`lower_calls`): iterations of a loop may overlap,
  /// and each costs more.
  bool lower_control_flow = false;
  /// Switches, Merges and frames run as branches and loops (`raise_frames`), if they have that form: an iteration
  /// costs less, and iterations do not overlap. If false, only parts that span devices, or are on a device with a
  /// memory of its own, run this way.
  bool raise_control_flow = false;

  static constexpr PassOptions none() { return {false, false, false, false, false, false, false}; }
};

}  // namespace dflow
