#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/core/any_tensor.ipp>
#include <dflow/core/broadcast.ipp>
#include <dflow/core/cancellation.ipp>
#include <dflow/core/device_info.ipp>
#include <dflow/core/device_memory.ipp>
#include <dflow/core/device_name.ipp>
#include <dflow/core/dtype.ipp>
#include <dflow/core/kept_memory.ipp>
#include <dflow/core/memory/allocator.ipp>
#include <dflow/core/memory/buffer.ipp>
#include <dflow/core/memory/huge_page_allocator.ipp>
#include <dflow/core/memory/pool_allocator.ipp>
#include <dflow/core/nested_elements.ipp>
#include <dflow/core/partial_shape.ipp>
#include <dflow/core/permuted.ipp>
#include <dflow/core/rendezvous.ipp>
#include <dflow/core/resource.ipp>
#include <dflow/core/shape.ipp>
#include <dflow/core/sparse_tensor.ipp>
#include <dflow/core/tensor.ipp>
