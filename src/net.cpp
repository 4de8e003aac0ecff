#include <dflow/net/frame.ipp>
#include <dflow/net/memory_transport.ipp>
#include <dflow/net/messages.ipp>
#include <dflow/net/step_table.ipp>
#include <dflow/net/strand.ipp>
#include <dflow/net/transport.ipp>
