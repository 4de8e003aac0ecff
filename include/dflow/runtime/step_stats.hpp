#pragma once

#include <dflow/base/clock.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dflow {

/// One run of one node.
struct NodeStats {
  std::string node;
  std::string op;
  std::string device;
  std::int64_t start_ns = 0;  ///< since the step began
  std::int64_t end_ns = 0;
  int thread = 0;  ///< numbered from 0 in order of appearance
  std::int64_t output_bytes = 0;
  std::string output_shapes;
};

/// The record of a traced step, node by node.
struct StepStats {
  std::uint64_t step_id = 0;
  std::int64_t wall_start_us = 0;  ///< microseconds since 1970
  std::int64_t total_ns = 0;
  std::vector<NodeStats> nodes;
};

}  // namespace dflow
