// Each family of hand-written loops: the number of its lines, and two ratios of times. The time of Eigen's expressions
// (compiled for this machine) and the time of oneDNN's primitives on the same layout are each divided by the loops'
// time. All run in one thread, turn by turn.
// usage: bench_kernels_eigen [SOURCE_DIR [FAMILY]]   lines are counted in SOURCE_DIR, "." if not given
#include "kernel_rows.hpp"

#include <fstream>

namespace kernel_rows {
namespace {

std::vector<Family> families() {
  using A = dnnl::algorithm;
  std::vector<Family> all;
  all.push_back(
      {"elementwise",
       {"loops/elementwise_loops", "elementwise/code", "elementwise/loop_ops", "elementwise/library_code",
        "elementwise/kernel"},
       {row("add", n, n, loop_of<Add, float>(), arrays([](auto a, auto b) { return a + b; }), binary_of(A::binary_add)),
        row<double>("multiply double", n, n, loop_of<Mul, double>(), arrays([](auto a, auto b) { return a * b; })),
        row<std::int32_t>("add int32", n, n, loop_of<Add, std::int32_t>(),
                          arrays([](auto a, auto b) { return a + b; })),
        row<std::int8_t>("maximum int8", n, n, loop_of<Maximum, std::int8_t>(),
                         arrays([](auto a, auto b) { return a.max(b); })),
        row<Half>("multiply half", n, n, loop_of<Mul, Half>(), arrays([](auto a, auto b) { return a * b; })),
        row<BFloat16>("multiply bfloat16", n, n, loop_of<Mul, BFloat16>(),
                      arrays([](auto a, auto b) { return a * b; })),
        row("sqrt", n, n, loop_of<Sqrt, float>(), arrays([](auto a, auto) { return a.sqrt(); }),
            eltwise_of(A::eltwise_sqrt)),
        row("relu", n, n, loop_of<Relu, float>(), arrays([](auto a, auto) { return a.max(0.0f); }),
            eltwise_of(A::eltwise_relu)),
        row("elu", n, n, loop_of<Elu, float>(),
            arrays([](auto a, auto) { return (a < 0.0f).select(a.exp() - 1.0f, a); }), eltwise_of(A::eltwise_elu, 1)),
        row("softplus", n, n, loop_of<Softplus, float>(), arrays([](auto a, auto) { return a.exp().log1p(); }),
            eltwise_of(A::eltwise_soft_relu)),
        row<float, bool>("less", n, n, loop_of<Less, float>(), arrays([](auto a, auto b) { return a < b; })),
        row(
            "add of a million", million, million,
            [code = ElementwiseCodeOf<Add, float>::get(options.max_level)](float* a, float* b, float* y) {
              const void* const inputs[] = {a, b};
              code.dense(million, inputs, y, code.max_level);
            },
            arrays([](auto a, auto b) { return a + b; }, million),
            [](float* a, float* b, float* y) { return binary(A::binary_add, {million}, {million}, a, b, y); })}});
  all.push_back({"functions",
                 {"loops/math_loops", "loops/math_lanes", "routines/math/vector_math"},
                 {function<float>(
                      "exp", vexp, [](auto x) { return x.exp(); }, eltwise_of(A::eltwise_exp)),
                  function<float>("expm1", vexpm1, [](auto x) { return x.expm1(); }),
                  function<float>(
                      "log", vlog, [](auto x) { return x.log(); }, eltwise_of(A::eltwise_log)),
                  function<float>("log1p", vlog1p, [](auto x) { return x.log1p(); }),
                  function<float>(
                      "tanh", vtanh, [](auto x) { return x.tanh(); }, eltwise_of(A::eltwise_tanh)),
                  function<float>(
                      "sigmoid", vsigmoid, [](auto x) { return x.logistic(); }, eltwise_of(A::eltwise_logistic)),
                  function<float>("sin", vsin, [](auto x) { return x.sin(); }),
                  function<float>("cos", vcos, [](auto x) { return x.cos(); }),
                  function<float>("erf", verf, [](auto x) { return x.erf(); }),
                  function<double>("exp double", vexp, [](auto x) { return x.exp(); }),
                  function<double>("log double", vlog, [](auto x) { return x.log(); }),
                  function<double>("tanh double", vtanh, [](auto x) { return x.tanh(); }),
                  function<double>("sigmoid double", vsigmoid, [](auto x) { return x.logistic(); }),
                  function<double>("sin double", vsin, [](auto x) { return x.sin(); })}});

  const auto reduce_of = [](A algorithm, const Dims& to) {
    return [=](float* a, float*, float* y) { return reduction(algorithm, {rows, columns}, to, a, y); };
  };
  constexpr ReduceShape by_row{rows, columns, 1}, by_column{1, rows, columns};
  all.push_back(
      {"reductions, argmax",
       {"loops/reduce_loops", "loops/reduce_ops", "routines/math/reduce"},
       {row(
            "sum of a million", million, 1,
            [](float* a, float*, float* y) {
              reduce_sum(pool, {1, million, 1}, a, y, options);
            },
            [](float* a, float*, float* y) { *y = flat(a, million).sum(); },
            [](float* a, float*, float* y) {
              return reduction(A::reduction_sum, {1, million}, {1, 1}, a, y);
            }),
        row(
            "row sums", rows * columns, rows,
            [=](float* a, float*, float* y) { reduce_sum(pool, by_row, a, y, options); },
            [](float* a, float*, float* y) { flat(y, rows) = matrix(a, rows, columns).rowwise().sum(); },
            reduce_of(A::reduction_sum, {rows, 1})),
        row(
            "column sums", rows * columns, columns,
            [=](float* a, float*, float* y) { reduce_sum(pool, by_column, a, y, options); },
            [](float* a, float*, float* y) { matrix(y, 1, columns) = matrix(a, rows, columns).colwise().sum(); },
            reduce_of(A::reduction_sum, {1, columns})),
        row(
            "column sums, Tensor", rows * columns, columns,
            [=](float* a, float*, float* y) { reduce_sum(pool, by_column, a, y, options); },
            [](float* a, float*, float* y) { tensor(y, columns) = tensor(a, rows, columns).sum(Axes1{0}); }),
        row(
            "sums over the middle", rows * columns, 64 * 64,
            [](float* a, float*, float* y) {
              reduce_sum(pool, {64, 1024, 64}, a, y, options);
            },
            [](float* a, float*, float* y) { tensor(y, 64, 64) = tensor(a, 64, 1024, 64).sum(Axes1{1}); },
            [](float* a, float*, float* y) {
              return reduction(A::reduction_sum, {64, 1024, 64}, {64, 1, 64}, a, y);
            }),
        row<Half>(
            "row means half", rows * columns, rows,
            [=](Half* a, Half*, Half* y) { reduce_mean(pool, by_row, a, y, options); },
            [](Half* a, Half*, Half* y) {
              flat(y, rows) = matrix(a, rows, columns).cast<float>().rowwise().mean().cast<Eigen::half>();
            }),
        row<std::int32_t>(
            "row sums int32", rows * columns, rows,
            [=](std::int32_t* a, std::int32_t*, std::int32_t* y) { reduce_sum(pool, by_row, a, y, options); },
            [](std::int32_t* a, std::int32_t*, std::int32_t* y) {
              flat(y, rows) = matrix(a, rows, columns).rowwise().sum();
            }),
        row(
            "row maxima", rows * columns, rows,
            [=](float* a, float*, float* y) { reduce_max(pool, by_row, a, y, options); },
            [](float* a, float*, float* y) { flat(y, rows) = matrix(a, rows, columns).rowwise().maxCoeff(); },
            reduce_of(A::reduction_max, {rows, 1})),
        row(
            "column maxima", rows * columns, columns,
            [=](float* a, float*, float* y) { reduce_max(pool, by_column, a, y, options); },
            [](float* a, float*, float* y) { matrix(y, 1, columns) = matrix(a, rows, columns).colwise().maxCoeff(); },
            reduce_of(A::reduction_max, {1, columns})),
        row<float, std::int64_t>(
            "row argmax", rows * columns, rows,
            [=](float* a, float*, std::int64_t* y) { argmax(pool, by_row, a, y, options); },
            [](float* a, float*, std::int64_t* y) {
              for (std::int64_t r = 0; r < rows; ++r) matrix(a, rows, columns).row(r).maxCoeff(y + r);
            }),
        row<float, std::int64_t>(
            "column argmax", rows * columns, columns,
            [=](float* a, float*, std::int64_t* y) { argmax(pool, by_column, a, y, options); },
            [](float* a, float*, std::int64_t* y) {
              tensor(reinterpret_cast<long*>(y), columns) = tensor(a, rows, columns).argmax(0).template cast<long>();
            })}});

  const auto ours_softmax = [](std::int64_t height, std::int64_t width) {
    return [=](float* a, float*, float* y) { softmax(pool, height, width, a, y, options); };
  };
  const auto eigen_softmax = [](std::int64_t height, std::int64_t width) {
    return [=](float* a, float*, float* y) { softmax_by_rows(a, y, height, width); };
  };
  const auto onednn_softmax = [](std::int64_t height, std::int64_t width) {
    return [=](float* a, float*, float* y) { return softmax_of<dnnl::softmax_forward>(height, width, a, y); };
  };
  const auto labels = positions(batch, classes);
  const auto loss = numbers(batch);
  all.push_back(
      {"softmax, cross entropy",
       {"loops/softmax_loops", "routines/nn/softmax"},
       {row("softmax [512,8000]", batch * classes, batch * classes, ours_softmax(batch, classes),
            eigen_softmax(batch, classes), onednn_softmax(batch, classes)),
        row("softmax [4096,64]", rows * 64, rows * 64, ours_softmax(rows, 64), eigen_softmax(rows, 64),
            onednn_softmax(rows, 64)),
        row(
            "log softmax [512,8000]", batch * classes, batch * classes,
            [](float* a, float*, float* y) { log_softmax(pool, batch, classes, a, y, options); },
            [](float* a, float*, float* y) {
              const auto x = matrix(a, batch, classes);
              auto to = matrix(y, batch, classes);
              for (std::int64_t r = 0; r < batch; ++r) {
                const float largest = x.row(r).maxCoeff();
                to.row(r) = x.row(r) - (largest + std::log((x.row(r) - largest).exp().sum()));
              }
            },
            [](float* a, float*, float* y) { return softmax_of<dnnl::logsoftmax_forward>(batch, classes, a, y); }),
        row(
            "sparse cross entropy, both ways", batch * classes, batch * classes,
            [=](float* a, float*, float* y) {
              if (sparse_softmax_cross_entropy(pool, batch, classes, a, labels.data(), loss.data(), y, options) >= 0)
                std::abort();
            },
            [=](float* a, float*, float* y) {
              softmax_by_rows(a, y, batch, classes);
              for (std::int64_t r = 0; r < batch; ++r) {
                float& p = y[r * classes + labels.data()[r]];
                loss.data()[r] = -std::log(p);
                p -= 1;
              }
            }),
        row(
            "dense cross entropy, both ways", batch * classes, batch * classes,
            [=](float* a, float* b, float* y) {
              softmax_cross_entropy(pool, batch, classes, a, b, loss.data(), y, options);
            },
            [=](float* a, float* b, float* y) {
              const auto x = matrix(a, batch, classes), t = matrix(b, batch, classes);
              auto to = matrix(y, batch, classes);
              for (std::int64_t r = 0; r < batch; ++r) {
                const float largest = x.row(r).maxCoeff();
                to.row(r) = (x.row(r) - largest).exp();
                const float sum = to.row(r).sum();
                loss.data()[r] = (t.row(r) * (largest + std::log(sum) - x.row(r))).sum();
                to.row(r) = to.row(r) / sum - t.row(r);
              }
            })}});

  constexpr std::int64_t square = 4096;
  const auto permute = [](std::size_t bytes, std::vector<std::int64_t> dims, std::vector<std::int32_t> permutation) {
    return [=](auto* a, auto*, auto* y) { transpose(pool, bytes, dims, permutation, a, y, options); };
  };
  all.push_back(
      {"transposes and strided copies",
       {"loops/copy_loops", "loops/shuffles", "routines/array/transpose"},
       {row(
            "transpose [4096,4096]", square * square, square * square, permute(4, {square, square}, {1, 0}),
            [](float* a, float*, float* y) { matrix(y, square, square) = matrix(a, square, square).transpose(); },
            [](float* a, float*, float* y) {
              return reorder(packed({square, square}), {{square, square}, memory::data_type::f32, Dims{1, square}}, a,
                             y);
            }),
        row<std::uint8_t>("transpose uint8 [4096,4096]", square * square, square * square,
                          permute(1, {square, square}, {1, 0}),
                          [](std::uint8_t* a, std::uint8_t*, std::uint8_t* y) {
                            matrix(y, square, square) = matrix(a, square, square).transpose();
                          }),
        row(
            "NHWC to NCHW [32,56,56,64]", pixels * channels, pixels * channels,
            permute(4, {images, side, side, channels}, {0, 3, 1, 2}),
            [](float* a, float*, float* y) {
              tensor(y, images, channels, side, side) =
                  tensor(a, images, side, side, channels).shuffle(Eigen::array<int, 4>{0, 3, 1, 2});
            },
            [](float* a, float*, float* y) {
              return reorder(channels_last({images, channels, side, side}), packed({images, channels, side, side}), a,
                             y);
            }),
        row("axes 1 and 2 of [32,128,16,64] swapped", 32 * 128 * 16 * 64, 32 * 128 * 16 * 64,
            permute(4, {32, 128, 16, 64}, {0, 2, 1, 3}),
            [](float* a, float*, float* y) {
              tensor(y, 32, 16, 128, 64) = tensor(a, 32, 128, 16, 64).shuffle(Eigen::array<int, 4>{0, 2, 1, 3});
            }),
        row(
            "every second row and column of [2048,2048]", 2048 * 2048, columns * columns,
            [](float* a, float*, float* y) {
              const std::int64_t dims[] = {columns, columns}, from[] = {4096, 2}, to[] = {columns, 1};
              strided_copy(pool, 4, dims, a, from, y, to, options);
            },
            [](float* a, float*, float* y) {
              tensor(y, columns, columns) = tensor(a, 2048, 2048).stride(Axes2{2, 2});
            }),
        row(
            "middle of [2048,2048]", 2048 * 2048, columns * columns,
            [](float* a, float*, float* y) {
              const std::int64_t dims[] = {columns, columns}, from[] = {2048, 1}, to[] = {columns, 1};
              strided_copy(pool, 4, dims, a + 512 * 2048 + 512, from, y, to, options);
            },
            [](float* a, float*, float* y) {
              matrix(y, columns, columns) = matrix(a, 2048, 2048).block(512, 512, columns, columns);
            })}});

  constexpr std::int64_t limit = 250'000, width = 64, count = 4096, segments = 1000;
  const auto indices = positions(count, limit), ids = positions(n, segments);
  all.push_back({"gather, scatter, segments",
                 {"routines/array/rows", "array/gather", "reduction/segment"},
                 {row(
                      "gather 4096 of [250000,64]", limit * width, count * width,
                      [=](float* a, float*, float* y) {
                        if (gather_rows(pool, 1, limit, count, width * 4, a, indices.data(), y, options) >= 0)
                          std::abort();
                      },
                      [=](float* a, float*, float* y) {
                        for (std::int64_t i = 0; i < count; ++i)
                          matrix(y, count, width).row(i) = matrix(a, limit, width).row(indices.data()[i]);
                      }),
                  row(
                      "scatter-add 4096 to [250000,64]", count * width, limit * width,
                      [=](float* a, float*, float* y) {
                        if (scatter_rows(pool, ScatterOp::add, limit, count, width, indices.data(), a, y, options) >= 0)
                          std::abort();
                      },
                      [=](float* a, float*, float* y) {
                        for (std::int64_t i = 0; i < count; ++i)
                          matrix(y, limit, width).row(indices.data()[i]) += matrix(a, count, width).row(i);
                      }),
                  row(
                      "sums of 1000 segments [100000,64]", n * width, segments * width,
                      [=](float* a, float*, float* y) {
                        if (scatter_rows(pool, ScatterOp::add, segments, n, width, ids.data(), a, y, options) >= 0)
                          std::abort();
                      },
                      [=](float* a, float*, float* y) {
                        for (std::int64_t i = 0; i < n; ++i)
                          matrix(y, segments, width).row(ids.data()[i]) += matrix(a, n, width).row(i);
                      })}});

  // Windows side by side are two more axes of a tensor.
  const auto pooled = [](auto reduce) {
    return [=](float* a, float*, float* y) {
      tensor(y, images, side / 2, side / 2, channels) =
          reduce(tensor(a, images, side / 2, 2, side / 2, 2, channels), Axes2{2, 4});
    };
  };
  all.push_back(
      {"pooling",
       {"loops/pool_loops", "routines/nn/pool2d"},
       {row(
            "max 2x2 [32,56,56,64]", pixels * channels, pixels * channels / 4,
            [](float* a, float*, float* y) { max_pool(pool, pooling(2), a, y, options); },
            pooled([](auto x, Axes2 axes) { return x.maximum(axes).eval(); }), pooling_of(A::pooling_max, 2)),
        row(
            "max 3x3, stride 2", pixels * channels, pixels * channels / 4,
            [](float* a, float*, float* y) { max_pool(pool, pooling(3), a, y, options); },
            [](float* a, float*, float* y) {
              tensor(y, images, side / 2 * side / 2, channels) =
                  tensor(a, images, side, side, channels).extract_image_patches(3, 3, 2, 2).maximum(Axes2{2, 3});
            },
            pooling_of(A::pooling_max, 3)),
        row(
            "average 2x2", pixels * channels, pixels * channels / 4,
            [](float* a, float*, float* y) { avg_pool(pool, pooling(2), a, y, options); },
            pooled([](auto x, Axes2 axes) { return x.mean(axes).eval(); }),
            pooling_of(A::pooling_avg_exclude_padding, 2))}});

  const auto scale = numbers(channels), offset = numbers(channels), mean = numbers(channels),
             variance = numbers(channels);
  all.push_back({"batch norm, bias",
                 {"loops/channel_loops", "routines/nn/batch_norm", "routines/nn/bias"},
                 {row(
                      "batch norm of training [32,56,56,64]", pixels * channels, pixels * channels,
                      [=](float* a, float*, float* y) {
                        batch_norm_training(pool, pixels, channels, a, scale.data(), offset.data(), 1e-3f, y,
                                            mean.data(), variance.data(), options);
                      },
                      [=](float* a, float*, float* y) {
                        const auto x = matrix(a, pixels, channels);
                        auto center = matrix(mean.data(), 1, channels), spread = matrix(variance.data(), 1, channels);
                        center = x.colwise().mean();
                        spread = (x.rowwise() - center.row(0)).square().colwise().mean();
                        const Eigen::Array<float, 1, Eigen::Dynamic> factor =
                            (spread + 1e-3f).rsqrt() * matrix(scale.data(), 1, channels);
                        const Eigen::Array<float, 1, Eigen::Dynamic> shift =
                            matrix(offset.data(), 1, channels) - center * factor;
                        matrix(y, pixels, channels) = (x.rowwise() * factor).rowwise() + shift;
                      },
                      [=](float* a, float*, float* y) {
                        const auto d = channels_last({images, channels, side, side}), c = packed({channels});
                        const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
                        return onednn(
                            [&] {
                              return dnnl::batch_normalization_forward(
                                  {{dnnl::prop_kind::forward_training, d, 1e-3f, flags}, engine()});
                            },
                            {{DNNL_ARG_SRC, d, a},
                             {DNNL_ARG_DST, d, y},
                             {DNNL_ARG_SCALE, c, scale.data()},
                             {DNNL_ARG_SHIFT, c, offset.data()},
                             {DNNL_ARG_MEAN, c, mean.data()},
                             {DNNL_ARG_VARIANCE, c, variance.data()}});
                      }),
                  row(
                      "bias and relu [4096,1024]", rows * columns, rows * columns,
                      [](float* a, float* b, float* y) { bias_add(pool, rows, columns, a, b, y, true, options); },
                      [](float* a, float* b, float* y) {
                        matrix(y, rows, columns) =
                            (matrix(a, rows, columns).rowwise() + matrix(b, 1, columns).row(0)).max(0.0f);
                      }),
                  row(
                      "bias [131072,32]", rows * columns, rows * columns,
                      [](float* a, float* b, float* y) { bias_add(pool, rows * 32, 32, a, b, y, false, options); },
                      [](float* a, float* b, float* y) {
                        matrix(y, rows * 32, 32) = matrix(a, rows * 32, 32).rowwise() + matrix(b, 1, 32).row(0);
                      },
                      [](float* a, float* b, float* y) {
                        return binary(A::binary_add, {rows * 32, 32}, {1, 32}, a, b, y);
                      })}});

  const auto momentum = numbers(million), second = numbers(million, 500);
  flat(second.data(), million) = flat(second.data(), million).abs();
  all.push_back(
      {"optimizers",
       {"loops/update_loops", "routines/state/optimizers"},
       {row(
            "gradient descent of a million", million, million,
            [](float* a, float*, float* y) {
              apply_update<dflow::detail::GradientDescentRule>(
                  pool, million, {.dtype = DType::float32, .variables = {y}, .gradient = a, .factors = {1e-9}},
                  options);
            },
            [](float* a, float*, float* y) { flat(y, million) -= 1e-9f * flat(a, million); }),
        row(
            "momentum", million, million,
            [=](float* a, float*, float* y) {
              apply_update<dflow::detail::MomentumRule>(
                  pool, million,
                  {.dtype = DType::float32, .variables = {y, momentum.data()}, .gradient = a, .factors = {1e-9, 0.9}},
                  options);
            },
            [=](float* a, float*, float* y) {
              auto m = flat(momentum.data(), million);
              m = 0.9f * m + flat(a, million);
              flat(y, million) -= 1e-9f * m;
            }),
        row(
            "Adam", million, million,
            [=](float* a, float*, float* y) {
              apply_update<dflow::detail::AdamRule>(pool, million,
                                                    {.dtype = DType::float32,
                                                     .variables = {y, momentum.data(), second.data()},
                                                     .gradient = a,
                                                     .factors = {0.5, 0.5, 1e-9, 0.9, 0.999, 1e-7}},
                                                    options);
            },
            [=](float* a, float*, float* y) {
              auto m = flat(momentum.data(), million), v = flat(second.data(), million);
              const auto g = flat(a, million);
              m += 0.1f * (g - m);
              v += 0.001f * (g.square() - v);
              flat(y, million) -= 1e-9f * m / (v.sqrt() + 1e-7f);
            })}});

  all.push_back({"products of floating-point numbers",
                 {"loops/gemm_loops", "routines/math/gemm_builtin"},
                 {product<float>("256", 256, 256, 256, false, sgemm_of(256, 256, 256)),
                  product<float>("1024", 1024, 1024, 1024, false, sgemm_of(1024, 1024, 1024)),
                  product<float>("128 x 784 x 512", 128, 512, 784, false, sgemm_of(128, 512, 784)),
                  product<float>("8 x 16 x 10", 8, 10, 16, false, sgemm_of(8, 10, 16)),
                  product<double>("double 512", 512, 512, 512)}});
  all.push_back(
      {"products of integers and complex numbers",
       {"loops/simple_gemm_loops", "routines/math/gemm"},
       {product<std::int8_t>("int8 32", 32, 32, 32), product<std::int8_t>("int8 256", 256, 256, 256),
        product<std::int16_t>("int16 32", 32, 32, 32), product<std::int16_t>("int16 256", 256, 256, 256),
        product<std::int32_t>("int32 32", 32, 32, 32), product<std::int32_t>("int32 256", 256, 256, 256),
        product<std::int64_t>("int64 32", 32, 32, 32), product<std::int64_t>("int64 256", 256, 256, 256),
        product<std::complex<float>>("complex64 8", 8, 8, 8), product<std::complex<float>>("complex64 32", 32, 32, 32),
        product<std::complex<float>>("complex64 256", 256, 256, 256),
        product<std::complex<float>>("complex64 256, b transposed", 256, 256, 256, true),
        product<std::complex<float>>("complex64 256 x 1", 256, 1, 256),
        product<std::complex<double>>("complex128 8", 8, 8, 8),
        product<std::complex<double>>("complex128 32", 32, 32, 32),
        product<std::complex<double>>("complex128 256", 256, 256, 256),
        product<std::complex<double>>("complex128 256 x 1", 256, 1, 256)}});
  all.push_back(
      {"convolutions",
       {"loops/patch_loops", "loops/window_loops", "loops/window_gradient_loops", "routines/nn/conv2d_builtin",
        "routines/nn/conv2d", "routines/nn/conv2d_shape", "routines/nn/conv2d_taps"},
       {convolution("3x3 16-16 [64,32,32]", 64, 32, 16), convolution("3x3 64-64 [4,56,56]", 4, 56, 64),
        convolution("3x3 256-256 [4,14,14]", 4, 14, 256)}});

  const auto steps = [](const char* name, auto make_step, auto eigen) {
    return Row{name, [=] {
                 const auto z = numbers(million);
                 return Sides{make_step(), [=] { eigen(z.data()); }, {}};
               }};
  };
  const auto x = numbers(million), w = numbers(million, 997);
  const auto is_small = numbers<bool>(million, 2);
  const auto ints = numbers<std::int32_t>(million);
  const auto halves = numbers<Half>(million);
  all.push_back(
      {"conversions (a million, by a step)",
       {"loops/cast_loops", "routines/widened", "math/cast"},
       {steps(
            "float to int32", [=] { return step([](Graph&, auto e) { return cast<std::int32_t>(e); }, *x.tensor); },
            [=](float* z) { flat(reinterpret_cast<std::int32_t*>(z), million) = flat(x.data(), million).cast<int>(); }),
        steps(
            "int32 to float", [=] { return step([](Graph&, auto e) { return cast<float>(e); }, *ints.tensor); },
            [=](float* z) { flat(z, million) = flat(ints.data(), million).cast<float>(); }),
        steps(
            "float to half", [=] { return step([](Graph&, auto e) { return cast<Half>(e); }, *x.tensor); },
            [=](float* z) { flat(reinterpret_cast<Half*>(z), million) = flat(x.data(), million).cast<Eigen::half>(); }),
        steps(
            "half to float", [=] { return step([](Graph&, auto e) { return cast<float>(e); }, *halves.tensor); },
            [=](float* z) { flat(z, million) = flat(halves.data(), million).cast<float>(); })}});
  all.push_back(
      {"random numbers (a million, by a step)",
       {"random/random", "../../base/philox"},
       {steps(
            "uniform", [] { return step([](Graph& g) { return random_uniform<float>(g, {million}, {.seed = 1}); }); },
            [](float* z) { tensor(z, million).setRandom<Eigen::internal::UniformRandomGenerator<float>>(); }),
        steps(
            "normal", [] { return step([](Graph& g) { return random_normal<float>(g, {million}, {.seed = 1}); }); },
            [](float* z) { tensor(z, million).setRandom<Eigen::internal::NormalRandomGenerator<float>>(); })}});
  all.push_back(
      {"choices, sums, joins (a million, by a step)",
       {"math/select", "reduction/add_n", "array/concat", "math/broadcast", "array/one_hot"},
       {steps(
            "select",
            [=] {
              return step([](Graph&, auto c, auto t, auto e) { return select(c, t, e); }, *is_small.tensor, *x.tensor,
                          *w.tensor);
            },
            [=](float* z) {
              flat(z, million) =
                  flat(is_small.data(), million).select(flat(x.data(), million), flat(w.data(), million));
            }),
        steps(
            "sum of four",
            [=] {
              return step([](Graph&, auto a, auto b) { return add_n({a, b, a, b}); }, *x.tensor, *w.tensor);
            },
            [=](float* z) {
              const auto a = flat(x.data(), million), b = flat(w.data(), million);
              flat(z, million) = a + b + a + b;
            }),
        steps(
            "two [1000,500] side by side",
            [=] {
              return step(
                  [](Graph&, auto a, auto b) {
                    return concat(1, {a, b});
                  },
                  x.tensor->slice(0, million / 2).reshaped({1000, 500}),
                  w.tensor->slice(0, million / 2).reshaped({1000, 500}));
            },
            [=](float* z) { matrix(z, 1000, 1000) << matrix(x.data(), 1000, 500), matrix(w.data(), 1000, 500); }),
        steps(
            "[1000,1] repeated",
            [=] {
              return step(
                  [](Graph& g, auto a) {
                    return broadcast_to(a, constant<std::int32_t>(g, {1000, 1000}));
                  },
                  x.tensor->slice(0, 1000).reshaped({1000, 1}));
            },
            [=](float* z) { matrix(z, 1000, 1000) = matrix(x.data(), 1000, 1).replicate(1, 1000); })}});
  return all;
}

std::int64_t lines(const std::string& folder, const Family& family) {
  std::int64_t count = 0;
  for (const char* file : family.files) {
    for (const char* ending : {".hpp", ".ipp"}) {
      std::ifstream in(folder + "/include/dflow/kernels/cpu/" + file + ending);
      for (std::string line; std::getline(in, line);) ++count;
    }
  }
  return count;
}

/// "1.20 to 3.40", or "" of nothing.
std::string range(const std::vector<double>& ratios) {
  if (ratios.empty()) return "";
  char text[64];
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  std::snprintf(text, sizeof text, ratios.size() == 1 ? "%.2f" : "%.2f to %.2f", *low, *high);
  return text;
}

}  // namespace
}  // namespace kernel_rows

int main(int argc, char** argv) {
  using namespace kernel_rows;
  if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(1);
  std::string table = "| family | lines | Eigen | oneDNN |\n|---|---|---|---|\n";
  for (const Family& family : families()) {
    if (argc > 2 && std::string(family.name).find(argv[2]) == std::string::npos) continue;
    std::vector<double> eigen, onednn;
    for (const Row& row : family.rows) {
      const Sides sides = row.make();
      const auto against = [&](const char* peer, const Side& side, std::vector<double>& ratios) {
        if (!side) return;
        const auto c = bench::compare(sides.ours, side, bench::Clock::thread, 11, 5);
        bench::print(row.name, peer, c);
        ratios.push_back(c.ratio);
      };
      against("eigen", sides.eigen, eigen);
      against("onednn", sides.onednn, onednn);
    }
    table += std::string("| ") + family.name + " | " + std::to_string(lines(argc > 1 ? argv[1] : ".", family)) + " | " +
             range(eigen) + " | " + range(onednn) + " |\n";
  }
  std::fputs(table.c_str(), stdout);
}
