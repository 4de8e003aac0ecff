#include <dflow/ops/math/special_functions.hpp>

#include "catch.hpp"

#include <cmath>
#include <limits>

using dflow::math::igamma;
using dflow::math::igammac;

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
