// Branches, loops, arrays and recurrent cells give the same values and gradients as TensorFlow. The programs come from
// tools/oracle/control_flow_programs.py, by name.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/sanitized.hpp"
#include "support/source_folder.hpp"

#if defined(DFLOW_TEST_HAS_JSON)
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

using ProgramEdges = std::vector<df::AnyOutput>;
/// Builds a program from its inputs. If the program makes its inputs as variables, it puts their edges in place.
using BuildProgram = std::function<ProgramEdges(df::Graph&, ProgramEdges&)>;
using ProgramTable = std::map<std::string, BuildProgram>;

using Int = df::Output<std::int32_t>;

/// The last values of a loop, without the counter: `body(i, ...)` applied to `first`, `count` times.
template <class Body, class... Vs>
auto counted(df::Graph& graph, int count, Body body, const std::tuple<Vs...>& first,
             const df::WhileOptions& options = {}) {
  auto last = df::while_loop([&](auto i, const auto&...) { return i < count; },
                             [&](auto i, const auto&... v) { return std::tuple_cat(std::tuple{i + 1}, body(i, v...)); },
                             std::tuple_cat(std::tuple{df::constant(graph, 0)}, first), options);
  return std::apply([](const auto&, const auto&... v) { return std::tuple{v...}; }, last);
}

template <class... Vs>
ProgramEdges edges(const std::tuple<Vs...>& of) {
  return std::apply([](const auto&... v) { return ProgramEdges{v...}; }, of);
}

/// A program of inputs of element type T.
template <class T, class Build>
BuildProgram of_edges(Build build) {
  return [build](df::Graph& graph, ProgramEdges& inputs) {
    std::vector<df::Output<T>> of;
    for (const df::AnyOutput& each : inputs) {
      if (each.dtype() == df::dtype_of<T>) of.emplace_back(each);
    }
    return build(graph, of);
  };
}

template <class T>
void add_branches(ProgramTable& to) {
  using Out = df::Output<T>;
  using Of = std::vector<Out>;
  to["branch, taken"] = to["branch, not taken"] = of_edges<T>([](df::Graph&, const Of& of) {
    const Out &x = of[0], &w = of[1];
    return ProgramEdges{df::cond(
        x > T(0), [&] { return Out(df::exp(w * x)); }, [&] { return Out(w * w * x * x * x); })};
  });
  to["branch that reads nothing"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const Out &x = of[0], &w = of[1];
    auto y = df::cond(
        x > T(0), [&] { return Out(df::constant(graph, T(2))); }, [&] { return Out(x * w); });
    return ProgramEdges{y * w};
  });
  for (const char* which : {"0", "1", "2", "7"}) {
    to["branch " + std::string(which) + " of three"] = [](df::Graph&, ProgramEdges& inputs) {
      const Out x(inputs[1]);
      return ProgramEdges{
          df::case_of(Int(inputs[0]), std::tuple{[&] { return Out(x * x); }, [&] { return Out(df::sin(x) * x); },
                                                 [&] { return Out(df::exp(x)); }})};
    };
  }
  to["branch of two results in a branch"] = of_edges<T>([](df::Graph&, const Of& of) {
    const Out &x = of[0], &m = of[1];
    const auto inner = [&] {
      return df::cond(
          x > T(1),
          [&] {
            return std::tuple{Out(m * x), m};
          },
          [&] {
            return std::tuple{Out(df::matmul(m, m) * x), Out(df::sin(m))};
          });
    };
    return edges(df::cond(x > T(0), inner, [&] { return std::tuple{m, m}; }));
  });
}

