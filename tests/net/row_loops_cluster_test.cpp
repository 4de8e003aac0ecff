// Arrays, loops over rows and recurrent networks on one device, over devices and over tasks.
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include "catch.hpp"
#include "cluster_harness.hpp"
#include "support/row_programs.hpp"
#include "support/sanitized.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace df = dflow;
using namespace df::testing;

TEST_CASE("arrays, loops over rows and recurrent networks give the same on one device and over three", "[split]") {
  for (const RowProgram& program : row_programs()) {
    for (const df::PassOptions& passes : passes_of_each_form()) {
      INFO(program.name << ", lowered: " << passes.lower_control_flow << ", raised: " << passes.raise_control_flow);
      check_row_program(program, row_devices("", {}, 0), {.passes = passes});
      check_row_program(program, row_devices("/cpu:1", {}, 0), {.num_cpu_devices = 3, .passes = passes});
      for (std::size_t draw = 0; draw < (is_sanitized ? 1 : 4); ++draw) {
        INFO("draw " << draw);
        check_row_program(program, row_devices("", {"/cpu:0", "/cpu:1", "/cpu:2"}, draw),
                          {.num_cpu_devices = 3, .passes = passes});
      }
    }
  }
}

TEST_CASE("arrays, loops over rows and recurrent networks give the same in one task and over three", "[split]") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  const std::vector<std::string> tasks{"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"};
  for (const RowProgram& program : row_programs()) {
    for (const df::PassOptions& passes : passes_of_each_form()) {
      INFO(program.name << ", lowered: " << passes.lower_control_flow << ", raised: " << passes.raise_control_flow);
      const df::SessionOptions options{.target = cluster.server("worker", 0).target(), .passes = passes};
      check_row_program(program, row_devices(tasks[1], {}, 0), options);
      for (std::size_t draw = 0; draw < (is_sanitized ? 1 : 2); ++draw) {
        INFO("draw " << draw);
        check_row_program(program, row_devices(tasks[0], tasks, draw), options);
      }
    }
  }
}
