#pragma once

#include <dflow/passes/options.hpp>

#include "catch.hpp"

namespace dflow::testing {

/// A session may run branches and loops in three forms: as calls, as frames, and as calls that were frames. The test
/// case runs once for each.
inline PassOptions each_form() {
  const int form = GENERATE(0, 1, 2);
  INFO("form " << form);
  PassOptions passes;
  passes.lower_control_flow = form >= 1;
  passes.raise_control_flow = form == 2;
  return passes;
}

}  // namespace dflow::testing
