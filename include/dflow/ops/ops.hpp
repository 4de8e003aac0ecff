#pragma once

/// Public: the builders of every op.

#include <dflow/ops/array/blocks.hpp>
#include <dflow/ops/collective/collective.hpp>
#include <dflow/ops/data_flow/barrier.hpp>
#include <dflow/ops/data_flow/embedding.hpp>
#include <dflow/ops/data_flow/lookup_table.hpp>
#include <dflow/ops/data_flow/queue.hpp>
#include <dflow/ops/data_flow/queue_kinds.hpp>
#include <dflow/ops/data_flow/staging.hpp>
#include <dflow/ops/image/crop_and_resize.hpp>
#include <dflow/ops/image/geometry.hpp>
#include <dflow/ops/io/files.hpp>
#include <dflow/ops/io/reader.hpp>
#include <dflow/ops/linalg/einsum.hpp>
#include <dflow/ops/linalg/products.hpp>
#include <dflow/ops/math/formulas.hpp>
#include <dflow/ops/nn/conv3d.hpp>
#include <dflow/ops/nn/convolutions.hpp>
#include <dflow/ops/nn/local_response.hpp>
#include <dflow/ops/nn/pool3d.hpp>
#include <dflow/ops/nn/sampled_losses.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/statistics.hpp>
#include <dflow/ops/sparse/embedding_sparse.hpp>
#include <dflow/ops/standard_ops.hpp>
#include <dflow/ops/state/session_tensors.hpp>
#include <dflow/ops/state/temporary_variable.hpp>
#include <dflow/ops/state/typed_variable.hpp>
