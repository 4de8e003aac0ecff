#include <dflow/ops/data_flow/accumulator.ipp>
#include <dflow/ops/data_flow/queue.ipp>
#include <dflow/ops/data_flow/token_barrier.ipp>
