#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/handle_kernel.hpp>
#include <dflow/ops/io/reader.hpp>
#include <dflow/state/readers/reader_state.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace dflow {

namespace detail {

inline ReaderKind reader_kind(const WholeFileReaderOp&, const ReaderAttrs&) {
  return {.format = ReaderFormat::whole_file};
}
inline ReaderKind reader_kind(const IdentityReaderOp&, const ReaderAttrs&) {
  return {.format = ReaderFormat::identity};
}
inline ReaderKind reader_kind(const TextLineReaderOp&, const TextLineReaderOp::Attrs& attrs) {
  return {.format = ReaderFormat::text_line, .skip_header_lines = attrs.skip_header_lines};
}
inline ReaderKind reader_kind(const TFRecordReaderOp&, const TFRecordReaderOp::Attrs& attrs) {
  return {.format = ReaderFormat::tf_record, .compression = attrs.compression_type};
}
ReaderKind reader_kind(const FixedLengthRecordReaderOp& op, const FixedLengthRecordReaderOp::Attrs& attrs);
/// On the device's files of now.
std::shared_ptr<ReaderState> make_reader(const std::string& name, const ReaderKind& kind, const DeviceContext& device);

template <class O>
struct ReaderKernel : HandleKernel<ReaderKernel<O>, O, ReaderState> {
  explicit ReaderKernel(const KernelInit& init)
      : HandleKernel<ReaderKernel, O, ReaderState>(init),
        kind(reader_kind(O(), init.node.attrs_as<O>())),
        device(init.device) {}
  std::shared_ptr<ReaderState> make(const std::string& name) const { return make_reader(name, kind, device); }
  bool is_same_kind(const ReaderState& state) const { return state.kind() == kind; }

  const ReaderKind kind;
  const DeviceContext& device;
};

void read_records(KernelContext& context, std::int64_t count, bool is_single, AsyncKernel::Done done);

}  // namespace detail

template <>
struct Kernel<WholeFileReaderOp, Cpu> : detail::ReaderKernel<WholeFileReaderOp> {
  using ReaderKernel::ReaderKernel;
};
template <>
struct Kernel<TextLineReaderOp, Cpu> : detail::ReaderKernel<TextLineReaderOp> {
  using ReaderKernel::ReaderKernel;
};
template <>
struct Kernel<FixedLengthRecordReaderOp, Cpu> : detail::ReaderKernel<FixedLengthRecordReaderOp> {
  using ReaderKernel::ReaderKernel;
};
template <>
struct Kernel<TFRecordReaderOp, Cpu> : detail::ReaderKernel<TFRecordReaderOp> {
  using ReaderKernel::ReaderKernel;
};
template <>
struct Kernel<IdentityReaderOp, Cpu> : detail::ReaderKernel<IdentityReaderOp> {
  using ReaderKernel::ReaderKernel;
};
template <>
struct Kernel<ReaderRead, Cpu> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::read_records(context, 1, true, std::move(done));
  }
};
template <>
struct Kernel<ReaderReadUpTo, Cpu> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::read_records(context, context.scalar_input<std::int64_t>(2), false, std::move(done));
  }
};
template <>
struct Kernel<ReaderNumRecordsProduced, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    *context.allocate_output<std::int64_t>(0, {}).data() = context.resource<ReaderState>(0).progress().num_records;
  }
};
template <>
struct Kernel<ReaderNumWorkUnitsCompleted, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    *context.allocate_output<std::int64_t>(0, {}).data() = context.resource<ReaderState>(0).progress().num_finished;
  }
};
template <>
struct Kernel<ReaderSerializeState, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    const ReaderState& reader = context.resource<ReaderState>(0);
    *context.allocate_output<std::string>(0, {}).data() = serialized(reader.progress(), reader.kind().format);
  }
};
template <>
struct Kernel<ReaderRestoreState, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    const AnyTensor& state = context.input(1);
    context.resource<ReaderState>(0).restore_state({&state, 1});
  }
};
template <>
struct Kernel<ReaderReset, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const { context.resource<ReaderState>(0).set_progress({}); }
};

}  // namespace dflow
