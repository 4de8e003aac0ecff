#include <dflow/ops/nn/list.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/nn/dropout.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

bool is_invalid(auto&& f, std::string_view part) {
  const std::string error = error_of(f);
  INFO(error);
  const bool fits = error.find("INVALID_ARGUMENT") != std::string::npos && error.find(part) != std::string::npos;
  CHECK(fits);
  return fits;
}

template <class T>
Tensor<T> iota(const Shape& shape, T scale = T(1)) {
  Tensor<T> tensor(shape);
  T next{};
  for (T& x : tensor) x = (next += T(1)) * scale;
  return tensor;
}

}  // namespace

TEST_CASE("a window has TensorFlow's places") {
  using detail::window_places;
  const auto places = [](std::int64_t input, std::int64_t window, std::int64_t stride, Padding padding) {
    const detail::WindowPlaces p = window_places(input, window, stride, padding);
    return std::vector<std::int64_t>{p.count, p.pad_before, p.pad_after};
  };
  CHECK(places(5, 3, 1, Padding::valid) == std::vector<std::int64_t>{3, 0, 0});
  CHECK(places(6, 3, 2, Padding::valid) == std::vector<std::int64_t>{2, 0, 0});
  CHECK(places(3, 3, 7, Padding::valid) == std::vector<std::int64_t>{1, 0, 0});
  CHECK(places(2, 3, 1, Padding::valid) == std::vector<std::int64_t>{0, 0, 0});
  CHECK(places(5, 3, 1, Padding::same) == std::vector<std::int64_t>{5, 1, 1});
  CHECK(places(5, 2, 1, Padding::same) == std::vector<std::int64_t>{5, 0, 1});
  CHECK(places(6, 3, 2, Padding::same) == std::vector<std::int64_t>{3, 0, 1});
  CHECK(places(7, 2, 3, Padding::same) == std::vector<std::int64_t>{3, 0, 1});
  CHECK(places(7, 1, 3, Padding::same) == std::vector<std::int64_t>{3, 0, 0});
  CHECK(places(0, 3, 2, Padding::same) == std::vector<std::int64_t>{0, 0, 0});
}

TEST_CASE("attributes of windows have TensorFlow's names") {
  CHECK(reflect::field_name<Conv2DAttrs, 0> == "strides");
  CHECK(reflect::field_name<Conv2DAttrs, 1> == "padding");
  CHECK(reflect::field_name<Conv2DAttrs, 2> == "data_format");
  CHECK(reflect::field_name<Conv2DAttrs, 3> == "dilations");
  CHECK(reflect::field_name<Pool2DAttrs, 0> == "ksize");
  Conv2DAttrs attrs;
  op_def<Conv2D>.attr_fields[1].set(&attrs, std::string("SAME"));
  CHECK(attrs.padding == Padding::same);
  CHECK(std::get<std::string>(op_def<Conv2D>.attr_fields[1].get(&attrs)) == "SAME");
  is_invalid([&] { op_def<Conv2D>.attr_fields[1].set(&attrs, std::string("FULL")); }, "FULL");
}

TEST_CASE("shapes of convolution and pooling are inferred with an open batch") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 28, 28, 1});
  const auto filter = placeholder<float>(graph, {5, 5, 1, 32});
  const auto y = conv2d(x, filter, {.padding = Padding::same});
  CHECK(y.shape() == PartialShape{dynamic, 28, 28, 32});
  CHECK(conv2d(x, filter, {.strides = {1, 2, 3, 1}}).shape() == PartialShape{dynamic, 12, 8, 32});
  const auto pooled = max_pool(y, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}, .padding = Padding::same});
  CHECK(pooled.shape() == PartialShape{dynamic, 14, 14, 32});
  CHECK(avg_pool(y, {.ksize = {1, 28, 28, 1}}).shape() == PartialShape{dynamic, 1, 1, 32});
  CHECK(conv2d(x, filter, {.dilations = {1, 2, 3, 1}}).shape() == PartialShape{dynamic, 20, 16, 32});
  CHECK(conv2d(x, filter, {.strides = {1, 2, 2, 1}, .padding = Padding::same, .dilations = {1, 9, 9, 1}}).shape() ==
        PartialShape{dynamic, 14, 14, 32});
  CHECK(conv2d(placeholder<float>(graph), filter).shape() == PartialShape{dynamic, dynamic, dynamic, 32});
  const auto open = placeholder<float>(graph, {2, dynamic, 9, 3});
  CHECK(max_pool(open, {.ksize = {1, 3, 3, 1}}).shape() == PartialShape{2, dynamic, 7, 3});
}

