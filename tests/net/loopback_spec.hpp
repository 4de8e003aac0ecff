// A cluster of one task at a TCP address of this machine, with a secret: TCP takes one.
#pragma once

#include <dflow/net/cluster_spec.hpp>

#include <string>

namespace dflow::testing {

/// For a server with the default address, or for a client with the server's address. `set_task("ps", 0)` makes it the
/// server's.
inline net::ClusterSpec loopback_spec(const std::string& address = "127.0.0.1:0") {
  net::ClusterSpec spec;
  spec.add_task("ps", 0, address);
  spec.set_secret("the fixed secret of tests");
  return spec;
}

}  // namespace dflow::testing
