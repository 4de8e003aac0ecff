#include <dflow/base/version.hpp>

#include "catch.hpp"

#include <string>

TEST_CASE("the version's text and numbers agree", "[version]") {
  CHECK(std::string(DFLOW_VERSION_STRING) == std::to_string(DFLOW_VERSION_MAJOR) + "." +
                                                 std::to_string(DFLOW_VERSION_MINOR) + "." +
                                                 std::to_string(DFLOW_VERSION_PATCH));
  CHECK(DFLOW_VERSION == 100);
}