TEST_CASE("gradients of convolution have the shapes that their sizes say") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 6, 5, 2});
  const auto filter = placeholder<float>(graph, {3, 3, 2, 4});
  const auto dy = placeholder<float>(graph, {dynamic, 6, 5, 4});
  const Conv2DAttrs same{.padding = Padding::same};
  const auto known = constant<std::int32_t>(graph, Tensor<std::int32_t>({4}, {7, 6, 5, 2}));
  CHECK(conv2d_backprop_input(known, filter, dy, same).shape() == PartialShape{7, 6, 5, 2});
  CHECK(conv2d_backprop_input(shape(x), filter, dy, same).shape() == PartialShape{dynamic, 6, 5, 2});
  const auto fed = placeholder<std::int32_t>(graph, {4});
  // A filter of two channels may be one of several groups.
  CHECK(conv2d_backprop_input(fed, filter, dy, same).shape() == PartialShape::unknown(4));
  CHECK(conv2d_backprop_filter(x, shape(filter), dy, same).shape() == PartialShape{3, 3, 2, 4});
  is_invalid([&] { conv2d_backprop_input(known, filter, placeholder<float>(graph, {7, 6, 4, 4}), same); }, "[7,6,4,4]");
}

TEST_CASE("a dilation far beyond the image costs no memory, and leaves the middle of the filter") {
  constexpr std::int64_t far = (std::int64_t{1} << 31) - 1;
  Graph graph;
  const auto x = placeholder<float>(graph, {2, 5, 6, 3});
  const auto filter = placeholder<float>(graph, {3, 3, 3, 4});
  const auto y = conv2d(x, filter, {.padding = Padding::same, .dilations = {1, far, far, 1}});
  const auto [dx, dfilter] = gradients(reduce_sum(y * y), x, filter);
  Session session(graph);
  const auto images = iota<float>({2, 5, 6, 3}, 0.125f), weights = iota<float>({3, 3, 3, 4}, 0.5f);
  const auto [value, slope, by_filter] = session.run({{x, images}, {filter, weights}}, y, dx, dfilter);
  float expected = 0, expected_slope = 0;
  for (int q = 0; q < 3; ++q) expected += images(1, 4, 5, q) * weights(1, 1, q, 3);
  for (int k = 0; k < 4; ++k) expected_slope += 2 * value(0, 2, 3, k) * weights(1, 1, 1, k);
  CHECK(value(1, 4, 5, 3) == Catch::Approx(expected));
  CHECK(slope(0, 2, 3, 1) == Catch::Approx(expected_slope));
  CHECK(by_filter(1, 1, 2, 3) != 0.0f);
  CHECK(by_filter(0, 1, 2, 3) == 0.0f);
  CHECK(by_filter(2, 2, 2, 3) == 0.0f);
}

