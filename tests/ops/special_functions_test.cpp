#include <dflow/ops/math/special_functions.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/special.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

namespace df = dflow;
using dflow::math::digamma;
using dflow::math::igamma;
using dflow::math::igammac;
using dflow::math::trigamma;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
}

TEST_CASE("the incomplete gamma functions of large parameters take no longer, and end") {
  // Values: mpmath 1.3.0, 40 digits.
  struct Row {
    double a, x, lower, upper;
  };
  for (const Row& row : {Row{100000.0, 98000.0, 9.69083515816049e-11, 0.999999999903092},
                         Row{100000.0, 99968.0, 0.460112794892783, 0.539887205107217},
                         Row{100000.0, 100000.0, 0.500420522110365, 0.499579477889635},
                         Row{100000.0, 100500.0, 0.942896730023971, 0.0571032699760287},
                         Row{1000000.0, 995000.0, 2.74958035927007e-7, 0.999999725041964},
                         Row{1000000.0, 1000001.0, 0.500531922742068, 0.499468077257932},
                         Row{1000000.0, 1003000.0, 0.998638259353782, 0.00136174064621759},
                         Row{300000000.0, 299960000.0, 0.0104583559751404, 0.98954164402486},
                         Row{300000000.0, 300000000.0, 0.500007677647766, 0.499992322352234},
                         Row{300000000.0, 300052000.0, 0.998659235131157, 0.00134076486884281}}) {
    INFO("a " << row.a << ", x " << row.x);
    CHECK(std::fabs(igamma(row.a, row.x) - row.lower) <= 1e-11 * row.lower);
    CHECK(std::fabs(igammac(row.a, row.x) - row.upper) <= 1e-11 * row.upper);
  }
  for (const double a : {1e12, 1e15, 0x1p53, 1e18, 1e300, std::numeric_limits<double>::max()}) {
    INFO("a " << a);
    CHECK(igamma(a, a) == Catch::Approx(0.5).margin(1e-6));
    CHECK(igamma(a, a / 2) == 0);
    CHECK(igammac(a, a / 2) == 1);
    CHECK(igamma(a, 1.5 * a) == 1);
    CHECK(igammac(a, 1.5 * a) == 0);
    CHECK(igamma(a, 1e-300) == 0);
  }
  CHECK(igamma(std::numeric_limits<double>::infinity(), 3) == 0);
  CHECK(igammac(std::numeric_limits<double>::infinity(), 3) == 1);
}

TEST_CASE("the incomplete gamma functions go on smoothly where their expansion changes") {
  const double below = std::nextafter(dflow::math::detail::igamma_large, 0), above = dflow::math::detail::igamma_large;
  for (const double steps : {-5.0, -1.0, -0.1, 0.0, 0.1, 1.0, 5.0}) {
    const double x = above + steps * std::sqrt(above);
    INFO("x " << x);
    CHECK(igamma(below, x) == Catch::Approx(igamma(above, x)).epsilon(1e-8));
    CHECK(igammac(below, x) == Catch::Approx(igammac(above, x)).epsilon(1e-8));
  }
}

TEST_CASE("digamma and trigamma keep their digits below 0, however near they are to a whole number") {
  // Values: mpmath, 60 digits.
  struct Row {
    double x, first, second;
  };
  for (const Row& row :
       {Row{-1e-4, 9999.4226198296697, 100000001.6451745}, Row{-1e-8, 99999999.422784317, 10000000000000001.0},
        Row{-1e-12, 999999999999.4228, 1e24}, Row{-1e-15, 999999999999999.35, 9.9999999999999984e29},
        Row{-1e-20, 1.0000000000000001e20, 1e40}, Row{-1e-150, 1e150, 1e300}, Row{1e-20, -1.0000000000000001e20, 1e40},
        Row{-0.25, 2.9141391202135278, 18.541879647671606}, Row{-0.5, 0.036489973978576521, 8.9348022005446793},
        Row{-0.75, -2.8941202000429321, 18.975106932284889},
        Row{-1 - 0x1p-40, 1099511627776.4228, 1.2089258196146292e24},
        Row{-1 + 0x1p-40, -1099511627775.5772, 1.2089258196146292e24},
        Row{-2 - 0x1p-30, 1073741824.9227843, 1.152921504606847e18},
        Row{-7.000001, 1000002.0154985433, 999999999723.6008}, Row{-12345.678, 7.4549659001166125, 13.735213862761746},
        Row{-1000000.5, 13.815511557963816, 9.8696034010903586}}) {
    INFO("x " << row.x);
    CHECK(std::fabs(digamma(row.x) - row.first) <= 4e-15 * std::fmax(1, std::fabs(row.first)));
    CHECK(std::fabs(trigamma(row.x) - row.second) <= 4e-15 * row.second);
  }
  CHECK(digamma(-1e-300) == Catch::Approx(1e300).epsilon(1e-15));
  CHECK(trigamma(-1e-300) == infinity);
}

