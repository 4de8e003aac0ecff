#include <dflow/graph/scope_extensions.hpp>

#include <dflow/graph/graph_store.hpp>

#include "catch.hpp"

#include <memory>
#include <utility>

using namespace dflow;

namespace {

struct ScopeColour final : ScopeExtension {
  explicit ScopeColour(int of) : value(of) {}
  int value;
};

struct ScopeSize final : ScopeExtension {};

}  // namespace

TEST_CASE("a scope has no extension until one is set") {
  const ScopeExtensions extensions;
  CHECK(extensions.find<ScopeColour>() == nullptr);
}

TEST_CASE("an extension takes the place of one of its type alone") {
  ScopeExtensions extensions;
  const auto size = std::make_shared<ScopeSize>();
  extensions.set(std::make_shared<ScopeColour>(1));
  extensions.set(size);
  extensions.set(std::make_shared<ScopeColour>(2));
  REQUIRE(extensions.find<ScopeColour>() != nullptr);
  CHECK(extensions.find<ScopeColour>()->value == 2);
  CHECK(extensions.find<ScopeSize>() == size);
}

TEST_CASE("scopes inside share an extension, and the scope around has its own again") {
  GraphStore graph;
  GraphStore::Scope scope = graph.scope();
  scope.extensions.set(std::make_shared<ScopeColour>(1));
  const ScopeGuard outer = graph.enter(std::move(scope));
  const auto of_outer = graph.scope().extensions.find<ScopeColour>();
  {
    const ScopeGuard inner = graph.enter(graph.scope());
    CHECK(graph.scope().extensions.find<ScopeColour>() == of_outer);
    GraphStore::Scope innermost = graph.scope();
    innermost.extensions.set(std::make_shared<ScopeColour>(2));
    const ScopeGuard inside = graph.enter(std::move(innermost));
    CHECK(graph.scope().extensions.find<ScopeColour>()->value == 2);
  }
  CHECK(graph.scope().extensions.find<ScopeColour>() == of_outer);
}