TEST_CASE("convolutions that cannot be are refused when they are built") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 4, 4, 2});
  const auto filter = placeholder<float>(graph, {3, 3, 2, 8});
  const std::size_t before = graph.num_nodes();
  is_invalid([&] { conv2d(x, filter, {.strides = {1, 0, 1, 1}}); }, "strides must be positive");
  is_invalid([&] { conv2d(x, filter, {.strides = {1, 1, 1}}); }, "4 elements");
  is_invalid([&] { conv2d(x, filter, {.strides = {2, 1, 1, 1}}); }, "batch and channels");
  is_invalid([&] { conv2d(x, filter, {.data_format = DataFormat::nchw}); }, "NCHW");
  is_invalid([&] { conv2d(x, filter, {.dilations = {1, 0, 1, 1}}); }, "dilations must be positive");
  is_invalid([&] { conv2d(x, filter, {.dilations = {1, 1, 1, 2}}); }, "batch and channels");
  is_invalid([&] { conv2d(x, filter, {.dilations = {1, 1}}); }, "4 elements");
  is_invalid([&] { conv2d(x, filter, {.dilations = {1, 1, 2, 1}}); }, "3 columns, 2 apart, do not fit");
  CHECK(graph.num_nodes() == before);
  const auto large = placeholder<float>(graph, {5, 3, 2, 8});
  is_invalid([&] { conv2d(x, large); }, "do not fit");
  is_invalid(
      [&] {
        conv2d(placeholder<float>(graph), placeholder<float>(graph, {std::int64_t{1} << 40, 3, 0, 8}),
               {.padding = Padding::same, .dilations = {1, std::int64_t{1} << 30, 1, 1}});
      },
      "2^62");
  is_invalid([&] { conv2d(x, large); }, "Conv2D");
  is_invalid([&] { conv2d(x, large); }, "[?,4,4,2] [5,3,2,8]");
  is_invalid([&] { conv2d(x, placeholder<float>(graph, {3, 3, 3, 8})); }, "2 channels");
  is_invalid([&] { conv2d(placeholder<float>(graph, {4, 4, 2}), filter); }, "rank 4");
  is_invalid([&] { conv2d(x, placeholder<float>(graph, {0, 3, 2, 8})); }, "0 rows");
  is_invalid([&] { max_pool(x, {.ksize = {1, 5, 5, 1}}); }, "do not fit");
  is_invalid([&] { max_pool(x, {.ksize = {1, 0, 2, 1}}); }, "ksize must be positive");
  is_invalid([&] { avg_pool(x, {.ksize = {1, 2, 2, 1}, .strides = {1, std::int64_t{1} << 40, 1, 1}}); }, "2^31");
}

TEST_CASE("biases, softmax and losses are checked when they are built") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 10});
  CHECK(bias_add(x, placeholder<float>(graph, {10})).shape() == PartialShape{dynamic, 10});
  CHECK(bias_add(placeholder<float>(graph, {3, dynamic}), placeholder<float>(graph, {10})).shape() ==
        PartialShape{3, 10});
  is_invalid([&] { bias_add(x, placeholder<float>(graph, {9})); }, "9 elements for 10 channels");
  is_invalid([&] { bias_add(placeholder<float>(graph, {10}), placeholder<float>(graph, {10})); }, "rank 2 or more");
  is_invalid([&] { softmax(placeholder<float>(graph, {})); }, "rank 1");
  CHECK(softmax_cross_entropy(x, placeholder<float>(graph, {7, 10})).shape() == PartialShape{7});
  is_invalid([&] { softmax_cross_entropy(x, placeholder<float>(graph, {7, 9})); }, "do not agree");
  CHECK(sparse_softmax_cross_entropy(x, placeholder<std::int64_t>(graph, {7})).shape() == PartialShape{7});
  const auto rows = placeholder<double>(graph, {7, 10});
  is_invalid([&] { sparse_softmax_cross_entropy(rows, placeholder<std::int32_t>(graph, {6})); }, "one label per row");
  CHECK(l2_loss(x).shape() == PartialShape{});
  CHECK(sigmoid_cross_entropy(rows, rows).shape() == PartialShape{7, 10});
}

TEST_CASE("batch normalisation checks its parameters when it is built") {
  Graph graph;
  const auto x = placeholder<Half>(graph, {dynamic, 4, 4, 3});
  const auto three = placeholder<float>(graph, {3});
  const auto result = fused_batch_norm(x, three, three);
  CHECK(result.y.shape() == PartialShape{dynamic, 4, 4, 3});
  CHECK(result.batch_mean.shape() == PartialShape{3});
  CHECK(fused_batch_norm(x, three, three, three, three).shape() == PartialShape{dynamic, 4, 4, 3});
  is_invalid([&] { fused_batch_norm(x, placeholder<float>(graph, {2}), three); }, "3 channels");
  is_invalid([&] { fused_batch_norm(x, three, three, three, placeholder<float>(graph, {4})); }, "3 channels");
  const auto wide = placeholder<double>(graph, {3});
  is_invalid([&] { build<FusedBatchNorm>({x, wide, wide, wide, wide}); }, "must be float");
}

