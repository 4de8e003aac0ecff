#pragma once

#include <dflow/kernels/cpu/io/reader.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/state/queue_state.hpp>

#include <algorithm>
#include <vector>

namespace dflow {

ReaderKind detail::reader_kind(const FixedLengthRecordReaderOp&, const FixedLengthRecordReaderOp::Attrs& attrs) {
  const auto bytes = [](std::int64_t of) { return static_cast<std::uint64_t>(of); };
  return {.format = ReaderFormat::fixed_length,
          .fixed = {.header_bytes = bytes(attrs.header_bytes),
                    .record_bytes = bytes(attrs.record_bytes),
                    .footer_bytes = bytes(attrs.footer_bytes),
                    .hop_bytes = bytes(attrs.hop_bytes == 0 ? attrs.record_bytes : attrs.hop_bytes),
                    .compression = attrs.encoding}};
}

std::shared_ptr<ReaderState> detail::make_reader(const std::string& name, const ReaderKind& kind,
                                                 const DeviceContext& device) {
  return std::make_shared<ReaderState>(name, kind, device_files(device));
}

void detail::read_records(KernelContext& context, std::int64_t count, bool is_single, AsyncKernel::Done done) {
  auto take = [&context, is_single, done = std::move(done)](Status status, ReaderState::Records records) mutable {
    try {
      for (int i = 0; status.ok() && i < 2; ++i) {
        std::vector<std::string>& texts = i == 0 ? records.keys : records.values;
        const Shape shape = is_single ? Shape{} : Shape{static_cast<std::int64_t>(texts.size())};
        std::move(texts.begin(), texts.end(), context.allocate_output<std::string>(i, shape).data());
      }
    } catch (...) {
      status = status_of_current_exception();
    }
    done(std::move(status));
  };
  context.resource<ReaderState>(0).read_async(context.resource<QueueState>(1), count, context.step().cancellation,
                                              std::move(take));
}

}  // namespace dflow
