#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/kernels/collectives/collective_meetings.ipp>
#include <dflow/kernels/contract/host_arguments.ipp>
#include <dflow/kernels/contract/inferred_shape.ipp>
#include <dflow/kernels/contract/kernel.ipp>
#include <dflow/kernels/contract/kernel_context.ipp>
#include <dflow/kernels/contract/kernel_table.ipp>
#include <dflow/kernels/contract/typed_kernel.ipp>
#include <dflow/kernels/shared/elementwise_output.ipp>
#include <dflow/kernels/shared/list_output.ipp>
#include <dflow/kernels/shared/send_recv_kernel.ipp>
#include <dflow/kernels/state/device_files.ipp>
#include <dflow/kernels/state/kept_resource.ipp>
#include <dflow/kernels/state/node_stream.ipp>
#include <dflow/kernels/state/session_tensor_kernels.ipp>
#include <dflow/kernels/state/variable_kernel.ipp>