TEST_CASE("a label out of range fails the step and says where") {
  Graph graph;
  const auto logits = placeholder<float>(graph, {dynamic, 3});
  const auto labels = placeholder<std::int32_t>(graph, {dynamic});
  const auto loss = sparse_softmax_cross_entropy(logits, labels);
  Session session(graph, {.num_threads = 2});
  const Tensor<float> rows({3, 3}, {0, 0, 0, 1, 1, 1, 2, 2, 2});
  const auto run = [&](std::initializer_list<std::int32_t> values) {
    return session.run({{logits, rows}, {labels, Tensor<std::int32_t>({3}, values)}}, loss);
  };
  is_invalid([&] { run({0, 2, 3}); }, "labels[2] = 3 is outside [0, 3)");
  is_invalid([&] { run({-1, 2, 0}); }, "labels[0] = -1");
  CHECK(run({0, 1, 2})(1) == Catch::Approx(std::log(3.0)));
}

TEST_CASE("a cross entropy whose gradient is in the loss too has the gradients of differences") {
  Graph graph;
  const auto logits = placeholder<double>(graph, {2, 3}), labels = placeholder<double>(graph, {2, 3});
  const auto classes = placeholder<std::int32_t>(graph, {2});
  const Feed at(logits, Tensor<double>({2, 3}, {0.5, -1, 2, 0.25, 1.5, -0.75}));
  const Feed likely(labels, Tensor<double>({2, 3}, {0.5, 0.125, 0.375, 0, 0.75, 0.25}));
  const Feed known(classes, Tensor<std::int32_t>({2}, {2, 0}));
  const auto dense = softmax_cross_entropy(logits, labels), sparse = sparse_softmax_cross_entropy(logits, classes);
  const auto dense_slope = square(gradients(dense, logits)), sparse_slope = square(gradients(sparse, logits));
  Session session(graph, {.num_threads = 1});
  // The loss alone, its gradient alone, and both: one output of the op has a gradient, the other, or both.
  for (const auto& y : {reduce_sum(dense), reduce_sum(dense_slope), reduce_sum(dense) + reduce_sum(dense_slope)}) {
    const GradientCheck check = check_gradients(session, y, {at, likely});
    INFO(check.to_string());
    CHECK(check.is_ok());
  }
  for (const auto& y : {reduce_sum(sparse), reduce_sum(sparse_slope), reduce_sum(sparse) + reduce_sum(sparse_slope)}) {
    const GradientCheck check = check_gradients(session, y, {at}, {.feeds = {known}});
    INFO(check.to_string());
    CHECK(check.is_ok());
  }
}

TEST_CASE("sizes that only the step knows are checked there") {
  Graph graph;
  const auto sizes = placeholder<std::int32_t>(graph);
  const auto filter = placeholder<float>(graph);
  const auto dy = placeholder<float>(graph);
  const auto dx = conv2d_backprop_input(sizes, filter, dy);
  Session session(graph, {.num_threads = 1});
  const auto run = [&](std::vector<std::int32_t> values) {
    return session.run({{sizes, Tensor<std::int32_t>({static_cast<std::int64_t>(values.size())}, values)},
                        {filter, iota<float>({2, 2, 1, 1})},
                        {dy, iota<float>({1, 2, 2, 1})}},
                       dx);
  };
  CHECK(run({1, 3, 3, 1}).shape() == Shape{1, 3, 3, 1});
  CHECK(run({1, 3, 3, 1})(0, 1, 1, 0) == 1 * 4 + 2 * 3 + 3 * 2 + 4 * 1);
  is_invalid([&] { run({1, 4, 3, 1}); }, "out_backprop");
  is_invalid([&] { run({1, -3, 3, 1}); }, "negative size");
  is_invalid([&] { run({3, 3, 1}); }, "4 elements");
}

TEST_CASE("what the second derivative of max pooling picks stands where the maxima do") {
  Graph graph;
  const auto x = placeholder<float>(graph, {1, 4, 4, 1});
  const auto values = placeholder<float>(graph, {1, 4, 4, 1});
  const Pool2DAttrs attrs{.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}};
  const auto y = max_pool(x, attrs);
  const Output<float> picked(build<MaxPoolGradGrad>({x, y, values}, attrs).output(0));
  Session session(graph, {.num_threads = 1});
  Tensor<float> images({1, 4, 4, 1}, {5, 1, 2, 2, 3, 4, 2, 2, 0, 0, 9, 8, 0, 7, 6, 9});
  const Tensor<float> result = session.run({{x, images}, {values, iota<float>({1, 4, 4, 1})}}, picked);
  CHECK(std::vector<float>(result.begin(), result.end()) == std::vector<float>{1, 3, 14, 11});
}

