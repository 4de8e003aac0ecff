#pragma once

#include <dflow/op/scalar_math.hpp>

#include <limits>

/// Functions of the gamma family on double; float and half precision are converted to double.

namespace dflow::math {

namespace detail {

/// sum of coefficients[i] x^i.
template <int n>
DFLOW_FN inline double polynomial(const double (&coefficients)[n], double x) {
  double sum = coefficients[n - 1];
  for (int i = n - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

/// On [1, 2], by a rational function that is exact around its root (Boost.Math 1.74, digamma_imp_1_2, 53 bits).
DFLOW_FN inline double digamma_from_1_to_2(double x) {
  constexpr double root_high = 1569415565.0 / 1073741824.0;
  constexpr double root_middle = 381566830.0 / 1073741824.0 / 1073741824.0;
  constexpr double root_low = 0.9016312093258695918615325266959189453125e-19;
  constexpr double numerator[] = {0.25479851061131551,  -0.32555031186804491,  -0.65031853770896507,
                                  -0.28919126444774784, -0.045251321448739056, -0.0020713321167745952};
  constexpr double denominator[] = {1.0,
                                    2.0767117023730469,
                                    1.4606242909763515,
                                    0.43593529692665969,
                                    0.054151797245674225,
                                    0.0021284987017821144,
                                    -0.55789841321675513e-6};
  const double from_root = x - root_high - root_middle - root_low;
  const double ratio = polynomial(numerator, x - 1) / polynomial(denominator, x - 1);
  return from_root * 0.99558162689208984 + from_root * ratio;
}

inline constexpr double pi = 3.14159265358979323846;

/// x less the nearest whole number. It is exact; x - floor(x) would be rounded for x slightly below 0. The result is 0
/// for -infinity, which counts as whole like every number below -2^52.
DFLOW_FN inline double from_nearest_whole(double x) {
  return x == -std::numeric_limits<double>::infinity() ? 0 : x - std::round(x);
}

}  // namespace detail

/// The derivative of lgamma; -infinity at 0, infinity at -0, NaN at the negative whole numbers. Reflection below 0,
/// recurrence, and the asymptotic series from 10 (Abramowitz and Stegun 6.3.6, 6.3.7, 6.3.18).
DFLOW_FN inline double digamma(double x) {
  double sum = 0;
  if (x == 0) return -1 / x;
  if (x < 0) {
    const double rest = detail::from_nearest_whole(x);
    if (rest == 0) return std::numeric_limits<double>::quiet_NaN();
    sum = std::fabs(rest) == 0.5 ? 0.0 : -detail::pi / std::tan(detail::pi * rest);
    x = 1 - x;
  }
  if (x >= 10) {
    constexpr double series[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                 1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
    const double z = 1 / (x * x);
    return sum + std::log(x) - 0.5 / x - z * detail::polynomial(series, z);
  }
  for (; x > 2; sum += 1 / x) x -= 1;
  for (; x < 1; x += 1) sum -= 1 / x;
  return sum + detail::digamma_from_1_to_2(x);
}

/// The second derivative of lgamma; infinity at 0 and the negative whole numbers (Abramowitz and Stegun 6.4.6, 6.4.7,
/// 6.4.12).
DFLOW_FN inline double trigamma(double x) {
  if (x <= 0) {
    const double rest = detail::from_nearest_whole(x);
    if (rest == 0) return std::numeric_limits<double>::infinity();
    const double cosecant = detail::pi / std::sin(detail::pi * rest);
    return cosecant * cosecant - trigamma(1 - x);
  }
  double sum = 0;
  for (; x < 10; x += 1) sum += 1 / (x * x);
  constexpr double series[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
  const double z = 1 / (x * x);
  return sum + 1 / x + z / 2 + z / x * detail::polynomial(series, z);
}

namespace detail {

/// x^a e^-x / gamma(b).
DFLOW_FN inline double igamma_factor(double a, double x, double b) { return std::exp(a * std::log(x) - x - lgamma(b)); }

/// P(a, x) or Q(a, x) for large a, by Temme's uniform expansion (1979, "The asymptotic expansion of the incomplete
/// gamma functions"). Its time and error do not grow with a. The time of the series and the fraction grows like the
/// square root of a.
inline constexpr double igamma_large = 1e5;
DFLOW_FN inline double igamma_uniform(double a, double x, bool upper) {
  const double mu = (x - a) / a;
  // eta^2 / 2 = mu - log(1 + mu), by its series if the difference would cancel.
  double half_square = 0;
  if (std::fabs(mu) < 0.1) {
    double power = mu;
    for (int k = 2; k < 20; ++k) half_square += (power *= -mu) / -k;
  } else {
    half_square = mu - std::log1p(mu);
  }
  const bool below = mu < 0;
  if (!(a * half_square < 750)) return below == upper ? 1 : 0;
  const double eta = below ? -std::sqrt(2 * half_square) : std::sqrt(2 * half_square);
  constexpr double first[] = {-1.0 / 3,   1.0 / 12,        -2.0 / 135,  1.0 / 864,
                              1.0 / 2835, -139.0 / 777600, 1.0 / 25515, -571.0 / 261273600};
  constexpr double second[] = {-1.0 / 540, -1.0 / 288, 1.0 / 378, -77.0 / 77760};
  constexpr double third = 25.0 / 6048;
  const double correction = (polynomial(first, eta) + (polynomial(second, eta) + third / a) / a) *
                            std::exp(-a * half_square) / std::sqrt(2 * pi * a);
  const double part = std::erfc((upper ? eta : -eta) * std::sqrt(a / 2)) / 2;
  return upper ? part + correction : part - correction;
}

/// P(a, x) by its power series (Abramowitz and Stegun 6.5.29); for x < a + 1. It divides by gamma(a + 1), which stays
/// finite as a vanishes.
DFLOW_FN inline double igamma_series(double a, double x) {
  double sum = 1, term = 1;
  for (double n = a + 1; term > sum * 1e-17; n += 1) {
    term *= x / n;
    sum += term;
  }
  return sum * igamma_factor(a, x, a + 1);
}

/// Q(a, x) by its continued fraction (Abramowitz and Stegun 6.5.31), evaluated forwards (Lentz); for x >= a + 1.
DFLOW_FN inline double igammac_fraction(double a, double x) {
  constexpr double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, fraction = d;
  for (int n = 1; n < 100'000; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    if (std::fabs(d) < tiny) d = tiny;
    if (std::fabs(c) < tiny) c = tiny;
    d = 1 / d;
    const double factor = c * d;
    fraction *= factor;
    if (std::fabs(factor - 1) < 1e-16) break;
  }
  // 1 / gamma(a) = a / gamma(a + 1); the logarithm of gamma(a + 1) is small for small a.
  return a < 1 ? fraction * (a * igamma_factor(a, x, a + 1)) : fraction * igamma_factor(a, x, a);
}

/// lgamma(1 + a) for 0 <= a <= 1/2, without loss of digits for small a, by the series of lgamma(2 + a). Its
/// coefficients are (-1)^k (zeta(k) - 1) / k (Abramowitz and Stegun 6.1.33).
DFLOW_FN inline double lgamma_of_one_plus(double a) {
  constexpr double one_less_euler = 0.42278433509846714;
  constexpr double series[] = {
      0.3224670334241132,     -0.0673523010531981,     0.020580808427784546,   -0.007385551028673986,
      0.0028905103307415234,  -0.001192753911703261,   0.0005096695247430425,  -0.00022315475845357939,
      9.945751278180853e-05,  -4.492623673813314e-05,  2.050721277567069e-05,  -9.439488275268397e-06,
      4.374866789907488e-06,  -2.039215753801366e-06,  9.55141213040742e-07,   -4.492469198764566e-07,
      2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
      1.0838659214896955e-08, -5.183475041970047e-09,  2.4836745438024785e-09, -1.1921401405860912e-09,
      5.731367241678862e-10,  -2.7595228851242334e-10};
  return a * (one_less_euler + a * polynomial(series, a)) - std::log1p(a);
}

/// Q(a, x) = 1 - u (1 + a sum (-x)^n / ((a + n) n!)) with u = x^a / gamma(a + 1). For a <= 1/2 and x < a + 1
/// (Abramowitz and Stegun 6.5.29). Use it for small a: Q vanishes together with a.
DFLOW_FN inline double igammac_small(double a, double x) {
  double sum = 0, power = 1;
  for (int n = 1; std::fabs(power) > 1e-18 * std::fabs(sum); ++n) {
    power *= -x / n;
    sum += power / (a + n);
  }
  const double log_u = a * std::log(x) - lgamma_of_one_plus(a);
  return -std::expm1(log_u) - std::exp(log_u) * a * sum;
}

/// True if the incomplete gamma functions need no expansion; `lower` is then P(a, x). At (0, 0) and (infinity,
/// infinity) they have no limit.
DFLOW_FN inline bool igamma_is_simple(double a, double x, double& lower) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!(a >= 0) || !(x >= 0) || (a == x && (a == 0 || a == infinity))) {
    return lower = std::numeric_limits<double>::quiet_NaN(), true;
  }
  if (x == 0 || a == infinity) return lower = 0, true;
  if (a == 0 || x == infinity) return lower = 1, true;
  return false;
}

}  // namespace detail

/// The regularised lower incomplete gamma function P(a, x). NaN unless a >= 0 and x >= 0; NaN also at (0, 0) and
/// (infinity, infinity).
DFLOW_FN inline double igamma(double a, double x) {
  double simple = 0;
  if (detail::igamma_is_simple(a, x, simple)) return simple;
  if (a >= detail::igamma_large) return detail::igamma_uniform(a, x, false);
  return x < a + 1 ? detail::igamma_series(a, x) : 1 - detail::igammac_fraction(a, x);
}

/// The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x).
DFLOW_FN inline double igammac(double a, double x) {
  double simple = 0;
  if (detail::igamma_is_simple(a, x, simple)) return 1 - simple;
  if (a >= detail::igamma_large) return detail::igamma_uniform(a, x, true);
  if (x >= a + 1) return detail::igammac_fraction(a, x);
  return a <= 0.5 ? detail::igammac_small(a, x) : 1 - detail::igamma_series(a, x);
}

}  // namespace dflow::math
