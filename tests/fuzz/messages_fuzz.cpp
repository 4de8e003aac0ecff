// Reads bytes as each message that tasks send each other; a message that is read must come back as it is.
#include <dflow/base/status.hpp>
#include <dflow/net/inspect/task_log.hpp>
#include <dflow/net/protocol/master_messages.hpp>
#include <dflow/net/protocol/messages.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace {

using namespace dflow;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Read>
void try_to(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    const Code code = error.code();
    require(code == Code::data_loss || code == Code::invalid_argument || code == Code::out_of_range);
  }
}

/// A message that is written, read and written again has the same bytes; the bytes that came may have had longer
/// varints.
template <class Message>
void read_message(std::string_view bytes) {
  try_to([&] {
    const std::string once = net::to_body(net::from_body<Message>(bytes));
    require(once.size() <= bytes.size());
    require(net::to_body(net::from_body<Message>(once)) == once);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 25) {
    case 0:
      return read_message<net::DeviceList>(bytes), 0;
    case 1:
      return read_message<net::ShareName>(bytes), 0;
    case 2:
      return read_message<net::SharePartitions>(bytes), 0;
    case 3:
      return read_message<net::PushedTensor>(bytes), 0;
    case 4:
      return read_message<net::PushTensor>(bytes), 0;
    case 5:
      return read_message<net::RunShare>(bytes), 0;
    case 6:
      return read_message<net::RunShareReply>(bytes), 0;
    case 7:
      return read_message<net::CancelStep>(bytes), 0;
    case 8:
      return read_message<net::ReceiveTensor>(bytes), 0;
    case 9:
      return read_message<net::TensorHead>(bytes), 0;
    case 10:
      try_to([&] {
        ByteReader in(bytes);
        const Status status = net::read_status(in);
        in.expect_end();
        std::string once;
        ByteWriter out(once);
        net::write_status(out, status);
        ByteReader again(once);
        require(net::read_status(again) == status);
      });
      return 0;
    case 12:
      return read_message<net::CreateSession>(bytes), 0;
    case 13:
      return read_message<net::SessionVersion>(bytes), 0;
    case 14:
      return read_message<net::RunSession>(bytes), 0;
    case 15:
      return read_message<net::RunSessionReply>(bytes), 0;
    case 16:
      return read_message<net::NameList>(bytes), 0;
    case 17:
      return read_message<net::ResetCluster>(bytes), 0;
    case 18:
      // The description of a tensor, and its elements behind it.
      try_to([&] {
        ByteReader in(bytes);
        const net::PayloadTensor described = net::PayloadTensor::read(in);
        std::span<const std::byte> payload = in.bytes(in.remaining());
        const auto [again, elements] = net::to_payload({net::take_from_payload(described, payload)});
        require(again[0].head == described.head && elements.size() <= described.bytes);
      });
      return 0;
    case 19:
      return read_message<net::LogRequest>(bytes), 0;
    case 20:
      return read_message<net::LogReply>(bytes), 0;
    case 21:
      return read_message<net::BeginPartialRun>(bytes), 0;
    case 22:
      return read_message<net::PartialRunName>(bytes), 0;
    case 23:
      return read_message<net::ContinuePartialRun>(bytes), 0;
    case 24:
      return read_message<net::ClusterTaskList>(bytes), 0;
    default:
      try_to([&] {
        AnyTensor strings(DType::string, Shape({3}));
        net::decode_strings(bytes, strings);
        require(net::encode_strings(strings).size() <= bytes.size());
      });
      return 0;
  }
}