TEST_CASE("dropout keeps the expectation, scales what it keeps, and lets the gradient through where it kept") {
  Graph graph({.seed = 11});
  const auto x = placeholder<float>(graph, {dynamic, 100});
  const auto y = dropout(x, 0.25f);
  const auto dx = gradients(y, x);
  Session session(graph, {.num_threads = 2});
  const auto [values, slopes] = session.run({{x, Tensor<float>::full({400, 100}, 3.0f)}}, y, dx);
  double sum = 0;
  for (std::size_t i = 0; i < values.span().size(); ++i) {
    REQUIRE((values.span()[i] == 0.0f || values.span()[i] == 12.0f));
    REQUIRE(slopes.span()[i] * 3.0f == values.span()[i]);
    sum += values.span()[i];
  }
  CHECK(sum / 40000 == Catch::Approx(3).margin(0.15));
  is_invalid([&] { dropout(x, 0.0f); }, "keep_prob");
  is_invalid([&] { dropout(x, 1.5f); }, "keep_prob");
  CHECK(dropout(x, 1.0f) == x);
}

namespace {
/// How many of a million ones are dropped, by a constant and by the same number fed.
template <class T>
std::pair<double, double> num_dropped(float keep_prob) {
  Graph graph({.seed = 7});
  const auto x = placeholder<T>(graph, {dynamic}), keep = placeholder<T>(graph, {});
  const auto y = dropout(x, keep_prob), fed = dropout(x, keep);
  const auto dy = gradients(y, x);
  Session session(graph, {.num_threads = 2});
  const auto [values, other, slopes] =
      session.run({{x, Tensor<T>::full({1'000'000}, T(1))}, {keep, T(keep_prob)}}, y, fed, dy);
  const T kept = T(1) / T(keep_prob);
  double by_constant = 0, by_fed = 0;
  for (std::size_t i = 0; i < values.span().size(); ++i) {
    by_constant += values.span()[i] == T(0);
    by_fed += other.span()[i] == T(0);
    if (slopes.span()[i] != values.span()[i] || (values.span()[i] != T(0) && values.span()[i] != kept)) return {-1, i};
  }
  return {by_constant, by_fed};
}
}  // namespace

TEST_CASE("dropout of 16-bit floats draws with the probability that it is given") {
  // Five standard deviations of a binomial distribution of a million.
  const auto is_near = [](double count, double probability) {
    INFO(count << " dropped, of a million with probability " << probability);
    CHECK(std::abs(count - 1e6 * probability) < 5 * std::sqrt(1e6 * probability * (1 - probability)));
  };
  for (const float keep : {0.999f, 0.9f, 0.3f, 0.001f}) {
    const auto [half, half_fed] = num_dropped<Half>(keep);
    const auto [brain, brain_fed] = num_dropped<BFloat16>(keep);
    is_near(half, 1 - static_cast<double>(keep));
    is_near(brain, 1 - static_cast<double>(keep));
    is_near(half_fed, 1 - static_cast<double>(Half(keep)));
    if (BFloat16(keep) != BFloat16(1)) is_near(brain_fed, 1 - static_cast<double>(BFloat16(keep)));
  }
  const auto [single, single_fed] = num_dropped<float>(0.999f);
  is_near(single, 0.001);
  is_near(single_fed, 0.001);
}

TEST_CASE("a fed keep_prob of 1 keeps everything") {
  Graph graph({.seed = 3});
  const auto x = placeholder<double>(graph, {8});
  const auto keep = placeholder<double>(graph, {});
  const auto y = dropout(x, keep);
  Session session(graph, {.num_threads = 1});
  const Tensor<double> result = session.run({{x, iota<double>({8})}, {keep, 1.0}}, y);
  CHECK(bitwise_equal(result, iota<double>({8})));
}

