#include <dflow/base/threads/completion.hpp>

#include "catch.hpp"

#include <memory>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

struct Told {
  Completion completion() {
    return [this](Status status) { told.push_back(std::move(status)); };
  }
  std::vector<Status> told;
};

}  // namespace

TEST_CASE("the first call of a completion counts", "[base][completion]") {
  Told t;
  Completion done = t.completion();
  CHECK(static_cast<bool>(done));
  done(Status::data_loss("lost"));
  CHECK(!done);
  done(Status());
  done = nullptr;
  REQUIRE(t.told.size() == 1);
  CHECK(t.told[0].code() == Code::data_loss);
  CHECK(!Completion::was_dropped(t.told[0]));
}

TEST_CASE("a completion that is dropped, or gives way to another, reports Internal", "[base][completion]") {
  Told dropped, replaced, moved;
  { const Completion forgotten = dropped.completion(); }
  Completion done = replaced.completion();
  done = moved.completion();
  REQUIRE(replaced.told.size() == 1);
  Completion there = std::move(done);
  CHECK(moved.told.empty());
  done(Status());  // NOLINT(bugprone-use-after-move): it holds nothing, and says so to nobody
  CHECK(moved.told.empty());
  there = nullptr;
  for (const Told* t : {&dropped, &replaced, &moved}) {
    REQUIRE(t->told.size() == 1);
    CHECK(t->told[0].code() == Code::internal);
    CHECK(Completion::was_dropped(t->told[0]));
  }
}

TEST_CASE("a completion may call itself and destroy what holds it", "[base][completion]") {
  int calls = 0;
  auto held = std::make_unique<Completion>();
  *held = [&](Status) {
    ++calls;
    (*held)(Status());
    held.reset();
  };
  (*held)(Status());
  CHECK(calls == 1);
  CHECK(held == nullptr);
}
