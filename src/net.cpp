#include <dflow/net/cluster_spec.ipp>
#include <dflow/net/cluster_spec_environment.ipp>
#include <dflow/net/cluster_spec_json.ipp>
#include <dflow/net/frame.ipp>
#include <dflow/net/memory_transport.ipp>
#include <dflow/net/strand.ipp>
#include <dflow/net/transport.ipp>