TEST_CASE("a fed keep_prob that is no probability fails the step") {
  Graph graph({.seed = 3});
  const auto x = placeholder<float>(graph, {8}), keep = placeholder<float>(graph);
  const auto half_x = placeholder<Half>(graph, {8}), half_keep = placeholder<Half>(graph, {});
  const auto y = dropout(x, keep);
  const auto half_y = dropout(half_x, half_keep);
  Session session(graph, {.num_threads = 1});
  const auto run = [&](const Tensor<float>& value) { return session.run({{x, iota<float>({8})}, {keep, value}}, y); };
  for (const float bad : {0.0f, -0.0f, 1.5f, -1.0f, std::nextafter(1.0f, 2.0f), INFINITY, NAN}) {
    INFO(bad);
    is_invalid([&] { run(bad); }, "keep_prob must be in (0, 1]");
  }
  is_invalid([&] { run(Tensor<float>({8}, std::vector<float>(8, 0.5f))); }, "scalar");
  is_invalid(
      [&] {
        session.run({{half_x, Tensor<Half>::zeros({8})}, {half_keep, Half(1.5f)}}, half_y);
      },
      "(0, 1], got] [half[] 1.5]");
  for (const float value : run(0.5f)) CHECK((value == 0.0f || std::fmod(value, 2.0f) == 0.0f));
  CHECK(bitwise_equal(run(1.0f), iota<float>({8})));
}

TEST_CASE("what dropout drops becomes 0, and has gradient 0, whatever it was") {
  Graph graph({.seed = 3});
  const auto x = placeholder<float>(graph, {400});
  const auto y = dropout(x, 0.5f), dx = gradients(reduce_sum(y * y), x);
  Session session(graph, {.num_threads = 1});
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const auto [values, slopes] = session.run({{x, Tensor<float>::full({400}, bad)}}, y, dx);
    int dropped = 0;
    for (std::size_t i = 0; i < 400; ++i) {
      if (values.span()[i] != 0) continue;
      ++dropped;
      CHECK(slopes.span()[i] == 0.0f);
    }
    CHECK(dropped > 140);
    CHECK(dropped < 260);
  }
}

// Expected: exact, of the loss (s (x - m))^2 / v summed over x = 1, 4 with s = 3/2, m = 2, v = 3. Its derivative by s
// is 2 s sum((x - m)^2) / v, and so on.
TEST_CASE("batch normalisation is differentiated twice through the mean and variance that it is given") {
  Graph graph;
  const auto x = placeholder<double>(graph, {1, 1, 2, 1}), scale = placeholder<double>(graph, {1}),
             mean = placeholder<double>(graph, {1}), variance = placeholder<double>(graph, {1});
  const auto y = fused_batch_norm(x, scale, constant(graph, Tensor<double>::zeros({1})), mean, variance, 0.0);
  const auto [dx, ds, dm, dv] = gradients(reduce_sum(y * y), x, scale, mean, variance);
  const auto [dxdm, dxdv] = gradients(dx, mean, variance);
  const auto [dsdm, dsdv] = gradients(ds, mean, variance);
  const auto [dmdm, dmdv] = gradients(dm, mean, variance);
  const auto [dvdm, dvdv] = gradients(dv, mean, variance);
  const auto dsdvdm = gradients(dsdv, mean);
  Session session(graph, {.num_threads = 1});
  const auto value = [&](const Output<double>& of) {
    return session.run({{x, Tensor<double>({1, 1, 2, 1}, {1, 4})},
                        {scale, Tensor<double>({1}, {1.5})},
                        {mean, Tensor<double>({1}, {2})},
                        {variance, Tensor<double>({1}, {3})}},
                       of)(0);
  };
  CHECK(value(ds) == Catch::Approx(5).epsilon(1e-14));
  CHECK(value(dm) == Catch::Approx(-1.5).epsilon(1e-14));
  CHECK(value(dv) == Catch::Approx(-1.25).epsilon(1e-14));
  CHECK(value(dxdm) == Catch::Approx(-3).epsilon(1e-14));
  CHECK(value(dxdv) == Catch::Approx(-0.5).epsilon(1e-14));
  CHECK(value(dsdm) == Catch::Approx(-2).epsilon(1e-14));
  CHECK(value(dsdv) == Catch::Approx(-5.0 / 3).epsilon(1e-14));
  CHECK(value(dmdm) == Catch::Approx(3).epsilon(1e-14));
  CHECK(value(dmdv) == Catch::Approx(0.5).epsilon(1e-14));
  CHECK(value(dvdm) == Catch::Approx(0.5).epsilon(1e-14));
  CHECK(value(dvdv) == Catch::Approx(5.0 / 6).epsilon(1e-14));
  CHECK(value(dsdvdm) == Catch::Approx(2.0 / 3).epsilon(1e-14));
}

