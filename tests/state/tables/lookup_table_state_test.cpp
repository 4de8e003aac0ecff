#include <dflow/state/tables/lookup_table_state.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <vector>

using namespace dflow;

TEST_CASE("a table's state says whether the table is filled, by 0 or 1") {
  for (const bool is_mutable : {false, true}) {
    const LookupTableState::Kind kind{
        .key = DType::int64, .value = DType::float32, .value_shape = {}, .is_mutable = is_mutable};
    for (const std::int64_t filled : {-1, 0, 1, 2}) {
      LookupTableState table("t", kind);
      const std::vector<AnyTensor> state{Tensor<std::int64_t>({2}, {filled, 0}), Tensor<std::int64_t>({0}, {}),
                                         Tensor<float>({0}, {})};
      const bool is_right = filled == 1 || (filled == 0 && !is_mutable);
      CHECK(code_of([&] { return table.restore_state(state), 0; }) == (is_right ? Code::ok : Code::invalid_argument));
    }
  }
}
