#pragma once

/// Bodies of the cluster: a part of <dflow/src/net.hpp>.

#include <dflow/net/simulation/simulated_connections.ipp>
#include <dflow/net/simulation/simulated_network.ipp>
#include <dflow/net/simulation/simulation.ipp>
