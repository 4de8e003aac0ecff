#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/image/boxes.hpp>

namespace dflow {

namespace cpu {
void draw_bounding_boxes(KernelContext& context);
void non_max_suppression(KernelContext& context, float iou_threshold);
}  // namespace cpu

template <>
struct Kernel<DrawBoundingBoxes, Cpu> {
  double cost_ns(const KernelInit& init) const { return 500 + 0.5 * estimated_elements(init.inputs[0]); }
  void operator()(KernelContext& context) const { cpu::draw_bounding_boxes(context); }
};

template <>
struct Kernel<NonMaxSuppression, Cpu> {
  NonMaxSuppression::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 500 + 50 * estimated_elements(init.inputs[1]); }
  void operator()(KernelContext& context) const { cpu::non_max_suppression(context, attrs.iou_threshold); }
};

}  // namespace dflow
