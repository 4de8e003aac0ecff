#include "cuda/fake_driver_state.hpp"
#include "cuda/recorded_product.hpp"
#include "cuda/recorded_solver.hpp"
#include "cuda/recorded_transform.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace dflow::testing {

using namespace cuda;

ErrorCode FakeDriver::make_product_plan(int device, const ProductCall& call, std::size_t max_workspace_bytes,
                                        ProductPlanHandle& plan, std::size_t& workspace_bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a product: ", wrong));
    return ErrorCode::invalid_value;
  }
  const std::uintptr_t handle = state_->next_handle++;
  state_->plans.emplace(handle, call);
  state_->products_made.push_back(call);
  plan = static_cast<ProductPlanHandle>(handle);
  // Some want none.
  workspace_bytes = handle % 3 == 0 ? 0 : std::min<std::size_t>(max_workspace_bytes, 512 * (handle % 5 + 1));
  return ErrorCode::ok;
}

ErrorCode FakeDriver::destroy_product_plan(int, ProductPlanHandle plan) noexcept {
  const std::lock_guard lock(state_->mutex);
  ++state_->calls;
  if (state_->plans.erase(static_cast<std::uintptr_t>(plan)) == 1) return ErrorCode::ok;
  state_->violate("a plan of a product is destroyed that there is not");
  return ErrorCode::invalid_value;
}

bool is_said(const MemoryUse& touched, std::span<const MemoryUse> uses) {
  return std::any_of(uses.begin(), uses.end(), [&](const MemoryUse& use) {
    const auto* const begin = static_cast<const std::byte*>(use.block);
    const auto* const of = static_cast<const std::byte*>(touched.block);
    return of >= begin && of + touched.bytes <= begin + use.bytes && (use.writes || !touched.writes);
  });
}

ErrorCode FakeDriver::run_product(int device, ProductPlanHandle plan, const ProductOperands& operands,
                                  std::span<const MemoryUse> uses, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  const auto found = state_->plans.find(static_cast<std::uintptr_t>(plan));
  if (found == state_->plans.end()) {
    state_->violate("a product is computed by a plan that there is not");
    return ErrorCode::invalid_handle;
  }
  const ProductCall& call = found->second;
  ++state_->num_products;
  for (const auto& [data, bytes, writes] : memory_of(call, operands)) {
    if (!is_said({data, bytes, writes}, uses)) state_->violate("a product touches memory that was not said of it");
    if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(call.alignment_bytes) != 0) {
      state_->violate("an operand of a product is not aligned as its plan says");
    }
  }
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  return state_->push(
      stream, std::move(used), [call, operands] { compute_product(call, operands); }, true, "a product");
}

ErrorCode FakeDriver::sort_workspace(int device, std::int64_t count, std::int32_t key_bits,
                                     std::size_t& bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (count < 1 || key_bits < 1 || key_bits > 64) state_->violate("a sort of nothing");
  bytes = 256 + static_cast<std::size_t>(count) * 3;
  return ErrorCode::ok;
}

ErrorCode FakeDriver::sort_pairs(int device, const SortCall& call, void* workspace, std::size_t workspace_bytes,
                                 std::span<const MemoryUse> uses, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  ++state_->num_sorts;
  const auto count = static_cast<std::size_t>(call.count);
  if (workspace_bytes < 256 + count * 3) state_->violate("a sort has less memory than it takes");
  for (const MemoryUse& touched :
       {MemoryUse{call.keys, 8 * count, false}, MemoryUse{call.values, 8 * count, false},
        MemoryUse{call.sorted_keys, 8 * count, true}, MemoryUse{call.sorted_values, 8 * count, true},
        MemoryUse{workspace, workspace_bytes, true}}) {
    if (!is_said(touched, uses)) state_->violate("a sort touches memory that was not said of it");
  }
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  const auto sort = [call, workspace, workspace_bytes] {
    std::memset(workspace, 0xA5, workspace_bytes);
    std::vector<std::size_t> order(static_cast<std::size_t>(call.count));
    std::iota(order.begin(), order.end(), std::size_t{0});
    // The library looks at no other bits.
    const std::uint64_t mask = call.key_bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << call.key_bits) - 1;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return (call.keys[a] & mask) < (call.keys[b] & mask); });
    for (std::size_t i = 0; i < order.size(); ++i) {
      call.sorted_keys[i] = call.keys[order[i]];
      call.sorted_values[i] = call.values[order[i]];
    }
  };
  return state_->push(stream, std::move(used), sort, true, "a sort");
}

ErrorCode FakeDriver::solver_workspace(int device, const SolverCall& call, const SolverOperands& operands,
                                       std::size_t& bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  for (const MemoryUse& touched : memory_of(call, operands)) {
    if (touched.block == nullptr) state_->violate("the memory of a decomposition is asked for without an operand");
  }
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a decomposition: ", wrong));
  }
  bytes = workspace_of(call);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::run_solver(int device, const SolverCall& call, const SolverOperands& operands,
                                 std::span<const MemoryUse> uses, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  ++state_->solver_calls[call.kind];
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a decomposition: ", wrong));
  }
  if (operands.workspace_bytes < workspace_of(call)) state_->violate("a decomposition has less memory than it takes");
  for (const MemoryUse& touched : memory_of(call, operands)) {
    if (!is_said(touched, uses)) state_->violate("a decomposition touches memory that was not said of it");
  }
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  return state_->push(
      stream, std::move(used), [call, operands] { compute_solver(call, operands); }, true, "a decomposition");
}

ErrorCode FakeDriver::transform_workspace(int device, const TransformCall& call, std::size_t& bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a transform: ", wrong));
  }
  bytes = workspace_of(call);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::run_transform(int device, const TransformCall& call, void* from, void* to, void* workspace,
                                    std::size_t workspace_bytes, std::span<const MemoryUse> uses,
                                    StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a transform: ", wrong));
  }
  if (workspace_bytes < workspace_of(call)) state_->violate("a transform has less memory than it takes");
  std::vector<MemoryUse> touched = memory_of(call, from, to);
  if (workspace_bytes != 0) touched.push_back({workspace, workspace_bytes, true});
  for (const MemoryUse& each : touched) {
    if (!is_said(each, uses)) state_->violate("a transform touches memory that was not said of it");
  }
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  const auto transform = [call, from, to, workspace, workspace_bytes] {
    if (workspace_bytes != 0) std::memset(workspace, 0xA5, workspace_bytes);
    compute_transform(call, from, to);
  };
  return state_->push(stream, std::move(used), transform, true, "a transform");
}

}  // namespace dflow::testing
