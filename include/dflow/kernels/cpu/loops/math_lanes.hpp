#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>

/// Elementary functions of one number without branches or calls, so that the compiler turns their loops into vector
/// code. Polynomials come from the Cephes library (Moshier) unless another source is named.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class T>
struct FloatTraits;
template <>
struct FloatTraits<float> {
  using Bits = uint32_t;
  static constexpr int fraction_bits = 23;
  static constexpr Bits bias = 127;
  static constexpr float magic = 0x1.8p23f;  ///< adding it rounds to an integer, held in the lowest bits
};
template <>
struct FloatTraits<double> {
  using Bits = uint64_t;
  static constexpr int fraction_bits = 52;
  static constexpr Bits bias = 1023;
  static constexpr double magic = 0x1.8p52;
};

template <class T>
DFLOW_LANE auto bits_of(T x) {
  return __builtin_bit_cast(typename FloatTraits<T>::Bits, x);
}
template <class T, class Bits>
DFLOW_LANE T from_bits(Bits bits) {
  return __builtin_bit_cast(T, bits);
}
template <class T>
inline constexpr T infinity = static_cast<T>(__builtin_inf());
template <class T>
inline constexpr T not_a_number = static_cast<T>(__builtin_nan(""));

template <class T>
DFLOW_LANE T abs_lane(T x) {
  using Bits = typename FloatTraits<T>::Bits;
  return from_bits<T>(static_cast<Bits>(bits_of(x) & ~(Bits{1} << (8 * sizeof(T) - 1))));
}
template <class T>
DFLOW_LANE T with_sign_of(T magnitude, T sign) {
  using Bits = typename FloatTraits<T>::Bits;
  constexpr Bits top = Bits{1} << (8 * sizeof(T) - 1);
  return from_bits<T>(static_cast<Bits>((bits_of(magnitude) & ~top) | (bits_of(sign) & top)));
}

/// c[0] x^(n-1) + ... + c[n-1]
template <class T, int n>
DFLOW_LANE T polynomial(T x, const T (&c)[n]) {
  T sum = c[0];
#pragma GCC unroll 16
  for (int i = 1; i < n; ++i) sum = sum * x + c[i];
  return sum;
}

/// 2^n for an integral n, in the range of normal numbers.
template <class T>
DFLOW_LANE T power_of_two(T n) {
  using Traits = FloatTraits<T>;
  using Bits = typename Traits::Bits;
  const Bits integer = bits_of(n + Traits::magic) - bits_of(Traits::magic);
  return from_bits<T>(static_cast<Bits>((integer + Traits::bias) << Traits::fraction_bits));
}

/// exp of |r| <= ln 2 / 2 in float: the best polynomial of the form 1 + r + r^2 q(r) with q of degree 4. Its relative
/// error is below 4e-9 (Lawson's iteration). F is float or a register of floats.
template <class F>
DFLOW_LANE F exp_of_remainder(F r) {
  F p = r * 1.381454058e-3f + 8.368745446e-3f;
  p = p * r + 4.166838899e-2f;
  p = p * r + 1.666652113e-1f;
  p = p * r + 4.999999404e-1f;
  p = p * r + 1.0f;
  return p * r + 1.0f;
}

/// exp of x = n ln 2 + r as exp(r) times two powers of two, so that results may be denormal.
DFLOW_LANE float exp_lane(float x) {
  const float low = x < -104.0f ? -104.0f : x;
  const float y = low > 89.0f ? 89.0f : low;
  const float n = (y * 1.44269504088896341f + FloatTraits<float>::magic) - FloatTraits<float>::magic;
  const float e = exp_of_remainder((y - n * 0.693359375f) - n * -2.12194440e-4f);
  const float half = (n * 0.5f + FloatTraits<float>::magic) - FloatTraits<float>::magic;
  return e * power_of_two(half) * power_of_two(n - half);
}

/// exp of |x| < 86.5, where results are normal numbers: the power of two is added to the exponent. F is float and U
/// uint32_t, or both are registers of them. The bits are the same as in exp_lane.
template <class F, class U>
DFLOW_LANE F exp_moderate(F x) {
  const F shifted = x * 1.44269504088896341f + FloatTraits<float>::magic;
  const F n = shifted - FloatTraits<float>::magic;
  const F e = exp_of_remainder((x - n * 0.693359375f) - n * -2.12194440e-4f);
  return __builtin_bit_cast(F, static_cast<U>(__builtin_bit_cast(U, e) + (__builtin_bit_cast(U, shifted) << 23)));
}
inline constexpr float moderate_limit = 86.5f;

