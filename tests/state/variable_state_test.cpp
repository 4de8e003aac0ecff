#include <dflow/state/variable_state.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/status.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

using dflow::Tensor;
using dflow::VariableState;
using dflow::VariableUpdate;

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

TEST_CASE("An assignment of another element type or shape is refused and names the variable, which keeps its value") {
  VariableState state("w", dflow::DType::float32, dflow::PartialShape{2, dflow::dynamic});
  state.assign(Tensor<float>({2, 1}, {1, 2}));
  const auto is_refused = [&](const dflow::AnyTensor& value) {
    CHECK_THROWS_WITH(state.assign(value), Catch::Matchers::Contains("'w'"));
    return code_of([&] { state.assign(value); }) == dflow::Code::invalid_argument;
  };
  CHECK(is_refused(Tensor<std::int8_t>({2, 1}, {1, 2})));
  CHECK(is_refused(Tensor<double>({2, 1}, {1, 2})));
  CHECK(is_refused(Tensor<float>({3, 1}, {1, 2, 3})));
  CHECK(is_refused(Tensor<float>({2}, {1, 2})));
  CHECK(is_refused(dflow::AnyTensor()));
  CHECK(state.read().span<float>()[1] == 2);
  state.assign(Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(state.read().span<float>()[5] == 6);
}

TEST_CASE("A value that is assigned in any shape must have the variable's element type") {
  VariableState state("w", dflow::DType::float32, dflow::Shape{2});
  state.assign_any_shape(Tensor<float>({3}, {1, 2, 3}));
  CHECK(state.read().shape() == dflow::Shape{3});
  CHECK(code_of([&] { state.assign_any_shape(Tensor<std::int8_t>({3}, {1, 2, 3})); }) == dflow::Code::invalid_argument);
  CHECK(code_of([&] { state.assign_any_shape({}); }) == dflow::Code::invalid_argument);
  CHECK(state.read().span<float>()[2] == 3);
}

TEST_CASE("A reader that counts on a shape is refused a value of another, unless that was assigned in any shape") {
  VariableState state("w", dflow::DType::float32, dflow::PartialShape::unknown());
  state.assign(Tensor<float>({1}, {1}));
  CHECK(state.read(dflow::PartialShape{dflow::dynamic}).span<float>()[0] == 1);
  CHECK(code_of([&] { state.read(dflow::PartialShape{2}); }) == dflow::Code::failed_precondition);
  CHECK_THROWS_WITH(state.read(dflow::PartialShape{2}), Catch::Matchers::Contains("'w'") &&
                                                            Catch::Matchers::Contains("[1]") &&
                                                            Catch::Matchers::Contains("[2]"));
  state.assign_any_shape(Tensor<float>({1}, {5}));
  CHECK(state.read(dflow::PartialShape{2}).span<float>()[0] == 5);
  {
    VariableUpdate update({&state});
    update.writable(0, dflow::default_cpu_allocator()).span<float>()[0] = 6;
  }
  CHECK(state.read(dflow::PartialShape{2}).span<float>()[0] == 6);
  state.assign(Tensor<float>({1}, {7}));
  CHECK(code_of([&] { state.read(dflow::PartialShape{2}); }) == dflow::Code::failed_precondition);
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

TEST_CASE("An update of many variables may have one several times, and says which has no value") {
  std::vector<std::unique_ptr<VariableState>> states;
  std::vector<VariableState*> all;
  for (int i = 0; i < 9; ++i) {
    states.push_back(std::make_unique<VariableState>("w", dflow::DType::float32, dflow::Shape{}));
    if (i != 7) states.back()->assign(Tensor<float>::full({}, static_cast<float>(i)));
    all.push_back(states.back().get());
  }
  {
    VariableUpdate update{std::span<VariableState* const>(all)};
    CHECK_FALSE(update.has_repeated());
    CHECK(code_of([&] { update.require_value(6); }) == dflow::Code::ok);
    CHECK(code_of([&] { update.require_value(7); }) == dflow::Code::failed_precondition);
  }
  all.push_back(all[2]);
  const auto held = states[2]->read();
  {
    VariableUpdate update{std::span<VariableState* const>(all)};
    CHECK(update.has_repeated());
    update.writable(2, dflow::default_cpu_allocator()).span<float>()[0] += 1;
    CHECK(update.value(9).span<float>()[0] == 3);
    update.writable(9, dflow::default_cpu_allocator()).span<float>()[0] += 1;
  }
  CHECK(held.span<float>()[0] == 2);
  CHECK(states[2]->read().span<float>()[0] == 4);
  CHECK(states[8]->read().span<float>()[0] == 8);
  VariableUpdate none{std::span<VariableState* const>()};
  CHECK_FALSE(none.has_repeated());
}

TEST_CASE("An update refuses more variables than it can hold") {
  std::vector<std::unique_ptr<VariableState>> states;
  for (int i = 0; i < 5; ++i) {
    states.push_back(std::make_unique<VariableState>("w", dflow::DType::float32, dflow::Shape{}));
    states.back()->assign(Tensor<float>::full({}, 1));
  }
  CHECK(code_of([&] {
          VariableUpdate update({states[0].get(), states[1].get(), states[2].get(), states[3].get(), states[4].get()});
        }) == dflow::Code::invalid_argument);
  CHECK(code_of([&] {
          VariableUpdate update({states[0].get(), states[1].get(), states[2].get(), states[3].get()});
        }) == dflow::Code::ok);
}

TEST_CASE("A read beside an update into a copy sees the value before, at once") {
  VariableState state("w", dflow::DType::float32, dflow::Shape{2});
  state.assign(Tensor<float>({2}, {1, 2}));
  {
    const dflow::AnyTensor held = state.read();
    VariableUpdate update({&state});
    update.writable(0, dflow::default_cpu_allocator()).span<float>()[0] = 3;
    CHECK(update.value(0).span<float>()[0] == 3);
    // In this very thread: it would not return if it waited for the update.
    CHECK(state.read().span<float>()[0] == 1);
    CHECK(state.is_initialized());
  }
  CHECK(state.read().span<float>()[0] == 3);
}

TEST_CASE("Updates write into copies for a while once a read came between, then in place again") {
  VariableState state("w", dflow::DType::float32, dflow::Shape{2});
  state.assign(Tensor<float>({2}, {1, 2}));
  const auto bump = [&](bool with_reader) {
    const void* before = state.read().raw_data();
    VariableUpdate update({&state});
    dflow::AnyTensor& value = update.writable(0, dflow::default_cpu_allocator());
    if (with_reader) CHECK(state.read().span<float>()[0] + 1 == (value.span<float>()[0] += 1));
    return value.raw_data() == before;
  };
  CHECK(bump(false));
  {
    const dflow::AnyTensor held = state.read();
    CHECK_FALSE(bump(true));
  }
  for (int i = 0; i < VariableState::copies_after_read - 1; ++i) CHECK_FALSE(bump(i % 2 == 1 && i < 9));
  int copies = 0;
  while (!bump(false)) ++copies;
  CHECK(copies < 2 * VariableState::copies_after_read);
  CHECK(bump(false));
}

TEST_CASE("A read that comes while an update writes in place waits for what it wrote") {
  VariableState state("w", dflow::DType::int32, dflow::Shape{2});
  state.assign(Tensor<std::int32_t>({2}, {0, 0}));
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> is_writing{false};
    std::int32_t seen[2] = {-1, -1};
    std::thread reader;
    {
      VariableUpdate update({&state});
      dflow::AnyTensor& value = update.writable(0, dflow::default_cpu_allocator());
      reader = std::thread([&] {
        while (!is_writing.load()) std::this_thread::yield();
        const dflow::AnyTensor read = state.read();
        seen[0] = read.span<std::int32_t>()[0];
        seen[1] = read.span<std::int32_t>()[1];
      });
      value.span<std::int32_t>()[0] = round + 1;
      is_writing = true;
      std::this_thread::yield();
      value.span<std::int32_t>()[1] = round + 1;
    }
    reader.join();
    CHECK(seen[0] == seen[1]);
    CHECK(seen[0] >= round);
  }
}

TEST_CASE("An assignment waits for an update and is not lost") {
  VariableState state("w", dflow::DType::float32, dflow::Shape{});
  state.assign(Tensor<float>::full({}, 1));
  std::thread assigner;
  {
    const dflow::AnyTensor held = state.read();
    VariableUpdate update({&state});
    update.writable(0, dflow::default_cpu_allocator()).span<float>()[0] = 2;
    assigner = std::thread([&] { state.assign(Tensor<float>::full({}, 7)); });
  }
  assigner.join();
  CHECK(state.read().span<float>()[0] == 7);
}

TEST_CASE("An update that finds no memory leaves the variable as it was") {
  dflow::LimitAllocator none(dflow::default_cpu_allocator(), 1);
  VariableState state("w", dflow::DType::float32, dflow::Shape{2});
  state.assign(Tensor<float>({2}, {1, 2}));
  {
    const dflow::AnyTensor held = state.read();
    VariableUpdate update({&state});
    CHECK(code_of([&] { update.writable(0, none); }) == dflow::Code::resource_exhausted);
  }
  CHECK(state.read().span<float>()[0] == 1);
  VariableUpdate update({&state});
  update.writable(0, none).span<float>()[0] = 5;
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
