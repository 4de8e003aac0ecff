// An op of a program's own on a GPU: docs/adding-an-op.md. It is compiled, and linked only with the component cuda.

#include "weighted_rows.hpp"
#include "weighted_rows_body.hpp"

#include <dflow/kernels/cuda/elementwise/kernel.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/cuda/cuda_device.hpp>

#include <memory>

// [kernel]
template <class T>
struct dflow::Kernel<WeightedRows, dflow::Cuda, T> {
  static constexpr bool repeats = true;  // the same launch for the same shapes: it may be captured
  WeightedRows::Attrs attrs;

  void operator()(df::KernelContext& context, const df::Tensor<T>& x, const df::Tensor<T>& weights,
                  df::Tensor<T>& y) const {
    if (weights.rank() != 1 || weights.dim(0) != x.dim(0)) context.fail("there must be one weight per row");
    const std::int64_t count = x.num_elements();
    if (count == 0) return;
    df::cuda::launch<WeightedRowsBody<T>>(
        context, df::cuda::grid_for(count),
        {count, x.dim(1), x.raw_data(), weights.raw_data(), y.raw_data(), attrs.scale});
  }
};
// [kernel]

df::Session on_gpus(const df::Graph& graph) {
  // [session]
  constexpr auto ops = df::standard_ops + df::ops<WeightedRows>;
  auto devices = df::cuda_devices();
  devices.push_back(std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{}));
  df::Session session(graph,
                      {.ops = df::OpSet{ops, {df::kernels_of<df::Cuda>(df::ops<WeightedRows>)}}, .devices = devices});
  // [session]
  return session;
}