/// exp of x <= 0, in one step; results that would be denormal are 0.
DFLOW_LANE float exp_nonpositive(float x) {
  constexpr float lowest = -87.33f;
  const float y = x < lowest ? lowest : x;
  const float shifted = y * 1.44269504088896341f + FloatTraits<float>::magic;
  const float n = shifted - FloatTraits<float>::magic;
  const float e = exp_of_remainder((y - n * 0.693359375f) - n * -2.12194440e-4f);
  const float scale = from_bits<float>(static_cast<uint32_t>((bits_of(shifted) + 127u) << 23));
  return x < lowest ? 0.0f : e * scale;
}
DFLOW_LANE double exp_lane(double x);
DFLOW_LANE double exp_nonpositive(double x) { return exp_lane(x); }

/// The Taylor series: its remainder is below 2^-57 for |r| <= ln 2 / 2.
DFLOW_LANE double exp_lane(double x) {
  const double low = x < -746.0 ? -746.0 : x;
  const double y = low > 710.0 ? 710.0 : low;
  const double n = (y * 1.4426950408889634074 + FloatTraits<double>::magic) - FloatTraits<double>::magic;
  const double r = (y - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
  constexpr double c[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                          1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                          1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5};
  const double e = polynomial(r, c) * (r * r) + r + 1.0;
  const double half = (n * 0.5 + FloatTraits<double>::magic) - FloatTraits<double>::magic;
  return e * power_of_two(half) * power_of_two(n - half);
}

/// x = m 2^e with m in [1/2, 1) as it lies in the bits; denormals are scaled into the normal range first.
template <class T>
struct Split {
  T fraction, exponent;
};
template <class T>
DFLOW_LANE Split<T> split(T x) {
  using Traits = FloatTraits<T>;
  using Bits = typename Traits::Bits;
  constexpr T smallest_normal = sizeof(T) == 4 ? static_cast<T>(0x1p-126) : static_cast<T>(0x1p-1022);
  constexpr T lift = sizeof(T) == 4 ? static_cast<T>(0x1p24) : static_cast<T>(0x1p54);
  const bool denormal = x < smallest_normal;
  const Bits bits = bits_of(denormal ? x * lift : x);
  const Bits exponent_bits = bits >> Traits::fraction_bits;
  constexpr Bits fraction_mask = (Bits{1} << Traits::fraction_bits) - 1;
  const T fraction =
      from_bits<T>(static_cast<Bits>((bits & fraction_mask) | ((Traits::bias - 1) << Traits::fraction_bits)));
  // An integer below 2^fraction_bits to T, by way of the fraction of a number of that size.
  constexpr T base = sizeof(T) == 4 ? static_cast<T>(0x1p23) : static_cast<T>(0x1p52);
  const T exponent = from_bits<T>(static_cast<Bits>(exponent_bits | bits_of(base))) - base;
  const T shift = static_cast<T>(Traits::bias - 1);
  return {fraction, exponent - shift - (denormal ? static_cast<T>(sizeof(T) == 4 ? 24 : 54) : static_cast<T>(0))};
}

/// The values of log that are no numbers.
template <class T>
DFLOW_LANE T log_special(T x, T y) {
  const T finite = x == infinity<T> ? x : y;
  const T positive = x > T(0) ? finite : not_a_number<T>;
  const T any = x == T(0) ? -infinity<T> : positive;
  return x != x ? x : any;
}

DFLOW_LANE float log_lane(float x) {
  const Split<float> s = split(x);
  const bool small = s.fraction < 0.707106781186547524f;
  const float e = small ? s.exponent - 1.0f : s.exponent;
  const float m = (small ? s.fraction + s.fraction : s.fraction) - 1.0f;
  const float z = m * m;
  constexpr float c[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f, 1.4249322787e-1f,
                         -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  float y = polynomial(m, c) * m * z;
  y += e * -2.12194440e-4f;
  y -= 0.5f * z;
  return log_special(x, m + y + e * 0.693359375f);
}

DFLOW_LANE double log_lane(double x) {
  const Split<double> s = split(x);
  const bool small = s.fraction < 0.70710678118654752440;
  const double e = small ? s.exponent - 1.0 : s.exponent;
  const double m = (small ? s.fraction + s.fraction : s.fraction) - 1.0;
  const double z = m * m;
  constexpr double p[] = {1.01875663804580931796e-4, 4.97494994976747001425e-1, 4.70579119878881725854e0,
                          1.44989225341610930846e1,  1.79368678507819816313e1,  7.70838733755885391666e0};
  constexpr double q[] = {1.0,
                          1.12873587189167450590e1,
                          4.52279145837532221105e1,
                          8.29875266912776603211e1,
                          7.11544750618563894466e1,
                          2.31251620126765340583e1};
  double y = m * (z * polynomial(m, p) / polynomial(m, q));
  y -= e * 2.121944400546905827679e-4;
  y -= 0.5 * z;
  return log_special(x, m + y + e * 0.693359375);
}

/// log(1 + x) = log(u) x / (u - 1) with u = 1 + x rounded: the two errors cancel (Kahan).
template <class T>
DFLOW_LANE T log1p_lane(T x) {
  const T u = T(1) + x;
  const T y = log_lane(u) * (x / (u - T(1)));
  const T finite = u == T(1) ? x : y;
  return x == infinity<T> ? x : x == T(-1) ? -infinity<T> : finite;
}

/// exp(x) - 1 = (u - 1) x / log(u) with u = exp(x) rounded (Kahan).
template <class T>
DFLOW_LANE T expm1_lane(T x) {
  const T u = exp_lane(x);
  const T less = u - T(1);
  const T y = less * (x / log_lane(u));
  const T middle = u == T(1) ? x : y;
  const T low = less == T(-1) ? T(-1) : middle;
  return u == infinity<T> ? u : low;
}

/// tanh x is about x p(z) / q(z) with z = x^2, the best quotient of this form by its relative error, 2e-8 (Lawson's
/// iteration), on [0, 9]. The approximated function is tanh x times 1 + 4e-7 exp(5 (x - 9)), so at 9 it is above 1 by
/// more than the rounding error. Beyond 9, z stays the same and the quotient grows as x does; capped, it is 1 where
/// tanh is 1 in float, and never more. c_0 = 1 keeps small x as they are.
struct TanhQuotient {
  static constexpr float largest_square = 81.0f;
  static constexpr float p[] = {1.485782342e-8f, 2.169712388e-5f, 3.562100697e-3f, 1.343720704e-1f, 1.0f};
  static constexpr float q[] = {8.392213999e-7f, 3.394092491e-4f, 2.613055892e-2f, 4.677054584e-1f, 1.0f};
};

DFLOW_LANE float tanh_lane(float x) {
  const float square = x * x;
  const float z = square < TanhQuotient::largest_square ? square : TanhQuotient::largest_square;
  const float y = x * polynomial(z, TanhQuotient::p) / polynomial(z, TanhQuotient::q);
  const float low = y < -1.0f ? -1.0f : y;
  return low > 1.0f ? 1.0f : low;
}

DFLOW_LANE double tanh_lane(double x) {
  const double a = abs_lane(x);
  const double z = x * x;
  constexpr double p[] = {-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3};
  constexpr double q[] = {1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3};
  const double near = x + x * (z * (polynomial(z, p) / polynomial(z, q)));
  const double far = with_sign_of(1.0 - 2.0 / (exp_lane(a + a) + 1.0), x);
  const double y = a < 0.625 ? near : far;
  return x == 0.0 || x != x ? x : y;
}

/// From exp(-|x|), which keeps the small values of negative arguments right.
template <class T>
DFLOW_LANE T sigmoid_lane(T x) {
  const T e = exp_lane(-abs_lane(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

/// A rational approximation of degrees 13 and 8 (Eigen's), kept to [-1, 1], which its last digits leave; from
/// `rounds_to_one` on erf is 1 in float.
DFLOW_LANE float erf_lane(float x) {
  const float low = x < -4.0f ? -4.0f : x;
  const float y = low > 4.0f ? 4.0f : low;
  const float z = y * y;
  constexpr float p[] = {-2.72614225801306e-10f, 2.77068142495902e-08f,  -2.10102402082508e-06f, -5.69250639462346e-05f,
                         -7.34990630326855e-04f, -2.95459980854025e-03f, -1.60960333262415e-02f};
  constexpr float q[] = {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f, -7.37332916720468e-03f,
                         -1.42647390514189e-02f};
  const float r = y * (polynomial(z, p) / polynomial(z, q));
  const float above = r < -1.0f ? -1.0f : r;
  const float bounded = above > 1.0f ? 1.0f : above;
  constexpr float rounds_to_one = 3.8325066f;
  return abs_lane(x) >= rounds_to_one ? with_sign_of(1.0f, x) : bounded;
}

DFLOW_LANE double erf_lane(double x) {
  const double a = abs_lane(x);
  const double z = x * x;
  constexpr double t[] = {9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
                          7.00332514112805075473e3, 5.55923013010394962768e4};
  constexpr double u[] = {1.0,
                          3.35617141647503099647e1,
                          5.21357949780152679795e2,
                          4.59432382970980127987e3,
                          2.26290000613890934246e4,
                          4.92673942608635921086e4};
  constexpr double p[] = {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                          4.86371970985681366614e1,   1.96520832956077098242e2,  5.26445194995477358631e2,
                          9.34528527171957607540e2,   1.02755188689515710272e3,  5.57535335369399327526e2};
  constexpr double q[] = {1.0,
                          1.32281951154744992508e1,
                          8.67072140885989742329e1,
                          3.54937778887819891062e2,
                          9.75708501743205489753e2,
                          1.82390916687909736289e3,
                          2.24633760818710981792e3,
                          1.65666309194161350182e3,
                          5.57535340817727675546e2};
  const double near = x * polynomial(z, t) / polynomial(z, u);
  const double capped = a > 6.5 ? 6.5 : a;
  const double far = with_sign_of(1.0 - exp_lane(-capped * capped) * polynomial(capped, p) / polynomial(capped, q), x);
  return a <= 1.0 ? near : x != x ? x : far;
}

/// Largest arguments that sin and cos reduce here; for larger ones the C library's functions are called.
template <class T>
inline constexpr T largest_angle = sizeof(T) == 4 ? static_cast<T>(1e6) : static_cast<T>(1e5);

/// x = n pi/2 + r; the remainder of n modulo 4 is in the lowest bits of n_bits.
struct Angle {
  double r;
  uint64_t n_bits;
};

/// pi/2 in parts (Cody and Waite 1980), so that r keeps its digits beside multiples of pi/2 too. With fused operations
/// the first difference is exact: x and n times the part are multiples of 2^-53 and less than 1 apart. Without fused
/// operations n, of at most 20 bits, times a part of 33 bits is exact. Later differences are exact, or lose only
/// digits that are small beside r.
DFLOW_LANE Angle reduce_angle(double x) {
  const double shifted = x * 6.36619772367581343076e-1 + FloatTraits<double>::magic;
  const double n = shifted - FloatTraits<double>::magic;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  const double first = __builtin_fma(-n, 0x1.921fb54442d18p+0, x);
  const double second = __builtin_fma(-n, 0x1.1a62633145c07p-54, first);
  const double r = __builtin_fma(n, 0x1.f1976b7ed8fbcp-110, second);
#else
  const double r =
      (((x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2ep-69) - n * 0x1.b839a252049c1p-104;
#endif
  return {r, bits_of(shifted)};
}

DFLOW_LANE double sin_near_zero(double r) {
  const double z = r * r;
  constexpr double c[] = {1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
                          -1.98412698295895385996e-4, 8.33333333332211858878e-3,  -1.66666666666666307295e-1};
  return r + r * (z * polynomial(z, c));
}
DFLOW_LANE double cos_near_zero(double r) {
  const double z = r * r;
  constexpr double c[] = {-1.13585365213876817300e-11, 2.08757008419747316778e-9,  -2.75573141792967388112e-7,
                          2.48015872888517045348e-5,   -1.38888888888730564116e-3, 4.16666666666665929218e-2};
  return 1.0 - (0.5 * z - z * z * polynomial(z, c));
}

/// sin(x + quarters pi/2).
DFLOW_LANE double sin_lane(double x, uint64_t quarters) {
  const Angle angle = reduce_angle(x);
  const uint64_t n = angle.n_bits + quarters;
  const double y = (n & 1) != 0 ? cos_near_zero(angle.r) : sin_near_zero(angle.r);
  return from_bits<double>(bits_of(y) ^ ((n & 2) << 62));
}
/// In double: the reduction needs the bits.
DFLOW_LANE float sin_lane(float x, uint64_t quarters) {
  return static_cast<float>(sin_lane(static_cast<double>(x), quarters));
}

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