TEST_CASE("batch normalisation in training and with given statistics agree when the statistics do") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 2, 2, 2});
  const auto scale = placeholder<float>(graph, {2}), offset = placeholder<float>(graph, {2});
  const auto mean = placeholder<float>(graph, {2}), variance = placeholder<float>(graph, {2});
  const auto trained = fused_batch_norm(x, scale, offset, 0.5f);
  const auto given = fused_batch_norm(x, scale, offset, mean, variance, 0.5f);
  Session session(graph, {.num_threads = 2});
  const Tensor<float> images = iota<float>({3, 2, 2, 2}, 0.25f), s({2}, {2, 3}), o({2}, {-1, 1});
  const auto [y, m, v] =
      session.run({{x, images}, {scale, s}, {offset, o}}, trained.y, trained.batch_mean, trained.batch_variance);
  CHECK(m(0) == Catch::Approx(3.0));
  const float plain = v(0) * 11 / 12;
  const Tensor<float> z = session.run(
      {{x, images}, {scale, s}, {offset, o}, {mean, m}, {variance, Tensor<float>({2}, {plain, plain})}}, given);
  for (std::size_t i = 0; i < y.span().size(); ++i) REQUIRE(z.span()[i] == Catch::Approx(y.span()[i]).margin(1e-5));
}

namespace {

/// Checks elements against values that NumPy 2.4.6 computed in float64.
void check_elements(const Tensor<double>& got, const Shape& shape, const std::vector<double>& wanted) {
  CHECK(got.shape() == shape);
  REQUIRE(got.span().size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO(i);
    CHECK(got.span()[i] == Catch::Approx(wanted[i]).margin(1e-12));
  }
}

const Tensor<double> sequence_logits({2, 2, 3}, {1, 2, 3, 0, 0, 0, -1, 0, 1, 2, 2, -2});
const Tensor<double> sequence_weights({2, 2}, {1, 2, 3, 4});

}  // namespace

TEST_CASE("the cross entropy with a class per row takes rows of any rank") {
  Graph graph;
  const auto logits = placeholder<double>(graph, {dynamic, dynamic, 3});
  const auto labels = placeholder<std::int32_t>(graph, {dynamic, dynamic});
  const auto loss = sparse_softmax_cross_entropy(logits, labels);
  CHECK(loss.shape() == PartialShape{dynamic, dynamic});
  const auto dlogits = gradients(reduce_sum(loss * sequence_weights), logits);
  Session session(graph);
  const Tensor<std::int32_t> given({2, 2}, {2, 0, 1, 2});
  const auto [losses, slopes] = session.run({{logits, sequence_logits}, {labels, given}}, loss, dlogits);
  check_elements(losses, {2, 2}, {0.4076059644443804, 1.0986122886681098, 1.4076059644443804, 4.702263321439095});
  check_elements(slopes, {2, 2, 3},
                 {0.09003057317038043, 0.24472847105479764, -0.3347590442251782, -1.3333333333333335,
                  0.6666666666666666, 0.6666666666666666, 0.2700917195111413, -2.265814586835607, 1.9957228673244654,
                  1.9818505703113725, 1.9818505703113725, -3.963701140622745});
  const auto refused = [&](const Tensor<std::int32_t>& wrong) {
    return status_of([&] { return session.run({{logits, sequence_logits}, {labels, wrong}}, loss); });
  };
  CHECK(refused(Tensor<std::int32_t>::zeros({2, 1})).code() == Code::invalid_argument);
  CHECK(refused(Tensor<std::int32_t>::zeros({1, 4})).code() == Code::invalid_argument);
  CHECK(refused(Tensor<std::int32_t>({2, 2}, {0, 0, 3, 0})).message().find("labels[2] = 3 is outside [0, 3)") !=
        std::string::npos);
}

