#pragma once

/// Bodies of the cluster: a part of <dflow/src/net.hpp>.

#include <dflow/net/protocol/byte_budget.ipp>
#include <dflow/net/protocol/clock_offset.ipp>
#include <dflow/net/protocol/connection.ipp>
#include <dflow/net/protocol/frame_stream.ipp>
#include <dflow/net/protocol/handshake.ipp>
#include <dflow/net/protocol/identity.ipp>
#include <dflow/net/protocol/master_messages.ipp>
#include <dflow/net/protocol/messages.ipp>
#include <dflow/net/tasks/step_table.ipp>
