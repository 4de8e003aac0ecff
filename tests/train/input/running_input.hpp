// A session with running queue runners, and the values that come out of it.
#pragma once

#include <dflow/session/session.hpp>
#include <dflow/train/input/queue_runner.hpp>

#include "catch.hpp"

#include <utility>
#include <vector>

/// Its runners run until it goes.
struct RunningInput {
  explicit RunningInput(const dflow::Graph& graph, dflow::SessionOptions options = {.num_threads = 2})
      : session(graph, std::move(options)) {
    dflow::train::start_queue_runners(session, graph, coordinator);
  }

  dflow::Session session;
  dflow::train::Coordinator coordinator;
};

/// The values of a scalar edge until OutOfRange.
template <class T>
std::vector<T> values_until_end(dflow::Session& session, const dflow::Output<T>& edge, int at_most = 1000) {
  std::vector<T> values;
  try {
    while (static_cast<int>(values.size()) < at_most) values.push_back(session.run(edge).scalar());
  } catch (const dflow::Error& error) {
    CHECK(error.code() == dflow::Code::out_of_range);
  }
  return values;
}

/// The elements of a tensor.
template <class T>
std::vector<T> elements_of(const dflow::Tensor<T>& tensor) {
  return {tensor.begin(), tensor.end()};
}