TEST_CASE("the cross entropy with a distribution per row takes rows of any rank") {
  Graph graph;
  const auto logits = placeholder<double>(graph), labels = placeholder<double>(graph);
  const auto loss = softmax_cross_entropy(logits, labels);
  const auto [by_logits, by_labels] = gradients(reduce_sum(loss * sequence_weights), logits, labels);
  Session session(graph);
  const Tensor<double> given({2, 2, 3}, {.5, .25, .25, 0, 1, 0, .25, .25, .5, 1, 0, 0});
  const auto [losses, dlogits, dlabels] =
      session.run({{logits, sequence_logits}, {labels, given}}, loss, by_logits, by_labels);
  check_elements(losses, {2, 2}, {1.6576059644443806, 1.0986122886681098, 1.1576059644443806, 0.7022633214390952});
  check_elements(dlogits, {2, 2, 3},
                 {-0.40996942682961957, -0.005271528945202358, 0.4152409557748218, 0.6666666666666666,
                  -1.3333333333333335, 0.6666666666666666, -0.4799082804888587, -0.015814586835607075,
                  0.49572286732446535, -2.0181494296886275, 1.9818505703113725, 0.03629885937725499});
  check_elements(dlabels, {2, 2, 3},
                 {2.4076059644443806, 1.4076059644443804, 0.4076059644443804, 2.1972245773362196, 2.1972245773362196,
                  2.1972245773362196, 7.222817893333142, 4.222817893333141, 1.2228178933331413, 2.809053285756381,
                  2.809053285756381, 18.80905328575638});
}

TEST_CASE("the backprop of a cross entropy has the shape of the logits, as far as it is known") {
  Graph graph;
  const auto shapes_of = [](const BuiltNode& node) {
    return str_cat(node.output(0).shape().to_string(), " ", node.output(1).shape().to_string());
  };
  const auto known = placeholder<float>(graph, {2, dynamic, 5}), other = placeholder<float>(graph, {dynamic, 3, 5});
  const auto unknown = placeholder<float>(graph);
  const auto labels = placeholder<std::int32_t>(graph, {dynamic, 3}), any_labels = placeholder<std::int32_t>(graph);
  CHECK(shapes_of(build<SoftmaxCrossEntropyWithLogits>({known, other})) == "[2,3] [2,3,5]");
  CHECK(shapes_of(build<SoftmaxCrossEntropyWithLogits>({unknown, other})) == "[?,3] [?,3,5]");
  CHECK(shapes_of(build<SoftmaxCrossEntropyWithLogits>({unknown, unknown})) == "<unknown> <unknown>");
  CHECK(shapes_of(build<SparseSoftmaxCrossEntropyWithLogits>({known, labels})) == "[2,3] [2,3,5]");
  CHECK(shapes_of(build<SparseSoftmaxCrossEntropyWithLogits>({known, any_labels})) == "[2,?] [2,?,5]");
  CHECK(shapes_of(build<SparseSoftmaxCrossEntropyWithLogits>({unknown, labels})) == "[?,3] [?,3,?]");
  CHECK(shapes_of(build<SparseSoftmaxCrossEntropyWithLogits>({unknown, any_labels})) == "<unknown> <unknown>");
  std::vector<std::int64_t> ones(max_rank - 1, 1);
  const auto most = placeholder<std::int32_t>(graph, PartialShape(ones));
  CHECK(build<SparseSoftmaxCrossEntropyWithLogits>({unknown, most}).output(1).shape().rank() == max_rank);
  ones.push_back(1);
  is_invalid([&] { sparse_softmax_cross_entropy(unknown, placeholder<std::int32_t>(graph, PartialShape(ones))); },
             "labels have rank");
}

TEST_CASE("a cross entropy of one row of logits is a scalar, and one of no rows has the rows' shape") {
  Graph graph;
  const auto row = constant<double>(graph, {1, 2, 3});
  const auto none = zeros<double>(graph, {2, 0, 3});
  Session session(graph);
  check_elements(session.run(sparse_softmax_cross_entropy(row, 2)), {}, {0.4076059644443804});
  check_elements(session.run(softmax_cross_entropy(row, Tensor<double>({3}, {0, 0, 1}))), {}, {0.4076059644443804});
  check_elements(session.run(softmax_cross_entropy(none, none)), {2, 0}, {});
  check_elements(session.run(sparse_softmax_cross_entropy(none, Tensor<std::int64_t>({2, 0}, {}))), {2, 0}, {});
  is_invalid([&] { sparse_softmax_cross_entropy(row, Tensor<std::int64_t>({3}, {0, 0, 0})); }, "one label per row");
  is_invalid([&] { softmax_cross_entropy(constant(graph, 1.0), 1.0); }, "rank 1 or more");
}
