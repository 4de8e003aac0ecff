#pragma once

/// Bodies of the cluster: a part of <dflow/src/net.hpp>.

#include <dflow/net/client/inspect.ipp>
#include <dflow/net/client/remote_master.ipp>
#include <dflow/net/cluster_comparison.ipp>
#include <dflow/net/inspect/metrics.ipp>
#include <dflow/net/inspect/task_log.ipp>
#include <dflow/net/inspect/task_status.ipp>
#include <dflow/net/master/cluster_tasks.ipp>
#include <dflow/net/master/master.ipp>
#include <dflow/net/server.ipp>
#include <dflow/net/tasks/peer_tensors.ipp>
#include <dflow/net/tasks/peers.ipp>
#include <dflow/net/tasks/reset_devices.ipp>
#include <dflow/net/tasks/wait_watch.ipp>
#include <dflow/net/tasks/worker.ipp>
