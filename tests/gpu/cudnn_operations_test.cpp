// The tests ask cuDNN's graph API which ops of images and rows it supports, for GPUs that are not there. dflow
// computes the same ops by its own kernels. cuDNN compiles its plans for the GPUs, and needs a driver to do so.
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "catch.hpp"
#include "gpu/absent_gpus.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// The descriptors of one question, which live as long as it. After a failed call the question calls the library no
/// more.
class Question {
 public:
  using Made = cudnnBackendDescriptor_t;

  Question() = default;
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  ~Question() {
    while (!made_.empty()) {
      static_cast<void>(cudnnBackendDestroyDescriptor(made_.back()));
      made_.pop_back();
    }
  }

  bool ok() const { return status_ == CUDNN_STATUS_SUCCESS; }
  Made make(cudnnBackendDescriptorType_t type) {
    Made descriptor = nullptr;
    if (ok()) status_ = cudnnBackendCreateDescriptor(type, &descriptor);
    if (ok()) made_.push_back(descriptor);
    return descriptor;
  }
  template <class T>
  void set(Made of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
    if (ok()) {
      status_ = cudnnBackendSetAttribute(of, name, type, static_cast<std::int64_t>(values.size()), values.data());
    }
  }
  void set(Made of, cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    set(of, name, CUDNN_TYPE_INT64, values);
  }
  void set(Made of, cudnnBackendAttributeName_t name, Made value) {
    set<Made>(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, {value});
  }
  void set_true(Made of, cudnnBackendAttributeName_t name) {
    const bool value = true;
    if (ok()) status_ = cudnnBackendSetAttribute(of, name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  Made finalize(Made of) {
    if (ok()) status_ = cudnnBackendFinalize(of);
    return of;
  }

  enum class Kind : std::uint8_t { memory, inside, value };
  /// A tensor with dimensions [a, b, c, d] as the library numbers them, with b last in memory.
  Made tensor(cudnnDataType_t type, const std::array<std::int64_t, 4>& dims, Kind kind = Kind::memory) {
    const Made made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const auto [a, b, c, d] = dims;
    set<cudnnDataType_t>(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {type});
    set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, {a, b, c, d});
    set(made, CUDNN_ATTR_TENSOR_STRIDES, {b * c * d, 1, b * d, b});
    set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, {++last_id_});
    set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {16});
    if (kind == Kind::inside) set_true(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    if (kind == Kind::value) set_true(made, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    return finalize(made);
  }

  /// True if the library plans these operations as one.
  bool has_plan(const std::vector<Made>& operations, const std::string& properties) {
    const Made gpu = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    set<char>(gpu, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              {properties.c_str(), properties.c_str() + properties.size() + 1});
    finalize(gpu);
    const Made graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set<Made>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations);
    finalize(graph);
    for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      if (ok() && has_plan(graph, gpu, mode)) return true;
    }
    return false;
  }

 private:
  bool has_plan(Made graph, Made gpu, cudnnBackendHeurMode_t mode) {
    Question asked;  // each question may fail in its own way
    const Made heuristics = asked.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    asked.set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    asked.set<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, {mode});
    asked.set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, gpu);
    asked.finalize(heuristics);
    std::array<Made, 8> configurations{};
    for (Made& each : configurations) each = asked.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    std::int64_t count = 0;
    if (!asked.ok() ||
        cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 static_cast<std::int64_t>(configurations.size()), &count,
                                 configurations.data()) != CUDNN_STATUS_SUCCESS) {
      return false;
    }
    for (std::size_t i = 0; i < std::min(static_cast<std::size_t>(count), configurations.size()); ++i) {
      Question planning;
      const Made plan = planning.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      planning.set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, gpu);
      planning.set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configurations[i]);
      planning.finalize(plan);
      if (planning.ok()) return true;
    }
    return false;
  }

  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
  std::vector<Made> made_;
  std::int64_t last_id_ = 0;
};
using Made = Question::Made;

