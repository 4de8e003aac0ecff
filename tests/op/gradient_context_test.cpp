#include <dflow/op/gradient_context.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <stdexcept>
#include <string>

using namespace dflow;

namespace {

enum class Fault { none, index, negative, output, dtype, shape, foreign, rows, runtime_error, number, builder };
[[maybe_unused]] std::array<std::string_view, 11> attr_enum_names(Fault) {
  return {"none",    "index", "negative",      "output", "dtype",  "shape",
          "foreign", "rows",  "runtime_error", "number", "builder"};
}

/// An op with a gradient that does as its attribute says.
struct Faulty : Op<"Faulty", TypeList<float>> {
  struct Attrs {
    Fault fault = Fault::none;
  };
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static void gradient(GradientContext& context) {
    static Graph other;
    const Expr dy = context.dy();
    switch (context.attrs<Faulty>().fault) {
      case Fault::none:
        return context.set_dx(0, dy);
      case Fault::index:
        return context.set_dx(1, dy);
      case Fault::negative:
        return context.set_dx(-1, dy);
      case Fault::output:
        return context.set_dx(0, context.dy(1));
      case Fault::dtype:
        return context.set_dx(0, build<Cast>({dy}, {}, {}, type_args<float, double>()));
      case Fault::shape:
        return context.set_dx(0, build<Sum>({dy, constant_of(context, 0)}));
      case Fault::foreign:
        return context.set_dx(0, constant(other, 1.0f));
      case Fault::rows:
        return context.set_dx(0, IndexedSlices{dy, AnyOutput(), shape_of(dy)});
      case Fault::runtime_error:
        throw std::runtime_error("a word of its own");
      case Fault::number:
        throw 42;
      case Fault::builder:
        return context.set_dx(0, build<MatMul>({dy, dy}));
    }
  }
  static AnyOutput constant_of(GradientContext& context, std::int32_t value) {
    return detail::int32_constant(context.graph(), value, {});
  }
};

}  // namespace

TEST_CASE("a fault of a gradient function is an Error with op, node and the line of the program", "[gradient]") {
  const std::vector<std::tuple<Fault, Code, std::string>> cases{
      {Fault::index, Code::invalid_argument, "names input 1 of 1"},
      {Fault::negative, Code::invalid_argument, "names input -1 of 1"},
      {Fault::output, Code::invalid_argument, "names output 1 of 1"},
      {Fault::dtype, Code::invalid_argument, "is double [3], the input is float [3]"},
      {Fault::shape, Code::invalid_argument, "is float [], the input is float [3]"},
      {Fault::foreign, Code::invalid_argument, "belongs to another graph"},
      {Fault::rows, Code::invalid_argument, "empty or belong to another graph"},
      {Fault::runtime_error, Code::internal, "a word of its own"},
      {Fault::number, Code::unknown, ""},
      {Fault::builder, Code::invalid_argument, "MatMul"},
  };
  Graph graph;
  const auto x = placeholder<float>(graph, {3});
  for (const auto& [fault, code, text] : cases) {
    const auto line = __LINE__ + 1;
    const auto y = apply<Faulty>(x, {.fault = fault});
    INFO(attr_enum_names(fault)[static_cast<std::size_t>(fault)]);
    try {
      gradients(y, x);
      FAIL("it was differentiated");
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(error.code() == code);
      CHECK(std::string(error.what()).find(text) != std::string::npos);
      CHECK_FALSE(error.status().op().empty());
      CHECK(std::string(error.status().where().file_name()) == __FILE__);
      CHECK(error.status().where().line() == line);
    }
  }
  CHECK_NOTHROW(gradients(apply<Faulty>(x), x));
}
