#include <dflow/net/connection.ipp>
#include <dflow/net/frame_stream.ipp>
#include <dflow/net/handshake.ipp>
#include <dflow/net/identity.ipp>
#include <dflow/net/messages.ipp>
#include <dflow/net/step_table.ipp>
