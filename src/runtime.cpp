#include <dflow/runtime/device.ipp>
#include <dflow/runtime/local_rendezvous.ipp>
#include <dflow/runtime/plan.ipp>
#include <dflow/runtime/stats_collector.ipp>
#include <dflow/runtime/step.ipp>
