#pragma once

/// Every CPU kernel, for programs that compile the library themselves.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/array/list.hpp>
#include <dflow/kernels/cpu/checkpoint/list.hpp>
#include <dflow/kernels/cpu/control/list.hpp>
#include <dflow/kernels/cpu/data_flow/list.hpp>
#include <dflow/kernels/cpu/image/list.hpp>
#include <dflow/kernels/cpu/io/list.hpp>
#include <dflow/kernels/cpu/linalg/list.hpp>
#include <dflow/kernels/cpu/math/list.hpp>
#include <dflow/kernels/cpu/nn/list.hpp>
#include <dflow/kernels/cpu/parsing/list.hpp>
#include <dflow/kernels/cpu/random/list.hpp>
#include <dflow/kernels/cpu/reduction/list.hpp>
#include <dflow/kernels/cpu/send_recv/list.hpp>
#include <dflow/kernels/cpu/sparse/list.hpp>
#include <dflow/kernels/cpu/state/list.hpp>
#include <dflow/kernels/cpu/strings/list.hpp>
#include <dflow/kernels/cpu/summary/list.hpp>
