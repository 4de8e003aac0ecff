#include <dflow/kernels/state/variable_state.hpp>

#include "catch.hpp"

#include <dflow/base/status.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

using dflow::Tensor;
using dflow::VariableState;
using dflow::VariableUpdate;

namespace {

dflow::Code code_of(const auto& action) {
  try {
    action();
  } catch (const dflow::Error& error) {
    return error.code();
  }
  return dflow::Code::ok;
}

}  // namespace

TEST_CASE("A variable without a value cannot be read or updated, and the error names it") {
  VariableState state("w", dflow::DType::float32, dflow::Shape{2});
  CHECK_FALSE(state.is_initialized());
  CHECK(code_of([&] { static_cast<void>(state.read()); }) == dflow::Code::failed_precondition);
  CHECK(code_of([&] { VariableUpdate update({&state}); }) == dflow::Code::failed_precondition);
  CHECK_THROWS_WITH(state.read(), Catch::Matchers::Contains("'w'"));
  state.assign(Tensor<float>({2}, {1, 2}));
  CHECK(state.is_initialized());
  CHECK(state.read().span<float>()[1] == 2);
}

TEST_CASE("A read shares the buffer, and an update copies it only while a reader holds it") {
  VariableState state("w", dflow::DType::float32, dflow::Shape{2});
  state.assign(Tensor<float>({2}, {1, 2}));
  const void* original = state.read().raw_data();
  {
    VariableUpdate update({&state});
    dflow::AnyTensor& value = update.writable(0, dflow::default_cpu_allocator());
    CHECK(value.raw_data() == original);
    value.span<float>()[0] = 3;
  }
  const dflow::AnyTensor held = state.read();
  CHECK(held.raw_data() == original);
  {
    VariableUpdate update({&state});
    update.writable(0, dflow::default_cpu_allocator()).span<float>()[0] = 4;
  }
  CHECK(held.span<float>()[0] == 3);
  CHECK(state.read().span<float>()[0] == 4);
}

TEST_CASE("An update refuses a variable given twice") {
  VariableState state("w", dflow::DType::float32, dflow::Shape{});
  state.assign(Tensor<float>::full({}, 1));
  CHECK(code_of([&] { VariableUpdate update({&state, &state}); }) == dflow::Code::invalid_argument);
  CHECK(code_of([&] { VariableUpdate update({&state}); }) == dflow::Code::ok);
}

TEST_CASE("Readers beside writers see whole values, and two variables change together", "[stress]") {
  constexpr std::int64_t size = 257;
  VariableState a("a", dflow::DType::int32, dflow::Shape{size}), b("b", dflow::DType::int32, dflow::Shape{size});
  a.assign(Tensor<std::int32_t>::full({size}, 0));
  b.assign(Tensor<std::int32_t>::full({size}, 0));
  std::atomic<int> torn{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < 2000; ++i) {
        // One takes the locks the other way round.
        VariableUpdate update(writer == 0 ? std::initializer_list<VariableState*>{&a, &b}
                                          : std::initializer_list<VariableState*>{&b, &a});
        for (std::size_t v = 0; v < 2; ++v) {
          for (std::int32_t& element : update.writable(v, dflow::default_cpu_allocator()).span<std::int32_t>())
            ++element;
        }
      }
    });
  }
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      std::int32_t last = 0;
      while (!stop.load()) {
        const dflow::AnyTensor value = a.read();
        const auto elements = value.span<std::int32_t>();
        for (const std::int32_t element : elements) torn += element != elements[0] ? 1 : 0;
        torn += elements[0] < last ? 1 : 0;
        last = elements[0];
      }
    });
  }
  threads[0].join();
  threads[1].join();
  stop = true;
  threads[2].join();
  threads[3].join();
  CHECK(torn == 0);
  CHECK(a.read().span<std::int32_t>()[0] == 4000);
  CHECK(b.read().span<std::int32_t>()[size - 1] == 4000);
}
