#pragma once

namespace dflow {

/// Which passes transform a step's graph; results are the same with all of them off.
struct PassOptions {
  bool constant_folding = true;
  bool common_subexpressions = true;
  /// Kernels write into inputs that nobody else reads any more.
  bool buffer_reuse = true;

  static constexpr PassOptions none() { return {false, false, false}; }
};

}  // namespace dflow