TEST_CASE("digamma and trigamma at their poles and at infinities") {
  // SciPy 1.17.1: special.psi and special.polygamma(1, x).
  CHECK(digamma(0.0) == -infinity);
  CHECK(digamma(-0.0) == infinity);
  CHECK(digamma(infinity) == infinity);
  CHECK(trigamma(infinity) == 0);
  CHECK(trigamma(1e300) == Catch::Approx(1e-300));
  for (const double x : {-1.0, -2.0, -1e15, -0x1p52, -1e300, -infinity}) {
    INFO("x " << x);
    CHECK(std::isnan(digamma(x)));
    CHECK(trigamma(x) == infinity);
  }
  CHECK(trigamma(0.0) == infinity);
  CHECK(trigamma(-0.0) == infinity);
  CHECK(trigamma(5e-324) == infinity);
  CHECK(trigamma(-5e-324) == infinity);
  CHECK(std::isnan(digamma(std::nan(""))));
  CHECK(std::isnan(trigamma(std::nan(""))));
}

TEST_CASE("the incomplete gamma functions at zeros and infinities") {
  // SciPy 1.17.1: special.gammainc and special.gammaincc.
  for (const double x : {5e-324, 1e-300, 0.5, 3.0, 1e300, infinity}) {
    for (const double zero : {0.0, -0.0}) {
      INFO("x " << x);
      CHECK(igamma(zero, x) == 1);
      CHECK(igammac(zero, x) == 0);
      CHECK(igamma(x, zero) == 0);
      CHECK(igammac(x, zero) == 1);
      CHECK(std::isnan(igamma(zero, -x)));
    }
    if (x < infinity) {
      CHECK(igamma(infinity, x) == 0);
      CHECK(igammac(infinity, x) == 1);
      CHECK(igamma(x, infinity) == 1);
      CHECK(igammac(x, infinity) == 0);
    }
    CHECK(std::isnan(igamma(-infinity, x)));
    CHECK(std::isnan(igammac(x, -infinity)));
    CHECK(std::isnan(igamma(std::nan(""), x)));
    CHECK(std::isnan(igammac(x, std::nan(""))));
  }
  CHECK(std::isnan(igamma(0, 0)));
  CHECK(std::isnan(igammac(0, 0)));
  CHECK(std::isnan(igamma(infinity, infinity)));
  CHECK(std::isnan(igammac(infinity, infinity)));
  // P goes to 1 as a goes to 0: 1 - P is about a.
  for (const double a : {1e-20, 1e-300, 1e-310, 5e-324}) {
    INFO("a " << a);
    CHECK(igamma(a, 0.5) == Catch::Approx(1).epsilon(1e-14));
    CHECK(igamma(a, 3) == Catch::Approx(1).epsilon(1e-14));
    CHECK(igammac(a, 3) == Catch::Approx(0).margin(1e-20));
  }
}

