#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/node_stream.hpp>
#include <dflow/ops/random/multinomial.hpp>

namespace dflow {

namespace cpu {
/// The kernel of Multinomial.
void draw_classes(KernelContext& context, const dflow::detail::NodeStream& stream);
}  // namespace cpu

template <>
struct Kernel<Multinomial, Cpu> {
 public:
  explicit Kernel(const KernelInit& init)
      : stream_(init, init.node.attrs_as<Multinomial>().seed, init.node.attrs_as<Multinomial>().seed2) {}
  double cost_ns(const KernelInit& init) const {
    return 500 + estimated_elements(init.inputs[0]) * 3 + estimated_elements(init.node.outputs[0]) * 40;
  }
  void operator()(KernelContext& context) const { cpu::draw_classes(context, stream_); }

 private:
  detail::NodeStream stream_;
};

}  // namespace dflow
