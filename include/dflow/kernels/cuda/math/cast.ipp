#pragma once

#include <dflow/kernels/cuda/math/cast.hpp>

namespace dflow::cuda {

const KernelFunction& cast_function(const TypeArgs& types) {
  return *visit_dtype<element_t<0, Cast::TypeParams>>(types[0], [&]<class From>() {
    return visit_dtype<element_t<1, Cast::TypeParams>>(
        types[1], []<class To>() { return &kernel_function<CastBody<DeviceElement<From>, DeviceElement<To>>>(); });
  });
}

void cast_elements(KernelContext& context, const KernelFunction& function) {
  const AnyTensor& x = context.input(0);
  AnyTensor& y = context.allocate_output(0, x.shape());
  if (y.num_elements() == 0) return;
  const CastArgs args{y.num_elements(), x.raw_data(), y.raw_data()};
  launch(context, function, grid_for(args.n), &args);
}

}  // namespace dflow::cuda
