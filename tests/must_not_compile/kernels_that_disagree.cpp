// An op on a type of devices states once which arguments are in host memory.
// expect: must give the same host_inputs and host_outputs for all element types

#include <dflow/dflow.hpp>

struct Npu {
  static constexpr std::string_view type = "NPU";
};

template <>
struct dflow::Kernel<dflow::Add, Npu, float> {
  static constexpr std::uint64_t host_inputs = 1;
  void operator()(KernelContext&) const {}
};
template <>
struct dflow::Kernel<dflow::Add, Npu, double> {
  void operator()(KernelContext&) const {}
};

int main() { return dflow::kernels_of<Npu>(dflow::ops<dflow::Add>).find("Add") == nullptr; }