/// The operands of a question: images [batch, channels, extent, extent], or as many rows.
struct Asked {
  cudnnDataType_t type, compute;
  std::int64_t batch, channels, extent, window, stride;

  std::array<std::int64_t, 4> images() const { return {batch, channels, extent, extent}; }
  std::array<std::int64_t, 4> places() const {
    const std::int64_t out = (extent - window) / stride + 1;
    return {batch, channels, out, out};
  }
};

Made make_resample(Question& q, const Asked& asked, bool is_max) {
  const Made made = q.make(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  q.set<cudnnResampleMode_t>(made, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE,
                             {is_max ? CUDNN_RESAMPLE_MAXPOOL : CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING});
  q.set<cudnnDataType_t>(made, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {asked.compute});
  q.set(made, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, {2});
  const auto set_both = [&](cudnnBackendAttributeName_t name, std::int64_t value) {
    q.set<cudnnFraction_t>(made, name, CUDNN_TYPE_FRACTION, {{value, 1}, {value, 1}});
  };
  set_both(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, asked.window);
  set_both(CUDNN_ATTR_RESAMPLE_STRIDES, asked.stride);
  set_both(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, 0);
  set_both(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, 0);
  q.set<cudnnPaddingMode_t>(made, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE,
                            {is_max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD});
  q.set<cudnnNanPropagation_t>(made, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION,
                               {CUDNN_PROPAGATE_NAN});
  return q.finalize(made);
}

std::vector<Made> pool(Question& q, const Asked& asked, bool is_max) {
  const Made made = q.make(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  q.set(made, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, q.tensor(asked.type, asked.images()));
  q.set(made, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, q.tensor(asked.type, asked.places()));
  q.set(made, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, make_resample(q, asked, is_max));
  return {q.finalize(made)};
}
/// The gradient of a pool; for a maximum, with the places that its forward pass has noted.
std::vector<Made> pool_gradient(Question& q, const Asked& asked, bool is_max) {
  const Made made = q.make(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR);
  q.set(made, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, q.tensor(asked.type, asked.images()));
  q.set(made, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, q.tensor(asked.type, asked.places()));
  if (is_max) q.set(made, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, q.tensor(CUDNN_DATA_INT8, asked.places()));
  q.set(made, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, make_resample(q, asked, is_max));
  return {q.finalize(made)};
}

std::vector<Made> normalise(Question& q, const Asked& asked, cudnnBackendNormFwdPhase_t phase) {
  const auto channel = [&] { return q.tensor(asked.compute, {1, asked.channels, 1, 1}); };
  const Made made = q.make(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  q.set<cudnnBackendNormMode_t>(made, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, {CUDNN_BATCH_NORM});
  q.set<cudnnBackendNormFwdPhase_t>(made, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, {phase});
  q.set(made, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, q.tensor(asked.type, asked.images()));
  for (const auto name : {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC,
                          CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC}) {
    q.set(made, name, channel());
  }
  if (phase == CUDNN_NORM_FWD_TRAINING) {
    q.set(made, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC,
          q.tensor(asked.compute, {1, 1, 1, 1}, Question::Kind::value));
  }
  q.set(made, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, q.tensor(asked.type, asked.images()));
  return {q.finalize(made)};
}
std::vector<Made> normalise_gradient(Question& q, const Asked& asked) {
  const Made made = q.make(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
  q.set<cudnnBackendNormMode_t>(made, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, {CUDNN_BATCH_NORM});
  for (const auto name : {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC,
                          CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC}) {
    q.set(made, name, q.tensor(asked.type, asked.images()));
  }
  for (const auto name : {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC,
                          CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC,
                          CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC}) {
    q.set(made, name, q.tensor(asked.compute, {1, asked.channels, 1, 1}));
  }
  return {q.finalize(made)};
}

Made pointwise(Question& q, const Asked& asked, cudnnPointwiseMode_t mode, Made x, Made b, Made y) {
  const Made how = q.make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  q.set<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, {mode});
  q.set<cudnnDataType_t>(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, {asked.compute});
  const Made made = q.make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  q.set(made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, q.finalize(how));
  q.set(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != nullptr) q.set(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  q.set(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  return q.finalize(made);
}
Made reduction(Question& q, const Asked& asked, cudnnReduceTensorOp_t op, Made x, Made y) {
  const Made how = q.make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  q.set<cudnnReduceTensorOp_t>(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, {op});
  q.set<cudnnDataType_t>(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {asked.compute});
  const Made made = q.make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  q.set(made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, q.finalize(how));
  q.set(made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  q.set(made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  return q.finalize(made);
}
/// A softmax over the channels of each place.
std::vector<Made> softmax(Question& q, const Asked& asked) {
  const auto inside = [&](std::int64_t channels) {
    return q.tensor(asked.compute, {asked.batch, channels, asked.extent, asked.extent}, Question::Kind::inside);
  };
  const Made x = q.tensor(asked.type, asked.images()), y = q.tensor(asked.type, asked.images());
  const Made largest = inside(1), shifted = inside(asked.channels), powers = inside(asked.channels), sum = inside(1);
  return {reduction(q, asked, CUDNN_REDUCE_TENSOR_MAX, x, largest),
          pointwise(q, asked, CUDNN_POINTWISE_SUB, x, largest, shifted),
          pointwise(q, asked, CUDNN_POINTWISE_EXP, shifted, nullptr, powers),
          reduction(q, asked, CUDNN_REDUCE_TENSOR_ADD, powers, sum),
          pointwise(q, asked, CUDNN_POINTWISE_DIV, powers, sum, y)};
}

struct NamedOperation {
  const char* name;
  std::vector<Made> (*make)(Question&, const Asked&);
};
const std::vector<NamedOperation>& operations() {
  static const std::vector<NamedOperation> all = {
      {"max pooling", [](Question& q, const Asked& asked) { return pool(q, asked, true); }},
      {"its gradient, of noted places", [](Question& q, const Asked& asked) { return pool_gradient(q, asked, true); }},
      {"average pooling", [](Question& q, const Asked& asked) { return pool(q, asked, false); }},
      {"its gradient", [](Question& q, const Asked& asked) { return pool_gradient(q, asked, false); }},
      {"batch normalisation in training",
       [](Question& q, const Asked& asked) { return normalise(q, asked, CUDNN_NORM_FWD_TRAINING); }},
      {"in inference", [](Question& q, const Asked& asked) { return normalise(q, asked, CUDNN_NORM_FWD_INFERENCE); }},
      {"gradient of batch normalisation", normalise_gradient},
      {"softmax", softmax},
  };
  return all;
}

}  // namespace

TEST_CASE("what cuDNN plans of pooling, batch normalisation and softmax", "[cudnn]") {
  const std::vector<std::pair<cudnnDataType_t, cudnnDataType_t>> types = {{CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
                                                                          {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE},
                                                                          {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
                                                                          {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT}};
  for (const NamedOperation& operation : operations()) {
    int asked = 0;
    std::map<std::string, int> planned;
    for (const AbsentGpu& gpu : absent_gpus()) {
      const std::string properties = properties_of(gpu);
      for (const auto& [type, compute] : types) {
        for (const std::int64_t channels : {3, 16}) {
          Question question;
          const std::vector<Made> made = operation.make(question, {type, compute, 8, channels, 12, 2, 2});
          ++asked;
          if (question.ok() && question.has_plan(made, properties)) ++planned[gpu.name];
        }
      }
    }
    std::string counts;
    int sum = 0;
    for (const auto& [name, count] : planned) {
      counts += str_cat(counts.empty() ? ": " : ", ", count, " for ", name);
      sum += count;
    }
    std::cout << "count: " << operation.name << ": cuDNN plans " << sum << " of " << asked << counts << "\n";
    CHECK(asked == 32);
  }
}
