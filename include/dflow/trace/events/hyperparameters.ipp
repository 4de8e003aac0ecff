#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/io/proto/proto_writer.hpp>
#include <dflow/trace/events/hyperparameters.hpp>

#include <string_view>
#include <type_traits>

namespace dflow {

/// tensorboard/plugins/hparams/{plugin_data,api}.proto: HParamsPluginData{experiment=2, session_start_info=3,
/// session_end_info=4}, and google.protobuf.Value{number=2, string=3, bool=4}.
namespace detail {

/// The data of the plugin is in its metadata; the tensor has no elements.
template <class Write>
SummaryValue hyperparameters_value(std::string_view tag, std::uint32_t number, Write write) {
  SummaryValue value;
  value.tag = tag;
  value.value = Tensor<float>(Shape{0}).any();
  value.plugin = "hparams";
  ProtoWriter(value.plugin_content).message(number, write);
  return value;
}

void write_experiment(ProtoWriter& out, const HyperparameterRun& run) {
  constexpr std::int64_t types[] = {2, 3, 1};  // bool, double, string as api.proto numbers them
  out.float64(3, run.start_time_secs);
  for (const auto& [name, value] : run.values) {
    out.message(4, [&, &name = name, &value = value](ProtoWriter& info) {
      write_text(info, 1, name);
      info.int64(4, types[value.index()]);
    });
  }
  for (const std::string& metric : run.metrics) {
    out.message(5,
                [&](ProtoWriter& info) { info.message(1, [&](ProtoWriter& name) { write_text(name, 2, metric); }); });
  }
}

void write_session_start(ProtoWriter& out, const HyperparameterRun& run) {
  for (const auto& [name, value] : run.values) {
    out.message(1, [&, &name = name, &value = value](ProtoWriter& entry) {
      write_text(entry, 1, name);
      entry.message(2, [&](ProtoWriter& fields) {
        if (const auto* flag = std::get_if<bool>(&value)) fields.boolean(4, *flag);
        if (const auto* number = std::get_if<double>(&value)) fields.float64(2, *number);
        if (const auto* text = std::get_if<std::string>(&value)) write_text(fields, 3, *text);
      });
    });
  }
  if (!run.group.empty()) write_text(out, 4, run.group);
  out.float64(5, run.start_time_secs);
}

}  // namespace detail

Summary hyperparameters_summary(const HyperparameterRun& run) {
  Summary summary;
  summary.values.push_back(detail::hyperparameters_value(
      "_hparams_/experiment", 2, [&](ProtoWriter& out) { detail::write_experiment(out, run); }));
  summary.values.push_back(detail::hyperparameters_value(
      "_hparams_/session_start_info", 3, [&](ProtoWriter& out) { detail::write_session_start(out, run); }));
  return summary;
}

Summary hyperparameters_end_summary(bool has_succeeded, double end_time_secs) {
  Summary summary;
  summary.values.push_back(detail::hyperparameters_value("_hparams_/session_end_info", 4, [&](ProtoWriter& out) {
    out.int64(1, has_succeeded ? 1 : 2);
    out.float64(2, end_time_secs);
  }));
  return summary;
}

}  // namespace dflow
