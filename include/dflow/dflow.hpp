#pragma once

/// Public: everything an application needs to build, differentiate, train, run, read, save and trace typed dataflow
/// graphs, on one process or a cluster. The pages in docs/ need no other header, except where they name one. It needs
/// none of the libraries that dflow is built with. Nothing inside the library includes this header.

#include <dflow/autodiff/gradients.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/base/files/file_systems.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/base/version.hpp>
#include <dflow/data/data.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/graph/graph_def_json.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>
#include <dflow/io/compression/gzip.hpp>
#include <dflow/io/csv.hpp>
#include <dflow/io/csv_columns.hpp>
#include <dflow/io/idx.hpp>
#include <dflow/io/labelled_images.hpp>
#include <dflow/io/npy.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/safetensors.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cpu/elementwise/kernel.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/server.hpp>
#include <dflow/op/build.hpp>
#include <dflow/op/import.hpp>
#include <dflow/op/merge.hpp>
#include <dflow/ops/ops.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/runtime/op_set.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/compiled_function.hpp>
#include <dflow/session/session.hpp>
#include <dflow/trace/chrome_trace.hpp>
#include <dflow/train/train.hpp>
