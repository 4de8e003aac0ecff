#include <dflow/kernels/contract/host_arguments.hpp>

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>

#include "catch.hpp"

#include <algorithm>
#include <vector>

using namespace dflow;

TEST_CASE("a list is one argument, however long", "[kernels]") {
  Graph graph;
  std::vector<Output<float>> xs;
  for (int i = 0; i < 70; ++i) xs.push_back(placeholder<float>(graph, {2}));
  const Node& join = concat(0, xs).node();
  const Node& rows = unpack(placeholder<float>(graph, {90, 2}), 90)[0].node();
  KernelEntry entry;
  CHECK(host_inputs_of(join, entry).empty());
  CHECK(host_outputs_of(rows, entry).empty());
  const auto ones = [](const std::vector<bool>& edges) { return std::count(edges.begin(), edges.end(), true); };
  const bool list_first = join.op->inputs[0].is_list();
  for (const bool list : {true, false}) {
    entry.host_inputs = list == list_first ? 1 : 2;
    const std::vector<bool> edges = host_inputs_of(join, entry);
    REQUIRE(edges.size() == join.inputs.size());
    CHECK(ones(edges) == (list ? 70 : 1));
  }
  entry.host_inputs = 3;
  CHECK(ones(host_inputs_of(join, entry)) == 71);
  entry.host_inputs = ~std::uint64_t{0};  // more than the op has
  CHECK(ones(host_inputs_of(join, entry)) == 71);
  entry.host_outputs = 1;
  CHECK(ones(host_outputs_of(rows, entry)) == 90);
}

TEST_CASE("strings and handles are objects of the host", "[kernels]") {
  CHECK(is_host_object(DType::string));
  CHECK(is_host_object(DType::resource));
  CHECK_FALSE(is_host_object(DType::float32));
}
