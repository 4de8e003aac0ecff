#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/master_messages.hpp>
#include <dflow/net/protocol/messages.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::net::detail {

/// The tensors of one reply of a master's, as they come.
///
/// Thread safety: one thread at a time.
class FetchedTensors {
 public:
  /// The elements of an only tensor are received where they stay.
  StatusOr<PayloadMemory> place(std::string_view body, std::uint64_t size) {
    try {
      const RunSessionReply reply = from_body<RunSessionReply>(body);
      if (reply.fetches.size() == 1 && reply.fetches[0].bytes == size && reply.fetches[0].head.dtype != DType::string) {
        only_ = AnyTensor(reply.fetches[0].head.dtype, reply.fetches[0].head.shape);
        return PayloadMemory{{static_cast<std::byte*>(only_.raw_data()), static_cast<std::size_t>(size)},
                             std::make_shared<AnyTensor>(only_)};
      }
      elements_ = AnyTensor(DType::uint8, Shape({static_cast<std::int64_t>(size)}));
      return PayloadMemory{{static_cast<std::byte*>(elements_.raw_data()), static_cast<std::size_t>(size)},
                           std::make_shared<AnyTensor>(elements_)};
    } catch (...) {
      return status_of_current_exception();
    }
  }

  /// Errors: DataLoss if the tensors have other names or types.
  std::vector<AnyTensor> take(const RunSessionReply& reply, std::span<const std::string> names,
                              std::span<const DType> types) {
    if (reply.fetches.size() != types.size()) throw_error(Status::data_loss("a reply with another number of tensors"));
    std::span<const std::byte> elements;
    if (elements_.is_initialized()) {
      elements = {static_cast<const std::byte*>(elements_.raw_data()), elements_.bytes()};
    }
    std::vector<AnyTensor> tensors;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (reply.fetches[i].head.dtype != types[i]) {
        throw_error(Status::data_loss(str_cat("'", names[i], "' comes as ", dtype_name(reply.fetches[i].head.dtype))));
      }
      if (only_.is_initialized()) check_elements(only_);
      tensors.push_back(only_.is_initialized() ? std::move(only_) : take_from_payload(reply.fetches[i], elements));
    }
    return tensors;
  }

 private:
  AnyTensor only_, elements_;
};

}  // namespace dflow::net::detail
