#pragma once

/// Bodies of the cluster: a part of <dflow/src/net.hpp>.

#include <dflow/net/cluster_spec.ipp>
#include <dflow/net/cluster_spec_environment.ipp>
#include <dflow/net/cluster_spec_json.ipp>
#include <dflow/net/protocol/frame.ipp>
#include <dflow/net/transport/accept_loop.ipp>
#include <dflow/net/transport/memory_transport.ipp>
#include <dflow/net/transport/strand.ipp>
#include <dflow/net/transport/transport.ipp>
