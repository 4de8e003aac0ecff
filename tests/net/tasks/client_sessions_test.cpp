#include <dflow/net/tasks/client_sessions.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <memory>
#include <set>
#include <vector>

using namespace dflow;
using net::Visit;

TEST_CASE("sessions are a visit's, and of another visit of the same client none is found", "[net]") {
  net::detail::ClientSessions<int> sessions;
  const Visit::Id first{"/job:worker/task:0", 7, 1}, second{"/job:worker/task:0", 7, 2};
  CHECK(sessions.find(first, 1) == nullptr);
  CHECK(sessions.take(first, 1) == nullptr);
  CHECK(sessions.take_all(first).empty());
  const auto one = std::make_shared<int>(1), two = std::make_shared<int>(2), three = std::make_shared<int>(3);
  sessions.add(first, 1, one, 2);
  sessions.add(second, 1, two, 2);
  sessions.add(second, 2, three, 2);
  CHECK(sessions.size() == 3);
  CHECK(sessions.find(first, 1) == one);
  CHECK(sessions.find(first, 2) == nullptr);
  CHECK(sessions.find(second, 1) == two);
  CHECK(sessions.take(second, 1) == two);
  CHECK(sessions.take(second, 1) == nullptr);
  CHECK(sessions.take_all(second) == std::vector{three});
  CHECK(sessions.by_visit().size() == 1);
  CHECK(sessions.take(first, 1) == one);
  CHECK(sessions.by_visit().empty());
}

TEST_CASE("a visit has no more sessions than it may, and others have theirs", "[net]") {
  net::detail::ClientSessions<int> sessions;
  const Visit::Id first{"/job:worker/task:0", 7, 1}, second{"/job:worker/task:1", 7, 1};
  CHECK(code_of([&] { sessions.add(first, 1, std::make_shared<int>(0), 0); }) == Code::resource_exhausted);
  CHECK(sessions.by_visit().empty());
  sessions.add(first, 1, std::make_shared<int>(1), 1);
  CHECK(code_of([&] { sessions.add(first, 2, std::make_shared<int>(2), 1); }) == Code::resource_exhausted);
  sessions.add(second, 1, std::make_shared<int>(3), 1);
  std::multiset<int> values;
  for (const auto& session : sessions.take_all()) values.insert(*session);
  CHECK(values == std::multiset<int>{1, 3});
  CHECK(sessions.size() == 0);
}
