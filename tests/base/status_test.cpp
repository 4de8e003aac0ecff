#include <dflow/base/status.hpp>

#include "catch.hpp"

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

TEST_CASE("a default status is ok and costs one pointer", "[status]") {
  const Status status;
  CHECK(status.ok());
  CHECK(status.code() == Code::ok);
  CHECK(status.message().empty());
  CHECK(status.to_string() == "OK");
  CHECK(sizeof(Status) == sizeof(void*));
}

TEST_CASE("codes have gRPC's numbers and names", "[status]") {
  CHECK(static_cast<int>(Code::invalid_argument) == 3);
  CHECK(static_cast<int>(Code::unauthenticated) == 16);
  CHECK(code_name(Code::ok) == "OK");
  CHECK(code_name(Code::invalid_argument) == "INVALID_ARGUMENT");
  CHECK(code_name(Code::deadline_exceeded) == "DEADLINE_EXCEEDED");
  CHECK(code_name(Code::unauthenticated) == "UNAUTHENTICATED");
  CHECK(code_from_number(15) == Code::data_loss);
  CHECK(code_from_number(17) == Code::unknown);
  CHECK(code_from_number(-1) == Code::unknown);
}

TEST_CASE("each maker gives its own code", "[status]") {
  const struct {
    Status status;
    Code code;
  } rows[] = {
      {Status::cancelled("m"), Code::cancelled},
      {Status::unknown("m"), Code::unknown},
      {Status::invalid_argument("m"), Code::invalid_argument},
      {Status::deadline_exceeded("m"), Code::deadline_exceeded},
      {Status::not_found("m"), Code::not_found},
      {Status::already_exists("m"), Code::already_exists},
      {Status::permission_denied("m"), Code::permission_denied},
      {Status::resource_exhausted("m"), Code::resource_exhausted},
      {Status::failed_precondition("m"), Code::failed_precondition},
      {Status::aborted("m"), Code::aborted},
      {Status::out_of_range("m"), Code::out_of_range},
      {Status::unimplemented("m"), Code::unimplemented},
      {Status::internal("m"), Code::internal},
      {Status::unavailable("m"), Code::unavailable},
      {Status::data_loss("m"), Code::data_loss},
      {Status::unauthenticated("m"), Code::unauthenticated},
  };
  for (const auto& [status, code] : rows) {
    CHECK(status.code() == code);
    CHECK(status.message() == "m");
    CHECK(status.to_string() == std::string(code_name(code)) + ": m");
  }
}

TEST_CASE("context is printed after the message", "[status]") {
  const auto here = SourceLocation::current();
  const Status status =
      Status::invalid_argument("msg").with_node("MatMul", "layer1/matmul").with_device("/cpu:0").with_location(here);
  CHECK(status.to_string() == "INVALID_ARGUMENT: msg [op MatMul, node 'layer1/matmul', device /cpu:0, at " +
                                  std::string(here.file_name()) + ":" + std::to_string(here.line()) + "]");
  CHECK(status.op() == "MatMul");
  CHECK(status.node() == "layer1/matmul");
  CHECK(status.device() == "/cpu:0");
  CHECK(status.task().empty());
  CHECK(status.where().line() == here.line());
  CHECK(status.with_task("/job:ps/task:1").task() == "/job:ps/task:1");
}

TEST_CASE("context closest to the fault stays, and adding it leaves the original alone", "[status]") {
  const Status bare = Status::internal("x");
  const Status inner = bare.with_node("Add", "a").with_device("/cpu:1");
  CHECK(bare.node().empty());
  CHECK(inner.with_node("Sub", "b").node() == "a");
  CHECK(inner.with_device("/cpu:0").device() == "/cpu:1");
  CHECK(inner.with_prefix("while running: ").message() == "while running: x");
  CHECK(inner.with_prefix("p").node() == "a");
  CHECK(Status().with_node("Add", "a").with_device("d").with_task("t").with_prefix("p").ok());
}

TEST_CASE("a status may be copied and assigned, also to itself", "[status]") {
  Status a = Status::aborted("a");
  Status b = a;
  CHECK(a == b);
  b = Status::data_loss("b");
  CHECK(a.code() == Code::aborted);
  Status& alias = a;
  a = alias;
  CHECK(a.message() == "a");
  a = std::move(b);
  CHECK(a.code() == Code::data_loss);
  CHECK_FALSE(a == Status::aborted("b"));
  CHECK_FALSE(a == Status());
}

TEST_CASE("copies of one status may be used from many threads", "[status]") {
  const Status shared = Status::unavailable("peer gone").with_task("/job:worker/task:3");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([copy = shared] {
      for (int i = 0; i < 1000; ++i) {
        const Status another = copy;
        if (another.message() != "peer gone") std::terminate();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(shared.message() == "peer gone");
}

TEST_CASE("an Error carries its status and prints it", "[status]") {
  try {
    throw Error(Status::out_of_range("index 7").with_node("Gather", "g"));
  } catch (const std::exception& caught) {
    CHECK(std::string(caught.what()) == "OUT_OF_RANGE: index 7 [op Gather, node 'g']");
    const auto& error = dynamic_cast<const Error&>(caught);
    CHECK(error.code() == Code::out_of_range);
    CHECK(error.status().node() == "g");
  }
  CHECK_NOTHROW(throw_if_error(Status()));
  CHECK_THROWS_AS(throw_if_error(Status::internal("x")), Error);
  CHECK_THROWS_AS(throw_error(Status::internal("x")), Error);
}

TEST_CASE("a printed error commands no terminal, and is whole", "[status]") {
  using namespace std::string_literals;
  const Status status =
      Status::data_loss("tensor 'a\x1b[31m\0b' is cut\nline 2"s).with_node("Op\x07", "n\x9b \xc3\xa9");
  const std::string text = "DATA_LOSS: tensor 'a\\x1b[31m\\x00b' is cut\nline 2 [op Op\\x07, node 'n\x9b \xc3\xa9']";
  CHECK(status.to_string() == text);
  CHECK(std::string(Error(status).what()) == text);
  CHECK(status.message() == "tensor 'a\x1b[31m\0b' is cut\nline 2"s);
  CHECK(Status::data_loss(std::string(100'000, 'a')).to_string().size() == 100'011);
  CHECK(Status::data_loss("a\n\n").to_string() == "DATA_LOSS: a\n\n");
}

TEST_CASE("any exception becomes a status", "[status]") {
  const auto status_of = [](auto thrown) {
    try {
      throw thrown;
    } catch (...) {
      return status_of_current_exception();
    }
  };
  CHECK(status_of(Error(Status::aborted("a"))) == Status::aborted("a"));
  CHECK(status_of(std::bad_alloc()).code() == Code::resource_exhausted);
  CHECK(status_of(std::runtime_error("boom")) == Status::internal("boom"));
  CHECK(status_of(3).code() == Code::unknown);
}

TEST_CASE("StatusOr holds a value or throws its status", "[status]") {
  StatusOr<std::string> text = "abc";
  REQUIRE(text.ok());
  CHECK(text.value() == "abc");
  CHECK(text->size() == 3);
  CHECK(text.status().ok());

  StatusOr<std::string> none = Status::not_found("no such key");
  CHECK_FALSE(none.ok());
  CHECK(none.status().code() == Code::not_found);
  CHECK_THROWS_AS(none.value(), Error);

  StatusOr<std::unique_ptr<int>> owned = std::make_unique<int>(4);
  const std::unique_ptr<int> taken = *std::move(owned);
  CHECK(*taken == 4);

  StatusOr<int> bug = Status();
  CHECK(bug.status().code() == Code::internal);
}
