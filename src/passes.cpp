#include <dflow/passes/check_receives.ipp>
#include <dflow/passes/functions.ipp>
#include <dflow/passes/fuse.ipp>
#include <dflow/passes/optimize.ipp>
#include <dflow/passes/partition.ipp>
#include <dflow/passes/place.ipp>
#include <dflow/passes/prune.ipp>
#include <dflow/passes/step_graph_def.ipp>
