// Einstein's sums. Expected: NumPy 2.4.6, numpy.einsum, of operands whose element i is (5 i + 3 k) mod 7 - 3 in operand
// k.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace df = dflow;

namespace {

struct EinsumRow {
  const char* equation;
  std::vector<df::Shape> operands;
  df::Shape shape;
  std::vector<double> values;
};

const std::vector<EinsumRow>& einsum_rows() {
  static const std::vector<EinsumRow> rows{
      {"ij,jk->ik", {{2, 3}, {3, 2}}, {2, 2}, {6, 8, 8, 4}},
      {"ij,kj", {{2, 3}, {2, 3}}, {2, 2}, {-4, -5, -3, -8}},
      {"ji,jk->ki", {{3, 2}, {3, 2}}, {2, 2}, {-3, -7, -3, -9}},
      {"bij,bjk->bik", {{2, 1, 3}, {2, 3, 2}}, {2, 1, 2}, {6, 8, -9, 8}},
      {"bji,bkj->bik", {{2, 3, 1}, {2, 2, 3}}, {2, 1, 2}, {-4, -5, -6, -4}},
      {"ij->ji", {{2, 3}}, {3, 2}, {-3, -2, 2, 3, 0, 1}},
      {"ji", {{2, 3}}, {3, 2}, {-3, -2, 2, 3, 0, 1}},
      {"ii", {{3, 3}}, {}, {2}},
      {"ii->i", {{3, 3}}, {3}, {-3, 3, 2}},
      {"iij->j", {{2, 2, 3}}, {3}, {-3, 0, 3}},
      {"iii->i", {{2, 2, 2}}, {2}, {-3, -3}},
      {"ij->", {{2, 3}}, {}, {1}},
      {"ij->i", {{2, 3}}, {2}, {-1, 2}},
      {"i,j->ij", {{2}, {3}}, {2, 3}, {0, 6, -9, 0, -4, 6}},
      {"i,i", {{3}, {3}}, {}, {-4}},
      {"i,i->i", {{3}, {3}}, {3}, {0, -4, 0}},
      {",i->i", {{}, {3}}, {3}, {0, 6, -9}},
      {"bi,bj,bk->bijk", {{2, 1}, {2, 2}, {2, 2}}, {2, 1, 2, 2}, {0, 0, 18, 6, -6, -18, -2, -6}},
      {"ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 2}}, {2, 2}, {10, -18, 20, -4}},
      {"...ij,...jk->...ik",
       {{2, 1, 2, 3}, {2, 3, 2}},
       {2, 2, 2, 2},
       {6, 8, 8, 4, -10, 6, -9, 8, -11, -7, -9, -11, 6, -11, 7, -9}},
      {"...i,...i", {{2, 3}, {2, 3}}, {2}, {-4, -8}},
      {"...i->i...", {{2, 1, 3}}, {3, 2, 1}, {-3, -2, 2, 3, 0, 1}},
      {"i...,i...->...", {{3, 2}, {3, 1}}, {2}, {9, 7}},
      {"...ij,...jk", {{2, 3}, {2, 3, 1}}, {2, 2, 1}, {-4, -3, -5, -8}},
      {"abc,cd->abd", {{2, 1, 3}, {3, 2}}, {2, 1, 2}, {6, 8, 8, 4}},
      {"abcd,bcd->a", {{2, 2, 1, 3}, {2, 1, 3}}, {2}, {-12, 5}},
      {"aij,ajk,k->i", {{2, 2, 3}, {2, 3, 2}, {2}}, {2}, {33, 40}},
      {"acd,bdc->ab", {{2, 2, 3}, {2, 3, 2}}, {2, 2}, {10, -2, -22, -3}},
      {"bhqd,bkhd->bhqk", {{1, 2, 2, 3}, {1, 2, 2, 3}}, {1, 2, 2, 2}, {-4, -6, -3, -6, -4, -8, -7, -5}},
      {" i j , j -> i ", {{2, 3}, {3}}, {2}, {-4, -3}},
      {"aB,Bc", {{2, 3}, {3, 2}}, {2, 2}, {6, 8, 8, 4}},
      {"ij,kl->k", {{2, 2}, {2, 3}}, {2}, {-3, 9}},
      {"ij,ij->j", {{0, 3}, {0, 3}}, {3}, {0, 0, 0}},
      {"ij,jk->ik", {{2, 0}, {0, 3}}, {2, 3}, {0, 0, 0, 0, 0, 0}},
  };
  return rows;
}

template <class T>
df::Tensor<T> einsum_operand(const df::Shape& shape, std::int64_t k) {
  df::Tensor<T> x(shape);
  for (std::int64_t i = 0; i < x.num_elements(); ++i) x.data()[i] = static_cast<T>((5 * i + 3 * k) % 7 - 3);
  return x;
}

/// How much of an operand's shape the graph knows.
enum class KnownShape { all, rank, nothing };

template <class T>
void check_einsum(KnownShape known) {
  for (const EinsumRow& row : einsum_rows()) {
    INFO(row.equation << ", " << static_cast<int>(known));
    if (known == KnownShape::nothing && std::string(row.equation).find("...") != std::string::npos) continue;
    df::Graph graph;
    std::vector<df::Output<T>> operands;
    std::vector<df::Feed> feeds;
    for (std::size_t k = 0; k < row.operands.size(); ++k) {
      const df::Shape& shape = row.operands[k];
      operands.push_back(df::placeholder<T>(graph, known == KnownShape::all    ? df::PartialShape(shape)
                                                   : known == KnownShape::rank ? df::PartialShape::unknown(shape.rank())
                                                                               : df::PartialShape::unknown()));
      feeds.emplace_back(operands.back(), einsum_operand<T>(shape, static_cast<std::int64_t>(k)));
    }
    const auto y = df::einsum(row.equation, operands);
    if (known == KnownShape::all) CHECK(y.shape() == df::PartialShape(row.shape));
    df::Session session(graph);
    const std::vector<df::AnyOutput> fetched{y};
    std::vector<df::AnyTensor> results(1);
    session.run_erased({}, nullptr, feeds, fetched, {}, results);
    const df::Tensor<T> got(results[0]);
    CHECK(got.shape() == row.shape);
    REQUIRE(got.num_elements() == static_cast<std::int64_t>(row.values.size()));
    for (std::size_t i = 0; i < row.values.size(); ++i) CHECK(got.span()[i] == static_cast<T>(row.values[i]));
    if constexpr (std::is_same_v<T, double>) {
      if (got.num_elements() > 0 && row.operands[0].num_elements() > 0) {
        CHECK(df::check_gradients(session, y, feeds).is_ok());
      }
    }
  }
}

std::string einsum_error(const char* equation, const std::vector<df::Shape>& shapes) {
  df::Graph graph;
  std::vector<df::Output<float>> operands;
  for (const df::Shape& shape : shapes) operands.push_back(df::placeholder<float>(graph, df::PartialShape(shape)));
  return error_of([&] { df::einsum(equation, operands); });
}

}  // namespace

TEST_CASE("Einstein's sums are NumPy's, whatever of the shapes the graph knows") {
  for (const KnownShape known : {KnownShape::all, KnownShape::rank, KnownShape::nothing}) check_einsum<double>(known);
  check_einsum<float>(KnownShape::all);
  check_einsum<std::int32_t>(KnownShape::all);
}

TEST_CASE("Einstein's sums of complex numbers conjugate nothing") {
  using C = std::complex<double>;
  df::Graph graph;
  const auto a = df::constant(graph, df::Tensor<C>({1, 2, 1}, {C(1, 2), C(3, -1)}));
  const auto b = df::constant(graph, df::Tensor<C>({1, 1, 2}, {C(0, 1), C(2, 2)}));
  // By hand: (1 + 2i) i + (3 - i)(2 + 2i) = (-2 + i) + (8 + 4i).
  const auto y = df::Session(graph).run(df::einsum("bji,bkj->bik", {a, b}));
  CHECK(y.span()[0] == C(6, 5));
  CHECK(df::Session(graph).run(df::einsum("bji,akj->ik", {a, b})).span()[0] == C(6, 5));
}

TEST_CASE("an equation that is none is refused with its place") {
  const std::vector<std::tuple<const char*, std::vector<df::Shape>, const char*>> bad{
      {"ij,j%->i", {{2, 3}, {3}}, "position 4: '%'"},
      {"ij->i->j", {{2, 3}}, "position 5: '-'"},
      {"ij->i,j", {{2, 3}}, "position 5: ','"},
      {"i..j->i", {{2, 3}}, "position 1: '.'"},
      {"...i...->i", {{2, 3}}, "position 4: a second"},
      {"ij->ii", {{2, 3}}, "position 5: the output has 'i' twice"},
      {"ij->ik", {{2, 3}}, "no operand has 'k'"},
      {"ij,jk->ik", {{2, 3}}, "there are 2 terms, and 1 operands"},
      {"ijk->i", {{2, 3}}, "operand 0 has shape [2,3]"},
      {"...ijk->i...", {{2, 3}}, "operand 0 has shape [2,3]"},
      {"ij,jk->ik", {{2, 3}, {4, 2}}, "label 'j' has extents 3 and 4"},
      {"ii", {{2, 3}}, "label 'i' has extents 2 and 3"},
      {"...i,...i", {{2, 3}, {4, 3}}, "label '...' has extents 2 and 4"},
      {"...i->i", {{2, 3}}, "the output must have the dimensions of ..."},
  };
  for (const auto& [equation, shapes, part] : bad) {
    const std::string error = einsum_error(equation, shapes);
    INFO(error);
    CHECK(error.find(part) != std::string::npos);
    CHECK(error.find("einsum_test.cpp") != std::string::npos);
  }
  // Of what only the step shows.
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  CHECK(error_of([&] { df::einsum("...i", {x}); }).find("the rank of operand 0 is not known") != std::string::npos);
  df::Session session(graph);
  const df::Tensor<float> oblong({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(error_of([&] { session.run({{x, oblong}}, df::einsum("ii->i", {x})); }) != "no error");
  CHECK(error_of([&] { session.run({{x, oblong}}, df::einsum("i->i", {x})); }) != "no error");
}
