#include "random_call.hpp"

#include <dflow/op/op_table.hpp>

#include "catch.hpp"
#include "support/sanitized.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// Ops that are not called, and why.
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> left_out{
    {{"WriteFile", "it would write files of any name"}}};

constexpr int usual_calls = is_sanitized ? 30 : 200;
constexpr std::size_t num_parts = 8;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

bool is_called(const OpDef& op) {
  if (op.role == OpRole::placeholder || op.role == OpRole::send || op.role == OpRole::recv) return false;
  return std::none_of(left_out.begin(), left_out.end(), [&](const auto& entry) { return entry.first == op.name; });
}

std::uint64_t case_seed(std::uint64_t seed, std::string_view op, std::uint64_t i) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a, the same everywhere
  const auto add = [&hash](std::uint64_t byte) { hash = (hash ^ (byte & 0xFF)) * 0x100000001B3u; };
  for (const char c : op) add(static_cast<unsigned char>(c));
  for (int shift = 0; shift < 64; shift += 8) add(seed >> shift), add(i >> shift);
  return hash;
}

/// Calls every op with a table position of `part` modulo `num_parts`. DFLOW_RANDOM_CALLS is the number of calls of each
/// op, and DFLOW_SEED draws other calls. DFLOW_RANDOM_OP and DFLOW_RANDOM_CASE pick one call and print it before it
/// runs.
void call_part(std::size_t part) {
  const std::uint64_t seed = from_environment("DFLOW_SEED", 1);
  const std::uint64_t num_calls = from_environment("DFLOW_RANDOM_CALLS", usual_calls);
  const char* const only_op = std::getenv("DFLOW_RANDOM_OP");
  const char* const only_case = std::getenv("DFLOW_RANDOM_CASE");
  std::vector<const OpDef*> ops;
  std::size_t position = 0;
  standard_op_table().for_each([&](const OpDef& op) {
    const bool is_mine = position++ % num_parts == part;
    if (is_mine && (only_op != nullptr ? op.name == only_op : is_called(op))) ops.push_back(&op);
  });
  std::uint64_t calls = 0, values = 0, gradients = 0, faults = 0;
  for (const OpDef* op : ops) {
    // The last line of a run that crashes names the op.
    std::cout << "  " << op->name << std::flush;
    std::uint64_t values_of_op = 0, faults_of_op = 0;
    for (std::uint64_t i = 0; i < num_calls; ++i) {
      if (only_case != nullptr && i != from_environment("DFLOW_RANDOM_CASE", 0)) continue;
      INFO("reproduce: DFLOW_SEED=" << seed << " DFLOW_RANDOM_OP=" << op->name << " DFLOW_RANDOM_CASE=" << i);
      const RandomCall call = random_call(*op, case_seed(seed, op->name, i));
      if (only_case != nullptr) std::cout << "\n" << call.to_string() << std::endl;
      const RandomCallOutcome outcome = run_random_call(call);
      ++calls;
      values_of_op += outcome.has_value;
      gradients += outcome.has_gradient;
      if (outcome.fault.empty()) continue;
      ++faults;
      if (++faults_of_op > 3) continue;
      INFO(call.to_string());
      FAIL_CHECK(outcome.fault);
    }
    std::cout << ": " << values_of_op << " of " << num_calls << " gave a value\n";
    values += values_of_op;
  }
  std::cout << "count: " << calls << " random calls of " << ops.size() << " ops, " << values << " gave a value, "
            << gradients << " a gradient, " << faults << " failed\n";
  CHECK(faults == 0);
}

}  // namespace

TEST_CASE("a random call of an op gives a value or an error, part 1 of 8", "[ops][random]") { call_part(0); }
TEST_CASE("a random call of an op gives a value or an error, part 2 of 8", "[ops][random]") { call_part(1); }
TEST_CASE("a random call of an op gives a value or an error, part 3 of 8", "[ops][random]") { call_part(2); }
TEST_CASE("a random call of an op gives a value or an error, part 4 of 8", "[ops][random]") { call_part(3); }
TEST_CASE("a random call of an op gives a value or an error, part 5 of 8", "[ops][random]") { call_part(4); }
TEST_CASE("a random call of an op gives a value or an error, part 6 of 8", "[ops][random]") { call_part(5); }
TEST_CASE("a random call of an op gives a value or an error, part 7 of 8", "[ops][random]") { call_part(6); }
TEST_CASE("a random call of an op gives a value or an error, part 8 of 8", "[ops][random]") { call_part(7); }
