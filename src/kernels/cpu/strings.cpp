#include <dflow/kernels/cpu/strings/base64.ipp>
#include <dflow/kernels/cpu/strings/list.hpp>
#include <dflow/kernels/cpu/strings/string_hash.ipp>
#include <dflow/kernels/cpu/strings/string_join.ipp>
#include <dflow/kernels/cpu/strings/string_number.ipp>
#include <dflow/kernels/cpu/strings/string_split.ipp>
#include <dflow/kernels/cpu/strings/substr.ipp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(StringsOps, Cpu);

}  // namespace dflow