template <class T>
void add_loops(ProgramTable& to) {
  using Out = df::Output<T>;
  using Of = std::vector<Out>;
  to["loop to a limit"] = of_edges<T>([](df::Graph&, const Of& of) {
    return ProgramEdges{df::while_loop([](auto v) { return v < T(100); }, [&](auto v) { return v * of[1]; }, of[0])};
  });
  to["loop of products of matrices"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const auto body = [&](auto, auto v) { return std::tuple{Out(df::tanh(df::matmul(v, of[1]) + of[2]))}; };
    return edges(counted(graph, 4, body, std::tuple{of[0]}));
  });
  to["loop of no iteration"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    return edges(counted(
        graph, 0, [&](auto, auto v) { return std::tuple{Out(v * of[1])}; }, std::tuple{of[0]}));
  });
  to["loop that sums what it makes"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const auto body = [&](auto, auto power, auto total) {
      const Out next = power * df::sin(of[1]) + power;
      return std::tuple{next, Out(total + df::reduce_sum(next * next))};
    };
    return edges(counted(graph, 4, body, std::tuple{of[0], df::constant(graph, T(0))}));
  });
  to["loop in a loop"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const Out& x = of[0];
    const auto body = [&](auto i, auto total) {
      auto [j, inner] = df::while_loop([&](auto j, auto) { return j < i + 1; },
                                       [&](auto j, auto v) {
                                         return std::tuple{j + 1, Out(df::tanh(v * x) + v / T(2))};
                                       },
                                       std::tuple{df::constant(graph, 0), Out(total + x)});
      return std::tuple{Out(total + inner)};
    };
    return edges(counted(graph, 3, body, std::tuple{x}));
  });
  to["loop in a branch in a loop"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const Out& x = of[0];
    const auto body = [&](auto, auto v) {
      return std::tuple{df::cond(
          v > T(1), [&] { return Out(v / x); },
          [&] {
            const auto inner = [&](auto, auto u) { return std::tuple{Out(u + x * u * u)}; };
            return std::get<0>(counted(graph, 2, inner, std::tuple{v}));
          })};
    };
    return edges(counted(graph, 4, body, std::tuple{Out(x / T(2))}));
  });
  to["branches in a loop"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const Out& x = of[0];
    const auto body = [&](auto i, auto y) {
      return std::tuple{df::cond(
          df::equal(df::mod(i, df::constant(graph, 2)), 0), [&] { return Out(y * df::exp(x / T(4))); },
          [&] { return Out(df::sin(y) + x); })};
    };
    return edges(counted(graph, 4, body, std::tuple{x}));
  });
  to["loop that stops a gradient"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const auto body = [&](auto, auto v) { return std::tuple{Out(v * of[1] + df::stop_gradient(v * v))}; };
    return edges(counted(graph, 3, body, std::tuple{of[0]}));
  });
  to["loop that gathers rows"] = [](df::Graph& graph, ProgramEdges& inputs) {
    const Out table(inputs[0]);
    const Int ids(inputs[1]);
    const auto body = [&](auto i, auto total) {
      return std::tuple{Out(df::tanh(total + df::gather(table, df::gather(ids, i))) * T(1.5))};
    };
    return edges(counted(graph, 4, body, std::tuple{df::fill<T>(graph, {2}, T(0))}));
  };
  to["loop of a variable that grows"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const auto body = [&](auto, auto rows) {
      return std::tuple{Out(df::concat(0, {Out(df::sin(rows) * T(2)), Out(of[0] * of[0])}))};
    };
    return edges(counted(graph, 3, body, std::tuple{df::identity(of[0])}, {.shapes = {df::Shape{}, {df::dynamic, 2}}}));
  });
  to["loop that descends by gradients"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const auto body = [&](auto, auto v) {
      const Out loss = df::reduce_sum(df::square(df::tanh(v * of[1]) - T(0.5)));
      return std::tuple{Out(v - of[2] * df::gradients(loss, v))};
    };
    return edges(counted(graph, 3, body, std::tuple{of[0]}));
  });
  to["function called in a loop"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    auto scaled = df::function(graph, "scaled", [&](df::Output<T> v) { return Out(df::sin(v) * of[1]); });
    return edges(counted(
        graph, 3, [&](auto, auto v) { return std::tuple{Out(scaled(scaled(v)) + v)}; }, std::tuple{of[0]}));
  });
  to["recursion, unrolled"] = [](df::Graph& graph, ProgramEdges& inputs) {
    const Out x(inputs[0]);
    auto power = df::recursive_function<df::Output<T>(Int)>(graph, "power", [&](const auto& self, Int k) {
      return df::cond(
          k < 1, [&] { return Out(df::ones_like(x)); }, [&] { return Out(x * self(k - 1)); });
    });
    return ProgramEdges{power(Int(inputs[1])) * df::sin(x)};
  };
}

