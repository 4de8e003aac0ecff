// Fourier transforms on a GPU, beside the CPU's.
#include "cuda/gpu_that_is_none.hpp"

#include <dflow/dflow.hpp>

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// Transforms of x and x + iy, also cut and filled up, and the derivatives of sums of their results by x or y.
template <class R>
std::vector<Tensor<R>> transformed_on(const std::string& device, const std::shared_ptr<FakeDriver>& driver,
                                      const Shape& shape) {
  using C = std::complex<R>;
  Graph graph;
  const auto x = placeholder<R>(graph, shape), y = placeholder<R>(graph, shape);
  std::vector<Output<R>> edges;
  {
    const auto on = graph.device(device);
    std::vector<Output<C>> coefficients;
    const auto z = cast<C>(x) + cast<C>(y) * C(0, 1);
    coefficients.insert(coefficients.end(), {fft(z), fft2d(z), fft3d(z), ifft(z), ifft2d(z), ifft3d(z)});
    coefficients.insert(coefficients.end(), {rfft(x), rfft2d(x), rfft3d(x)});
    coefficients.insert(coefficients.end(), {rfft(x, {4}), rfft(x, {9}), rfft2d(x, {2, 11}), rfft3d(x, {7, 1, 3})});
    std::vector<Output<R>> lines{irfft(z),      irfft2d(z),         irfft3d(z),
                                 irfft(z, {7}), irfft2d(z, {3, 1}), irfft3d(z, {2, 9, 4})};
    for (const auto& each : coefficients) {
      const auto real = cast<R>(each), imaginary = cast<R>(each * C(0, -1));
      edges.insert(edges.end(), {real, imaginary});
      const auto sum = reduce_sum(real * real * R(0.25f) + imaginary);
      edges.push_back(gradients(sum, x));
    }
    for (const auto& each : lines) {
      edges.push_back(each);
      edges.push_back(gradients(reduce_sum(each * each * each), y));
    }
  }
  Session session(graph, {.devices = gpus_and_cpu(driver)});
  return run_edges<R>(session, {{x, random_numbers<R>(shape, 1)}, {y, random_numbers<R>(shape, 2)}}, edges);
}

template <class R>
void compare(const Shape& shape) {
  const auto driver = std::make_shared<FakeDriver>();
  const auto got = transformed_on<R>("/gpu:0", driver, shape), want = transformed_on<R>("/cpu:0", driver, shape);
  const double tolerance = sizeof(R) == 4 ? 1e-3 : 1e-10;
  for (std::size_t k = 0; k < want.size(); ++k) {
    INFO(dflow::dtype_name(dtype_of<R>) << " " << shape.to_string() << ", result " << k);
    REQUIRE(got[k].shape() == want[k].shape());
    for (std::int64_t i = 0; i < want[k].num_elements(); ++i) {
      CHECK(got[k].data()[i] == Approx(want[k].data()[i]).epsilon(tolerance).margin(tolerance));
    }
  }
  check_end(*driver);
}

}  // namespace

TEST_CASE("Fourier transforms and their gradients give on a GPU what they give on the CPU", "[cuda]") {
  for (const Shape& shape : {Shape{3, 4, 5, 6}, Shape{2, 3, 7}, Shape{1, 1, 1}, Shape{2, 1, 4, 1}, Shape{3, 2, 3, 2}}) {
    compare<float>(shape);
    compare<double>(shape);
  }
}
