#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>

namespace dflow {

/// The family's ops in the standard table.
using SendRecvOps = TypeList<Send, Recv>;

}  // namespace dflow
