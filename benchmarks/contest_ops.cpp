// Ops of TensorFlow 0.8 that no other contest times, by steps on variables; a side of `benchmarks/contest.py ops`. Each
// row has some n elements; benchmarks/peers/tensorflow_ops.py has the same rows.
// usage: bench_contest_ops THREADS
#include <dflow/dflow.hpp>

#include "contestant.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace dflow;

/// The inputs of a row, which are variables, and its size.
class Inputs {
 public:
  Inputs(Graph& graph, std::int64_t size) : n(size), graph_(graph) {}

  const std::int64_t n;

  Output<float> floats(const Shape& shape) {
    return made<float>(shape, [&](std::int64_t) { return normal_(random_); });
  }
  Output<float> positive(const Shape& shape) {
    return made<float>(shape, [&](std::int64_t) { return std::abs(normal_(random_)) + 0.1f; });
  }
  Output<std::complex<float>> complexes(const Shape& shape) {
    return made<std::complex<float>>(shape, [&](std::int64_t) {
      const float real = normal_(random_);
      return std::complex<float>(real, normal_(random_));
    });
  }
  template <class T>
  Output<T> integers(const Shape& shape, std::int64_t limit) {
    return made<T>(shape,
                   [&, limit](std::int64_t) { return static_cast<T>(random_() % static_cast<std::uint64_t>(limit)); });
  }
  /// 0, 0, ..., 1, 1, ...: each of them `each` times.
  Output<std::int32_t> steps(std::int64_t count, std::int64_t each) {
    return made<std::int32_t>({count}, [each](std::int64_t i) { return static_cast<std::int32_t>(i / each); });
  }
  template <class T, class Make>
  Output<T> numbers(const Shape& shape, const Make& make) {
    return made<T>(shape, make);
  }
  Graph& graph() { return graph_; }

 private:
  template <class T, class Make>
  Output<T> made(const Shape& shape, const Make& make) {
    Tensor<T> tensor(shape);
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data()[i] = static_cast<T>(make(i));
    return Variable<T>(graph_, std::move(tensor));
  }

  Graph& graph_;
  std::mt19937_64 random_{1};
  std::normal_distribution<float> normal_;
};

using Outputs = std::vector<AnyOutput>;
struct Row {
  const char* name;
  std::function<Outputs(Inputs&)> build;
};

std::int64_t side_of(std::int64_t n) { return static_cast<std::int64_t>(std::sqrt(static_cast<double>(n))); }

Shape rows_of_100(const Inputs& in) { return {in.n / 100, 100}; }
Shape images(const Inputs& in) { return {in.n / 1000, 10, 10, 10}; }

/// A reduction of sorted segments of 4 rows of 16.
template <class F>
Row segments(const char* name, F f) {
  return {name, [f](Inputs& in) -> Outputs { return {f(in.floats({in.n / 16, 16}), in.steps(in.n / 16, 4))}; }};
}
template <class F>
Row sparse_segments(const char* name, F f) {
  return {name, [f](Inputs& in) -> Outputs {
            const std::int64_t rows = in.n / 16;
            return {f(in.floats({rows, 16}), in.integers<std::int32_t>({rows}, rows), in.steps(rows, 4))};
          }};
}
template <class F>
Row on_rows(const char* name, F f) {
  return {name, [f](Inputs& in) -> Outputs { return {f(in.floats(rows_of_100(in)))}; }};
}
template <class F>
Row on_images(const char* name, F f) {
  return {name, [f](Inputs& in) -> Outputs { return {f(in.floats(images(in)))}; }};
}

/// A matrix of 1,000 columns (100 if it is small) with n / 10 elements that are not 0, in order, one behind the other.
SparseOutput<float> sparse_matrix(Inputs& in) {
  const std::int64_t columns = in.n >= 100'000 ? 1000 : 100, count = in.n / 10;
  const Output<std::int64_t> indices = in.numbers<std::int64_t>({count, 2}, [columns](std::int64_t i) {
    const std::int64_t at = i / 2 * 10;
    return i % 2 == 0 ? at / columns : at % columns;
  });
  return {.indices = indices,
          .values = in.floats({count}),
          .dense_shape = constant(in.graph(), Tensor<std::int64_t>({2}, {in.n / columns, columns}))};
}