template <class T>
void add_rows(ProgramTable& to) {
  using Out = df::Output<T>;
  using Of = std::vector<Out>;
  to["map of two to two"] = of_edges<T>([](df::Graph&, const Of& of) {
    return edges(df::map(
        [](const auto& row) {
          const auto& [x, k] = row;
          return std::tuple{Out(df::reduce_sum(x) * k), Out(df::sin(x) * k)};
        },
        std::tuple{of[0], of[1]}));
  });
  to["map that reads all rows"] = of_edges<T>([](df::Graph&, const Of& of) {
    return ProgramEdges{df::map([&](auto row) { return df::tanh(row * df::reduce_sum(of[0] * of[0])); }, of[0])};
  });
  to["map in a map"] = of_edges<T>([](df::Graph&, const Of& of) {
    return ProgramEdges{df::map(
        [&](auto row) {
          return df::reduce_sum(df::map([&](auto element) { return df::sin(element) * df::reduce_sum(row); }, row));
        },
        of[0])};
  });
  to["folds"] = of_edges<T>([](df::Graph&, const Of& of) {
    return ProgramEdges{df::foldl([](auto state, auto row) { return Out(df::sin(state) + row * state); }, of[0], of[1]),
                        df::foldr([](auto state, auto row) { return Out(state * row + row); }, of[0], of[1])};
  });
  to["scans"] = of_edges<T>([](df::Graph&, const Of& of) {
    const auto backward = [](auto state, auto row) { return Out(state * T(2) + row * row * state); };
    return ProgramEdges{df::scan([](auto state, auto row) { return Out(df::tanh(state * row) + row); }, of[0], of[1]),
                        df::scan(backward, of[0], of[1], {.reverse = true})};
  });
  to["scan of two states"] = of_edges<T>([](df::Graph&, const Of& of) {
    const auto step = [](const auto& state, auto element) {
      return std::tuple{Out(df::sin(std::get<1>(state) + element)), Out(std::get<0>(state) * element)};
    };
    return edges(df::scan(step, of[0], std::tuple{of[1], Out(of[1] * T(2))}));
  });
}

template <class T>
void add_arrays(ProgramTable& to) {
  using Out = df::Output<T>;
  using Of = std::vector<Out>;
  using Array = df::TensorArray<T>;
  const auto places = [](df::Graph& graph, std::vector<std::int32_t> of) {
    return df::constant(graph, df::Tensor<std::int32_t>({static_cast<std::int64_t>(of.size())}, of));
  };
  to["array that a loop writes"] = of_edges<T>([places](df::Graph& graph, const Of& of) {
    const auto body = [&](auto i, auto rows) {
      return std::tuple{rows.write(i, Out(df::sin(of[0] * df::cast<T>(i + 1))))};
    };
    const Array rows = std::get<0>(counted(graph, 5, body, std::tuple{Array(graph, 5, {2})}));
    return ProgramEdges{rows.stack(), rows.gather(places(graph, {4, 0})), rows.read(df::constant(graph, 3))};
  });
  to["array gathered twice at a place"] = of_edges<T>([places](df::Graph& graph, const Of& of) {
    return ProgramEdges{Array::unstack(of[0] * of[0]).gather(places(graph, {2, 0, 2}))};
  });
  to["array that a loop reads and writes"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const auto first = Array(graph, 6, df::Shape{}).write(df::constant(graph, 0), of[0]);
    const auto body = [&](auto i, auto rows) {
      const Out one = rows.read(i), two = rows.read(i + 1);
      return std::tuple{rows.write(i + 2, Out(two * df::sin(one) + one))};
    };
    return ProgramEdges{
        std::get<0>(counted(graph, 4, body, std::tuple{first.write(df::constant(graph, 1), of[1])})).stack()};
  });
  to["array of rows, from the last to the first"] = of_edges<T>([](df::Graph& graph, const Of& of) {
    const Array rows = Array::unstack(of[0]);
    const auto body = [&](auto i, auto state) { return std::tuple{Out(df::tanh(state + rows.read(3 - i)) * state)}; };
    return edges(counted(graph, 4, body, std::tuple{of[1]}));
  });
  to["array of scattered rows"] = [](df::Graph& graph, ProgramEdges& inputs) {
    const Out x(inputs[0]);
    const auto rows = Array::scatter(Int(inputs[1]), x * x);
    return ProgramEdges{rows.stack(), Out(rows.read(df::constant(graph, 0)) * rows.read(df::constant(graph, 2)))};
  };
}

