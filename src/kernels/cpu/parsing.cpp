#include <dflow/kernels/cpu/parsing/decode_csv.ipp>
#include <dflow/kernels/cpu/parsing/decode_raw.ipp>
#include <dflow/kernels/cpu/parsing/list.hpp>
#include <dflow/kernels/cpu/parsing/parse_example.ipp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ParsingOps, Cpu);

}  // namespace dflow