/// Ops of images, sparse tensors, large vocabularies and places.
std::vector<Row> more_rows() {
  return {
      {"where of bools",
       [](Inputs& in) -> Outputs {
         return {where(in.integers<std::int32_t>({in.n}, 2) > in.integers<std::int32_t>({}, 1))};
       }},
      {"boolean mask",
       [](Inputs& in) -> Outputs {
         const auto half = in.integers<std::int32_t>({in.n / 10}, 2) > in.integers<std::int32_t>({}, 1);
         return {boolean_mask(in.floats({in.n / 10, 10}), half)};
       }},
      {"gather_nd of pairs",
       [](Inputs& in) -> Outputs {
         const std::int64_t side = side_of(in.n);
         return {gather_nd(in.floats({side, side}), in.integers<std::int32_t>({in.n, 2}, side))};
       }},
      {"scatter_nd of pairs",
       [](Inputs& in) -> Outputs {
         const std::int64_t side = side_of(in.n);
         return {scatter_nd(in.integers<std::int32_t>({in.n, 2}, side), in.floats({in.n}), {side, side})};
       }},
      {"unique of 1000",
       [](Inputs& in) -> Outputs { return {unique(in.integers<std::int64_t>({in.n}, 1000)).values}; }},
      {"setdiff1d",
       [](Inputs& in) -> Outputs {
         return {
             setdiff1d(in.integers<std::int64_t>({in.n}, in.n), in.integers<std::int64_t>({in.n / 2}, in.n)).values};
       }},
      on_rows("top 10 of rows", [](auto x) { return top_k(x, 10).values; }),
      {"top 100", [](Inputs& in) -> Outputs { return {top_k(in.floats({in.n}), 100).values}; }},
      {"in top 10",
       [](Inputs& in) -> Outputs {
         return {in_top_k(in.floats(rows_of_100(in)), in.integers<std::int32_t>({in.n / 100}, 100), 10)};
       }},
      on_rows("multinomial of 100", [](auto x) { return multinomial(x, 100); }),
      {"uniform candidates",
       [](Inputs& in) -> Outputs {
         const auto some = in.integers<std::int64_t>({in.n / 10, 1}, in.n);
         return {uniform_candidate_sampler(some, {.num_sampled = in.n / 10, .range_max = in.n}).sampled_candidates};
       }},
      on_images("local response", [](auto x) { return local_response_normalization(x); }),
      on_images("max pool with argmax",
                [](auto x) {
                  return max_pool_with_argmax(x, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}}).output;
                }),
      {"max pool 3-D",
       [](Inputs& in) -> Outputs {
         return {max_pool3d(in.floats({in.n / 1000, 5, 10, 10, 2}),
                            {.ksize = {1, 2, 2, 2, 1}, .strides = {1, 2, 2, 2, 1}})};
       }},
      {"conv 3-D of 3x3x3",
       [](Inputs& in) -> Outputs {
         return {conv3d(in.floats({in.n / 1000, 5, 5, 5, 8}), in.floats({3, 3, 3, 8, 8}), {.padding = Padding::same})};
       }},
      {"depthwise conv 3x3",
       [](Inputs& in) -> Outputs {
         return {depthwise_conv2d(in.floats(images(in)), in.floats({3, 3, 10, 1}), {.padding = Padding::same})};
       }},
      {"resize bilinear to double",
       [](Inputs& in) -> Outputs {
         return {resize_bilinear(in.floats({in.n / 1000 + 1, 18, 18, 3}), {36, 36})};
       }},
      {"resize bicubic to double",
       [](Inputs& in) -> Outputs {
         return {resize_bicubic(in.floats({in.n / 1000 + 1, 18, 18, 3}), {36, 36})};
       }},
      {"resize area to half",
       [](Inputs& in) -> Outputs {
         return {resize_area(in.floats({in.n / 1000 + 1, 18, 18, 3}), {9, 9})};
       }},
      {"resize nearest to double",
       [](Inputs& in) -> Outputs {
         return {resize_nearest_neighbor(in.floats({in.n / 1000 + 1, 18, 18, 3}), {36, 36})};
       }},
      {"RGB to HSV",
       [](Inputs& in) -> Outputs {
         return {rgb_to_hsv(in.positive({in.n / 3, 3}))};
       }},
      {"HSV to RGB",
       [](Inputs& in) -> Outputs {
         return {hsv_to_rgb(in.positive({in.n / 3, 3}))};
       }},
      {"adjust contrast", [](Inputs& in) -> Outputs { return {adjust_contrast(in.floats(images(in)), 2.0f)}; }},
      on_images("flip left right", [](auto x) { return flip_left_right(x); }),
      {"sparse to dense", [](Inputs& in) -> Outputs { return {sparse_tensor_to_dense(sparse_matrix(in))}; }},
      {"sparse times 16 columns",
       [](Inputs& in) -> Outputs {
         const SparseOutput<float> a = sparse_matrix(in);
         return {sparse_tensor_dense_matmul(a, in.floats({in.n >= 100'000 ? 1000 : 100, 16}))};
       }},
      {"sparse sum of rows", [](Inputs& in) -> Outputs { return {sparse_reduce_sum(sparse_matrix(in), {1})}; }},
      {"sparse add", [](Inputs& in) -> Outputs { return {sparse_add(sparse_matrix(in), sparse_matrix(in)).values}; }},
      {"sparse plus dense",
       [](Inputs& in) -> Outputs {
         const std::int64_t columns = in.n >= 100'000 ? 1000 : 100;
         return {sparse_tensor_dense_add(sparse_matrix(in), in.floats({in.n / columns, columns}))};
       }},
      {"embedding lookup sparse",
       [](Inputs& in) -> Outputs {
         const SparseOutput<float> at = sparse_matrix(in);
         const SparseOutput<std::int64_t> ids{at.indices, in.integers<std::int64_t>({in.n / 10}, 1000), at.dense_shape};
         return {embedding_lookup_sparse(in.floats({1000, 16}), ids, {})};
       }},
  };
}

std::vector<Row> all_rows() {
  return {
      on_rows("cumsum of rows", [](auto x) { return cumsum(x, 1); }),
      on_rows("cumsum of columns", [](auto x) { return cumsum(x, 0); }),
      on_rows("cumprod of rows", [](auto x) { return cumprod(x, 1); }),
      segments("segment sum", [](auto x, auto ids) { return segment_sum(x, ids); }),
      segments("segment mean", [](auto x, auto ids) { return segment_mean(x, ids); }),
      segments("segment prod", [](auto x, auto ids) { return segment_prod(x, ids); }),
      segments("segment min", [](auto x, auto ids) { return segment_min(x, ids); }),
      segments("segment max", [](auto x, auto ids) { return segment_max(x, ids); }),
      sparse_segments("sparse segment sum", [](auto x, auto at, auto ids) { return sparse_segment_sum(x, at, ids); }),
      sparse_segments("sparse segment mean", [](auto x, auto at, auto ids) { return sparse_segment_mean(x, at, ids); }),
      sparse_segments("sparse segment sqrt n",
                      [](auto x, auto at, auto ids) { return sparse_segment_sqrt_n(x, at, ids); }),
      on_rows("strided slice of columns", [](auto x) { return x(slice(), slice(1, -1, 2)); }),
      on_rows("strided slice of rows", [](auto x) { return x(slice({}, {}, 2)); }),
      {"tile 4 times",
       [](Inputs& in) -> Outputs {
         return {tile(in.floats({in.n / 100, 25}), {1, 4})};
       }},
      on_rows("reverse rows", [](auto x) { return reverse(x, {1}); }),
      on_rows("reverse columns", [](auto x) { return reverse(x, {0}); }),
      {"reverse sequence",
       [](Inputs& in) -> Outputs {
         return {reverse_sequence(in.floats({in.n / 100, 100}), in.integers<std::int64_t>({in.n / 100}, 100),
                                  {.seq_dim = 1, .batch_dim = 0})};
       }},
      on_images("mirror pad",
                [](auto x) {
                  return mirror_pad(x, {{0, 0}, {1, 1}, {1, 1}, {0, 0}}, Mirror::reflect);
                }),
      on_images("space to depth", [](auto x) { return space_to_depth(x, 2); }),
      on_images("space to batch",
                [](auto x) {
                  return space_to_batch(x, {2, 2});
                }),
      {"depth to space",
       [](Inputs& in) -> Outputs {
         return {depth_to_space(in.floats({in.n / 1000, 5, 5, 40}), 2)};
       }},
      {"batch to space",
       [](Inputs& in) -> Outputs {
         return {batch_to_space(in.floats({in.n / 250, 5, 5, 10}), {2, 2})};
       }},
      {"diag", [](Inputs& in) -> Outputs { return {diag(in.floats({side_of(in.n)}))}; }},
      {"diag part",
       [](Inputs& in) -> Outputs {
         return {diag_part(in.floats({side_of(in.n), side_of(in.n)}))};
       }},
      {"linspace",
       [](Inputs& in) -> Outputs { return {linspace(in.floats({}), in.floats({}), static_cast<std::int32_t>(in.n))}; }},
      {"complex", [](Inputs& in) -> Outputs { return {complex(in.floats({in.n}), in.floats({in.n}))}; }},
      {"real", [](Inputs& in) -> Outputs { return {real(in.complexes({in.n}))}; }},
      {"complex abs", [](Inputs& in) -> Outputs { return {complex_abs(in.complexes({in.n}))}; }},
      {"angle", [](Inputs& in) -> Outputs { return {angle(in.complexes({in.n}))}; }},
      {"cross",
       [](Inputs& in) -> Outputs {
         return {cross(in.floats({in.n / 3, 3}), in.floats({in.n / 3, 3}))};
       }},
      on_rows("logsumexp of rows", [](auto x) { return reduce_logsumexp(x, {1}); }),
      {"trace",
       [](Inputs& in) -> Outputs {
         return {trace(in.floats({side_of(in.n), side_of(in.n)}))};
       }},
      {"lbeta",
       [](Inputs& in) -> Outputs {
         return {lbeta(in.positive({in.n / 10, 10}))};
       }},
      {"bincount", [](Inputs& in) -> Outputs { return {bincount(in.integers<std::int32_t>({in.n}, 100), 100)}; }},
      {"logical xor",
       [](Inputs& in) -> Outputs {
         const auto zero = in.floats({});
         return {logical_xor(in.floats({in.n}) > zero, in.floats({in.n}) > zero)};
       }},
      {"truediv of integers",
       [](Inputs& in) -> Outputs {
         return {truediv(in.integers<std::int32_t>({in.n}, 1000), in.integers<std::int32_t>({in.n}, 1000))};
       }},
      {"floordiv of integers",
       [](Inputs& in) -> Outputs {
         return {floordiv(in.integers<std::int32_t>({in.n}, 1000), in.integers<std::int32_t>({in.n}, 1000) + 1)};
       }},
      {"saturate cast",
       [](Inputs& in) -> Outputs { return {saturate_cast<std::uint8_t>(in.floats({in.n}) * 100.0f)}; }},
      {"zero fraction", [](Inputs& in) -> Outputs { return {zero_fraction(in.floats({in.n}))}; }},
      on_rows("l2 normalize rows", [](auto x) { return l2_normalize(x, {1}); }),
      {"moments of columns",
       [](Inputs& in) -> Outputs {
         const auto [mean, variance] = moments(in.floats(rows_of_100(in)), {0});
         return {mean, variance};
       }},
      {"accumulate 4",
       [](Inputs& in) -> Outputs {
         const Shape shape{in.n};
         return {accumulate_n({in.floats(shape), in.floats(shape), in.floats(shape), in.floats(shape)})};
       }},
      {"weighted cross entropy",
       [](Inputs& in) -> Outputs {
         return {weighted_cross_entropy_with_logits(in.floats({in.n}), in.positive({in.n}), 2.0f)};
       }},
      {"einsum bij,bjk->bik",
       [](Inputs& in) -> Outputs {
         return {einsum("bij,bjk->bik", {in.floats({in.n / 100, 10, 10}), in.floats({in.n / 100, 10, 10})})};
       }},
      {"einsum ij->ji", [](Inputs& in) -> Outputs { return {einsum("ij->ji", {in.floats(rows_of_100(in))})}; }},
  };
}

struct Steps {
  Graph graph;
  std::unique_ptr<Session> session;
};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  bench::Contestant contestant;
  for (const std::int64_t n : {1'000, 1'000'000}) {
    std::vector<Row> rows = all_rows(), more = more_rows();
    rows.insert(rows.end(), more.begin(), more.end());
    for (const Row& row : rows) {
      contestant.row(std::string(row.name) + " " + std::to_string(n), [n, threads, build = row.build] {
        auto side = std::make_shared<Steps>();
        Inputs inputs(side->graph, n);
        std::vector<Operation> ops;
        for (const AnyOutput& output : build(inputs)) ops.push_back(output.operation());
        const auto done = group(ops);
        side->session = std::make_unique<Session>(side->graph, SessionOptions{.num_threads = threads});
        side->session->run(initialize_variables(side->graph));
        using Step = decltype(side->session->prepare(feeds(), fetches(done)));
        auto prepared = std::make_shared<Step>(side->session->prepare(feeds(), fetches(done)));
        return [side, prepared] { (*prepared)(); };
      });
    }
  }
  return contestant.serve();
}