/// Puts the read edges of the cell's variables in the places of the inputs after the first.
template <class Cell>
void put_variables(const Cell& cell, ProgramEdges& inputs) {
  const std::vector<df::AnyVariable> variables = cell.variables();
  for (std::size_t i = 0; i < variables.size(); ++i) inputs.at(i + 1) = variables[i].read_edge();
}

template <class T>
void add_cells(ProgramTable& to) {
  using Out = df::Output<T>;
  const auto lstm = [](bool reverse) {
    return [reverse](df::Graph&, ProgramEdges& inputs) {
      df::LstmCell cell(2);
      df::RnnOptions options{.reverse = reverse};
      if (inputs.size() > 3) options.sequence_length = Int(inputs[3]);
      auto [outputs, state] = df::dynamic_rnn(cell, Out(inputs[0]), options);
      put_variables(cell, inputs);
      return ProgramEdges{outputs, std::get<0>(state), std::get<1>(state)};
    };
  };
  to["LSTM"] = to["LSTM with lengths"] = lstm(false);
  to["LSTM, backwards"] = lstm(true);
  to["GRU"] = [](df::Graph&, ProgramEdges& inputs) {
    df::GruCell cell(2);
    auto [outputs, state] = df::dynamic_rnn(cell, Out(inputs[0]));
    put_variables(cell, inputs);
    return ProgramEdges{outputs, state};
  };
}

template <class T>
ProgramTable program_table() {
  ProgramTable table;
  add_branches<T>(table);
  add_loops<T>(table);
  add_rows<T>(table);
  add_arrays<T>(table);
  add_cells<T>(table);
  return table;
}

// ---- comparing ----

df::Shape json_shape(const nlohmann::json& of) {
  return df::Shape(std::span<const std::int64_t>(of.at("shape").get<std::vector<std::int64_t>>()));
}

template <class T>
df::AnyTensor json_tensor(const nlohmann::json& of) {
  const auto make = [&]<class E>(E) {
    df::Tensor<E> tensor(json_shape(of));
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.data()[i] = static_cast<E>(of.at("values").at(static_cast<std::size_t>(i)).get<double>());
    }
    return df::AnyTensor(tensor);
  };
  return of.at("dtype") == "int32" ? make(std::int32_t()) : make(T());
}

/// `want` null: zeros.
template <class T>
void check_close(const df::AnyTensor& got, const nlohmann::json& want) {
  REQUIRE(got.dtype() == df::dtype_of<T>);
  std::vector<double> wanted(static_cast<std::size_t>(got.num_elements()), 0.0);
  if (!want.is_null()) {
    REQUIRE(got.shape() == json_shape(want));
    wanted = want.at("values").get<std::vector<double>>();
  }
  double largest = 0;
  for (const double each : wanted) largest = std::max(largest, std::abs(each));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO("element " << i);
    const auto value = static_cast<double>(got.span<T>()[i]);
    // If terms cancel in an element, it is as exact as the largest element.
    CHECK(value == Approx(wanted[i]).epsilon(0).margin((sizeof(T) == 8 ? 1e-10 : 1e-5) * largest));
  }
}

