#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <cstdint>
#include <source_location>
#include <string>
#include <tuple>

namespace df = dflow;

namespace {

/// `build` throws InvalidArgument with the line of the program.
template <class Build>
void check_refused(const Build& build, std::source_location where = std::source_location::current()) {
  const df::Status status = status_of(build);
  INFO(where.line() << ": " << status.to_string());
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(std::string(status.where().file_name()) == __FILE__);
  CHECK(status.where().line() - where.line() <= 1);  // the call that stands there, or begins in the next line
}

}  // namespace

TEST_CASE("a queue, a barrier or a table that is none is an error of the line that uses it") {
  df::Graph graph;
  const auto values = df::placeholder<float>(graph, {3});
  const auto keys = df::placeholder<std::string>(graph, {3});
  const df::FifoQueue<float> queue;
  check_refused([&] { return queue.enqueue(values); });
  check_refused([&] { return queue.dequeue(); });
  check_refused([&] { return queue.dequeue_many(3); });
  check_refused([&] { return queue.dequeue_up_to(3); });
  check_refused([&] { return queue.size(); });
  const df::Barrier<float> barrier;
  check_refused([&] { return barrier.insert_many<0>(keys, values); });
  check_refused([&] { return barrier.take_many(2); });
  const df::StagingArea<float> area;
  check_refused([&] { return area.stage(values); });
  check_refused([&] { return area.unstage(); });
  const df::SessionTensors<float> kept;
  check_refused([&] { return kept.keep(values); });
  const df::TemporaryVariable<float> temporary;
  check_refused([&] { return temporary.assign(values); });
  check_refused([&] { return temporary.destroy(); });
  const df::HashTable<std::string, float> table;
  check_refused([&] { return table.find(keys, 1.0f); });
  check_refused([&] { return table.initialize_from_text_file("words.txt"); });
  const df::MutableHashTable<std::string, float> growing;
  check_refused([&] { return growing.insert(keys, values); });
}

TEST_CASE("an array or a stack that is none, and one of empty edges, is an error of the line that uses it") {
  df::Graph graph;
  const auto rows = df::placeholder<float>(graph, {3, 2});
  const auto numbers = df::placeholder<std::int32_t>(graph, {3});
  const auto number = df::placeholder<std::int32_t>(graph, df::Shape{});
  const df::TensorArray<float> array;
  check_refused([&] { return array.read(number); });
  check_refused([&] { return array.write(number, rows); });
  check_refused([&] { return array.stack(); });
  check_refused([&] { return array.concat(); });
  check_refused([&] { return array.gather(numbers); });
  check_refused([&] { return array.size(); });
  check_refused([&] { return df::TensorStack<float>().push(rows); });
  check_refused([&] { return df::TensorStack<float>().pop(); });
  const df::Output<float> none;
  const df::Output<std::int32_t> no_numbers;
  check_refused([&] { return df::TensorArray<float>(no_numbers); });
  check_refused([&] { return df::TensorArray<float>::unstack(none); });
  check_refused([&] { return df::TensorArray<float>::scatter(numbers, none); });
  check_refused([&] { return df::TensorArray<float>::scatter(no_numbers, rows); });
  check_refused([&] { return df::TensorArray<float>::split(none, numbers); });
  check_refused([&] { return df::TensorArray<float>::split(rows, no_numbers); });
}

TEST_CASE("an empty edge that a branch or a loop is given is an error of the line that builds it") {
  df::Graph graph;
  const auto rows = df::placeholder<float>(graph, {3, 2});
  const auto number = df::placeholder<std::int32_t>(graph, df::Shape{});
  const df::Output<float> none;
  const auto same = [](auto row) { return row; };
  const auto add = [](auto sum, auto row) { return sum + row; };
  check_refused([&] {
    return df::cond(
        df::Output<bool>(), [&] { return rows; }, [&] { return rows; });
  });
  check_refused([&] {
    return df::cond(
        df::placeholder<bool>(graph, {}), [&] { return rows; }, [&] { return none; });
  });
  check_refused([&] { return df::map(same, none); });
  check_refused([&] { return df::map([](auto row) { return std::get<0>(row); }, std::tuple{rows, none}); });
  check_refused([&] { return df::map([&](auto) { return none; }, rows); });
  check_refused([&] { return df::foldl(add, rows, none); });
  check_refused([&] { return df::foldr(add, rows, none); });
  check_refused([&] { return df::scan(add, rows, none); });
  const auto goes_on = [](auto i, auto) { return i < 3; };
  const auto next = [](auto i, auto x) { return std::tuple{i + 1, x}; };
  check_refused([&] { return df::while_loop(goes_on, next, std::tuple{number, none}); });
}
