#include <dflow/net/master/reset.hpp>

#include <catch2/catch.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/state/variable_state.hpp>
#include <dflow/runtime/default_devices.hpp>
#include <dflow/runtime/device.hpp>

#include <memory>
#include <string>
#include <vector>

#include "../../errors.hpp"

using namespace dflow;

namespace {

std::vector<std::shared_ptr<Device>> two_empty_devices() {
  return make_default_devices({.count = 2, .pool = std::make_shared<WorkStealingPool>(1)});
}

/// One in each of the containers.
void keep_variables(const Device& device, const std::vector<std::string>& containers) {
  for (const std::string& name : containers) {
    device.context().resources->container(name)->insert(
        "v", std::make_shared<VariableState>("v", DType::float32, PartialShape{}));
  }
}

/// The containers that have something in them.
std::vector<std::string> filled(const Device& device) {
  std::vector<std::string> names;
  for (const std::string& name : device.context().resources->names()) {
    if (device.context().resources->container(name)->size() != 0) names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("containers of devices are reset by name, or all of them but the library's own") {
  const auto devices = two_empty_devices();
  using Names = std::vector<std::string>;
  for (const auto& device : devices) keep_variables(*device, {"", "a", "b", "_own"});
  net::reset_devices(devices, Names{"a", "nobody has asked for it"});
  for (const auto& device : devices) CHECK(filled(*device) == Names{"", "_own", "b"});
  net::reset_devices(std::span(devices).first(1), Names{""});
  CHECK(filled(*devices[0]) == Names{"_own", "b"});
  CHECK(filled(*devices[1]) == Names{"", "_own", "b"});
  CHECK(code_of([&] { net::reset_devices(devices, Names{"b", "_own"}); }) == Code::invalid_argument);
  CHECK(filled(*devices[0]) == Names{"_own", "b"});
  net::reset_devices(devices, {});
  for (const auto& device : devices) CHECK(filled(*device) == Names{"_own"});
}