std::vector<df::SessionOptions> sessions_of_each_form() {
  std::vector<df::SessionOptions> all(4);
  all[1].num_threads = 1;
  all[2].passes.lower_control_flow = true;
  all[3].passes.lower_control_flow = all[3].passes.raise_control_flow = true;
  return all;
}

/// Checks a program's results, gradients and their gradients, computed together and one by one in sessions of each
/// form.
template <class T>
void check_program_of_tensorflow(const nlohmann::json& record, const BuildProgram& build) {
  df::Graph graph;
  ProgramEdges inputs;
  std::vector<df::AnyTensor> values;
  for (const nlohmann::json& input : record.at("inputs")) {
    values.push_back(json_tensor<T>(input));
    if (input.at("dtype") == "int32") {
      inputs.push_back(df::placeholder<std::int32_t>(graph, df::PartialShape(values.back().shape())));
    } else {
      inputs.push_back(df::placeholder<T>(graph, df::PartialShape(values.back().shape())));
    }
  }
  const auto constants_of = [&](const nlohmann::json& tensors) {
    ProgramEdges constants;
    for (const nlohmann::json& each : tensors) {
      constants.push_back(df::detail::any_constant(*graph.store(), json_tensor<T>(each), {}));
    }
    return constants;
  };
  const ProgramEdges outputs = build(graph, inputs);
  ProgramEdges wanted_by;
  for (const df::AnyOutput& input : inputs) {
    if (input.dtype() == df::dtype_of<T>) wanted_by.push_back(input);
  }
  const auto slopes_of = [&](const ProgramEdges& ys, const ProgramEdges& grad_ys) {
    const std::vector<df::Gradient> gradients = df::gradients(ys, wanted_by, {.grad_ys = grad_ys});
    ProgramEdges dense;
    for (std::size_t i = 0; i < gradients.size(); ++i) dense.push_back(df::densify(gradients[i], wanted_by[i]));
    return dense;
  };
  ProgramEdges all = outputs;
  std::vector<nlohmann::json> wanted = record.at("outputs");
  const auto add = [&](const ProgramEdges& of, const nlohmann::json& as) {
    REQUIRE(of.size() == as.size());
    all.insert(all.end(), of.begin(), of.end());
    wanted.insert(wanted.end(), as.begin(), as.end());
  };
  const ProgramEdges slopes = slopes_of(outputs, constants_of(record.at("dy")));
  add(slopes, record.at("dx"));
  if (record.contains("ddx")) add(slopes_of(slopes, constants_of(record.at("direction"))), record.at("ddx"));
  std::vector<df::Feed> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i], values[i]);
  for (const df::SessionOptions& options : sessions_of_each_form()) {
    INFO(df::dtype_name(df::dtype_of<T>) << ", lowered: " << options.passes.lower_control_flow
                                         << ", raised: " << options.passes.raise_control_flow);
    df::Session session(graph, options);
    std::vector<df::AnyTensor> together(all.size()), alone(1);
    session.run_erased({}, nullptr, feeds, all, {}, together);
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO("result " << i << " of " << outputs.size() << ", " << wanted_by.size() << " gradients and theirs");
      check_close<T>(together[i], wanted[i]);
      session.run_erased({}, nullptr, feeds, {&all[i], 1}, {}, alone);
      check_close<T>(alone[0], wanted[i]);
    }
  }
}

}  // namespace

TEST_CASE("programs with control flow and their gradients are TensorFlow's own") {
  std::ifstream stream(dflow::testing::source_folder() + "/tests/oracle/programs/control_flow.json");
  const nlohmann::json file = nlohmann::json::parse(stream);
  const ProgramTable in_double = program_table<double>(), in_float = program_table<float>();
  std::set<std::string> done;
  for (const nlohmann::json& record : file.at("programs")) {
    const std::string name = record.at("name");
    INFO(name);
    REQUIRE(in_double.contains(name));
    check_program_of_tensorflow<double>(record, in_double.at(name));
    if (!dflow::testing::is_sanitized) check_program_of_tensorflow<float>(record, in_float.at(name));
    done.insert(name);
  }
  CHECK(done.size() == in_double.size());
}

#endif
