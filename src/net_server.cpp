#include <dflow/net/cluster_tasks.ipp>
#include <dflow/net/peers.ipp>
#include <dflow/net/server.ipp>
#include <dflow/net/worker.ipp>
