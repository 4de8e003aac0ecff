#pragma once

/// Bodies of the cluster: a part of <dflow/src/net.hpp>.

#include <dflow/net/cluster_tasks.ipp>
#include <dflow/net/inspect/inspect.ipp>
#include <dflow/net/inspect/metrics.ipp>
#include <dflow/net/inspect/task_log.ipp>
#include <dflow/net/inspect/task_status.ipp>
#include <dflow/net/inspect/wait_watch.ipp>
#include <dflow/net/master/master.ipp>
#include <dflow/net/master/remote_master.ipp>
#include <dflow/net/master/reset_devices.ipp>
#include <dflow/net/peers.ipp>
#include <dflow/net/server.ipp>
#include <dflow/net/worker.ipp>