TEST_CASE("digamma and the gradients of lgamma and digamma are right near 0 in every precision that goes there") {
  // Values: -1 / x and 1 / x^2, the first terms of Laurent's series; the others are less than a 1e9th of them.
  const auto check = []<class T>(T, double tolerance) {
    df::Graph graph;
    const auto x = df::placeholder<T>(graph, {4});
    const auto y = df::digamma(x);
    const auto slope = df::gradients(y, x), of_lgamma = df::gradients(df::lgamma(x), x);
    df::Session session(graph);
    const df::Tensor<T> at({4}, {T(-0x1p-60), T(-0x1p-30), T(0x1p-60), T(-0x1p-50)});
    const auto [value, second, first] = session.run({{x, at}}, y, slope, of_lgamma);
    for (std::size_t i = 0; i < 4; ++i) {
      const double to = static_cast<double>(at.span()[i]);
      INFO("x " << to);
      CHECK(static_cast<double>(value.span()[i]) == Catch::Approx(-1 / to).epsilon(tolerance));
      CHECK(static_cast<double>(first.span()[i]) == Catch::Approx(-1 / to).epsilon(tolerance));
      CHECK(static_cast<double>(second.span()[i]) == Catch::Approx(1 / (to * to)).epsilon(tolerance));
    }
  };
  check(double(), 1e-9);
  check(float(), 1e-6);
  check(df::BFloat16(0), 1e-2);
}

TEST_CASE("the upper incomplete gamma function keeps its digits where its parameter is small") {
  // Values: mpmath, 50 digits.
  struct Row {
    double a, x, upper;
  };
  for (const Row& row : {Row{1e-20, 0.5, 5.5977359477616078e-21}, Row{1e-300, 0.25, 1.0442826344437382e-300},
                         Row{1e-8, 1e-3, 6.3315391719088761e-8}, Row{0.25, 1.2, 0.050726998351541248},
                         Row{0.4375, 0.03125, 0.75451651102988948}, Row{1e-10, 1.0, 2.1938393441796779e-11},
                         Row{1e-20, 30.0, 3.0215520106888124e-35}, Row{1e-5, 3.0, 1.3048628552859460e-7},
                         Row{0.25, 2.0, 0.017286011859516773}}) {
    INFO("a " << row.a << ", x " << row.x);
    CHECK(std::fabs(igammac(row.a, row.x) - row.upper) <= 4e-14 * row.upper);
    CHECK(std::fabs(igamma(row.a, row.x) - (1 - row.upper)) <= 4e-15);
  }
  CHECK(igammac(1e-20, 5e-324) == Catch::Approx(1e-20 * 743.8629).epsilon(1e-5));
}

TEST_CASE("the incomplete gamma functions have no slope at infinity") {
  df::Graph graph;
  const auto a = df::placeholder<double>(graph, {4}), x = df::placeholder<double>(graph, {4});
  const auto lower = df::gradients(df::igamma(a, x), x), upper = df::gradients(df::igammac(a, x), x);
  df::Session session(graph);
  const auto [p, q] = session.run({{a, df::Tensor<double>({4}, {0.5, 1, 3, infinity})},
                                   {x, df::Tensor<double>({4}, {infinity, infinity, infinity, 2})}},
                                  lower, upper);
  for (const double slope : p) CHECK(slope == 0);
  for (const double slope : q) CHECK(slope == 0);
  // SciPy 1.17.1: stats.gamma.pdf(2, 3).
  const auto [r, s] =
      session.run({{a, df::Tensor<double>::full({4}, 3)}, {x, df::Tensor<double>::full({4}, 2)}}, lower, upper);
  CHECK(r(0) == Catch::Approx(0.2706705664732254).epsilon(1e-14));
  CHECK(s(0) == Catch::Approx(-0.2706705664732254).epsilon(1e-14));
}

#if defined(__GLIBC__)
TEST_CASE("lgamma of half precision leaves the C library's sign alone") {
  signgam = 77;
  CHECK(static_cast<float>(dflow::math::lgamma(df::BFloat16(-0.5f))) == Catch::Approx(1.2655).epsilon(1e-2));
  CHECK(static_cast<float>(dflow::math::lgamma(df::Half(-1.5f))) == Catch::Approx(0.8600).epsilon(1e-3));
  CHECK(signgam == 77);
}
#endif
