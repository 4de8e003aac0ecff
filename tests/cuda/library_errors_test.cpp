// Decompositions, transforms and moves of rows on a GPU with a driver and libraries that fail.
#include "cuda/gpu_that_is_none.hpp"
#include "support/sanitized.hpp"

#include <dflow/dflow.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <iostream>
#include <memory>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// Results of ops that take memory of their own, libraries, and numbers that the host makes.
struct LibrariesOnGpu {
  Graph graph;
  std::vector<Output<float>> edges;

  LibrariesOnGpu() {
    const auto on = graph.device("/gpu:0");
    Tensor<float> numbers({2, 4, 3});
    float next = 0;
    for (float& each : numbers) each = std::sin(next += 1);
    const auto a = constant(graph, numbers);
    const auto square = batch_matmul(a, a, {.adj_x = true});
    const auto [q, r] = qr(a);
    const auto [s, u, v] = svd(a);
    const auto [values, vectors] = self_adjoint_eig(square);
    edges = {q, r, s, u, v, values, vectors, cholesky(square), matrix_inverse(square), matrix_determinant(square)};
    const auto right = constant(graph, Tensor<float>::full({2, 4, 2}, 1));
    edges.push_back(matrix_triangular_solve(square, batch_matmul(a, right, {.adj_x = true})));
    edges.push_back(matrix_solve_ls(a, right));
    edges.push_back(matrix_solve_ls(a, right, 0, false));
    edges.push_back(irfft2d(rfft2d(a)));
    edges.push_back(cast<float>(fft3d(cast<std::complex<float>>(a))));
    const auto rows = constant(graph, Tensor<std::int32_t>(Shape{2}, {1, 0}));
    const auto parts = dynamic_partition(a, rows, 2);
    edges.push_back(parts[1]);
    edges.push_back(dynamic_stitch<float>({rows}, {a}));
    edges.push_back(random_shuffle(reshape(a, {8, 3}), {.seed = 1}));
  }
  void run(const std::shared_ptr<FakeDriver>& driver) {
    Session session(graph, {.devices = gpus_and_cpu(driver), .passes = PassOptions::none()});
    static_cast<void>(run_edges<float>(session, {}, edges));
  }
};

}  // namespace

TEST_CASE("every kind of decomposition goes through the table of solvers, in any order of the streams", "[cuda]") {
  LibrariesOnGpu program;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = seed});
    program.run(driver);
    CHECK(driver->solver_calls().size() == 9);
    check_end(*driver);
  }
}

TEST_CASE("libraries on a GPU may fail at every call: the step says so, and nothing is left", "[cuda]") {
  LibrariesOnGpu program;
  const auto counted = std::make_shared<FakeDriver>();
  program.run(counted);
  const std::uint64_t calls = counted->num_calls();
  int failed = 0, injected = 0;
  std::uint64_t first = 0;
  for (const auto code :
       {cuda::ErrorCode::out_of_memory, cuda::ErrorCode::library_failed, cuda::ErrorCode::illegal_address}) {
    for (std::uint64_t n = first++; n < calls; n += is_sanitized ? 9 : 3) {
      INFO("call " << n << ", " << name_of(code));
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = n});
      driver->fail_call(n, code);
      ++injected;
      try {
        program.run(driver);
      } catch (const Error& error) {
        ++failed;
        CHECK_THAT(error.what(), Catch::Matchers::Contains("GPU"));
      }
      check_end(*driver);
    }
  }
  std::cout << "count: " << injected << " errors injected into decompositions, transforms and moves of rows, " << failed
            << " ended a step\n";
  CHECK(failed > 0);
}
