#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/core/resource.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace dflow {

/// Tensors by number. A number is given once.
///
/// Thread safety: all functions may be called from any thread.
class SessionTensorsState final : public Resource {
 public:
  /// memory_limit: in bytes, with the content of strings; 0 for no limit.
  SessionTensorsState(std::string name, DType dtype, std::int64_t memory_limit);
  ~SessionTensorsState() override;

  DType dtype() const noexcept { return dtype_; }
  std::int64_t memory_limit() const noexcept { return memory_limit_; }
  std::string debug_string() const override;

  /// The caller hands over a tensor whose buffer nobody will write any more. Returns its number.
  /// Errors: InvalidArgument for another element type; ResourceExhausted, naming both sizes, beyond the limit.
  std::int64_t keep(AnyTensor tensor);
  /// Errors: NotFound if there is no tensor of that number, or no more.
  AnyTensor get(std::int64_t number) const;
  /// Takes the tensor out. Errors: as `get`.
  AnyTensor take(std::int64_t number);
  std::int64_t size() const;

 private:
  struct Kept;
  const std::string name_;
  const DType dtype_;
  const std::int64_t memory_limit_;
  const std::unique_ptr<Kept> kept_;
};

}  // namespace dflow
