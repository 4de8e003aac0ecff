#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/data_flow/queue.ipp>
#include <dflow/ops/data_flow/staging.hpp>

#include <cstddef>

namespace dflow {

void StagingAreaOp::infer(InferContext& context) {
  const auto& attrs = context.attrs<StagingAreaOp>();
  if (attrs.dtypes.empty()) context.fail("an element has no components");
  if (attrs.capacity < 0 || attrs.memory_limit < 0) {
    context.fail(
        str_cat("capacity ", attrs.capacity, " and memory limit ", attrs.memory_limit, " must not be negative"));
  }
  detail::infer_queue(context, attrs.dtypes, attrs.shapes, -1);
}
void Stage::infer(InferContext&) {}
void Unstage::infer(InferContext& context) {
  const auto& attrs = context.attrs<Unstage>();
  detail::infer_dequeue(context, {attrs.dtypes, attrs.shapes}, std::nullopt);
}
void StageSize::infer(InferContext& context) { context.set_output(0, Shape{}); }
void StageClear::infer(InferContext&) {}

namespace detail {

AnyStagingArea::AnyStagingArea(GraphStore& graph, std::vector<DType> dtypes, const StagingAreaOptions& options,
                               const At& at)
    : dtypes_(std::move(dtypes)), shapes_(options.shapes) {
  const ScopeGuard without_control_inputs = enter_without_control_inputs(graph);
  handle_ = build<StagingAreaOp>(graph, {},
                                 {.dtypes = dtypes_,
                                  .shapes = shapes_,
                                  .capacity = options.capacity,
                                  .memory_limit = options.memory_limit,
                                  .container = std::string(options.container),
                                  .shared_name = std::string(options.shared_name)},
                                 {.name = at.name.empty() ? options.name : at.name, .where = at.where});
}

Operation AnyStagingArea::stage(std::span<const AnyOutput> components, const At& at) const {
  const ScopeGuard with = enter_beside(handle_, Stage::name, at);
  check_components(components, shapes_, false, Stage::name, at);
  std::vector<AnyOutput> inputs{handle_};
  inputs.insert(inputs.end(), components.begin(), components.end());
  return build<Stage>(std::span<const AnyOutput>(inputs), {.dtypes = dtypes_}, at);
}
BuiltNode AnyStagingArea::unstage(const At& at) const {
  return build_on<Unstage>({handle_}, {.dtypes = dtypes_, .shapes = shapes_}, at);
}
AnyOutput AnyStagingArea::size(const At& at) const { return build_on<StageSize>({handle_}, {}, at); }
Operation AnyStagingArea::clear(const At& at) const { return build_on<StageClear>({handle_}, {}, at); }

}  // namespace detail

}  // namespace dflow
