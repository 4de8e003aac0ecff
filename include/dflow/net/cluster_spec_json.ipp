#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/cluster_spec.ipp>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#if defined(DFLOW_HAS_JSON)
#include <nlohmann/json.hpp>

namespace dflow::net {
namespace detail {

using TfConfig = nlohmann::json;

/// Of bounded depth, and with no member twice, of which the parser would keep the last.
inline TfConfig parse_tf_config(std::string_view text) {
  constexpr int deepest = 32;
  if (text.size() > ClusterSpec::max_text_bytes)
    fail_spec(str_cat("has more than ", ClusterSpec::max_text_bytes, " bytes"));
  if (text.find('\0') != std::string_view::npos) fail_spec("there is a zero byte");
  std::vector<std::set<std::string>> open;
  const auto check = [&](int depth, TfConfig::parse_event_t event, TfConfig& parsed) {
    using Event = TfConfig::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= deepest) fail_spec(str_cat("nested deeper than ", deepest));
      if (event == Event::object_start) open.emplace_back();
    } else if (event == Event::object_end) {
      open.pop_back();
    } else if (event == Event::key && !open.back().insert(parsed.get<std::string>()).second) {
      fail_spec(str_cat("member ", quoted_text(parsed.get<std::string>()), " stands twice"));
    }
    return true;
  };
  try {
    return TfConfig::parse(text, check);
  } catch (const TfConfig::exception& error) {
    fail_spec(str_cat("no JSON: ", std::string_view(error.what()).substr(0, 300)));
  }
}

inline const std::string& json_text(const TfConfig& value, std::string_view what) {
  if (!value.is_string()) fail_spec(str_cat(what, " is no text but ", value.type_name()));
  return value.get_ref<const std::string&>();
}

/// A number, or its digits as text.
inline int json_index(const TfConfig& value, std::string_view what) {
  std::optional<int> index;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= 0x7fffffff) index = value.get<int>();
  if (value.is_string()) index = read_count(value.get_ref<const std::string&>());
  if (!index) fail_spec(str_cat(what, " is no index of a task"));
  return *index;
}

inline void add_json_job(ClusterSpec& spec, const std::string& job, const TfConfig& tasks) {
  const std::string what = str_cat("an address of job ", quoted_text(job));
  if (tasks.is_array()) {
    int index = 0;
    for (const TfConfig& address : tasks) spec.add_task(job, index++, json_text(address, what));
  } else if (tasks.is_object()) {
    for (const auto& [index, address] : tasks.items()) {
      const std::optional<int> number = read_count(index);
      if (!number) fail_spec(str_cat(quoted_text(index), " of job ", quoted_text(job), " is no index of a task"));
      spec.add_task(job, *number, json_text(address, what));
    }
  } else {
    fail_spec(str_cat("job ", quoted_text(job), " is no list of addresses but ", tasks.type_name()));
  }
}

inline const TfConfig* json_member(const TfConfig& object, const char* name) {
  const auto at = object.find(name);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

/// A process alone is told its task and environment; another member may be a misspelt cluster.
inline void check_no_cluster(const TfConfig& config) {
  constexpr std::string_view known[] = {"cluster",   "task",   "environment",    "model_dir",           "job",
                                        "rpc_layer", "master", "session_master", "eval_session_master", "service"};
  for (const auto& [name, value] : config.items()) {
    if (std::ranges::find(known, name) != std::end(known)) continue;
    fail_spec(str_cat("there is no 'cluster', and ", quoted_text(name), " is not known"));
  }
}

}  // namespace detail

ClusterSpec ClusterSpec::from_tf_config(std::string_view json) {
  const detail::TfConfig config = detail::parse_tf_config(json);
  if (!config.is_object()) detail::fail_spec(str_cat("an object is due, not ", config.type_name()));
  const detail::TfConfig* cluster = detail::json_member(config, "cluster");
  if (cluster != nullptr && !cluster->is_object()) {
    detail::fail_spec(str_cat("'cluster' is no object but ", cluster->type_name()));
  }
  if (cluster == nullptr) detail::check_no_cluster(config);
  if (cluster == nullptr || cluster->empty()) return local();
  ClusterSpec spec;
  for (const auto& [job, tasks] : cluster->items()) {
    detail::check_job(job);
    detail::add_json_job(spec, job, tasks);
  }
  if (const detail::TfConfig* task = detail::json_member(config, "task")) {
    if (!task->is_object()) detail::fail_spec(str_cat("'task' is no object but ", task->type_name()));
    const detail::TfConfig* type = detail::json_member(*task, "type");
    const detail::TfConfig* index = detail::json_member(*task, "index");
    if (type == nullptr) detail::fail_spec("'task' has no 'type'");
    spec.set_task(detail::json_text(*type, "'type' of 'task'"),
                  index == nullptr ? 0 : detail::json_index(*index, "'index' of 'task'"));
  }
  return spec;
}

}  // namespace dflow::net

#else

namespace dflow::net {

ClusterSpec ClusterSpec::from_tf_config(std::string_view) {
  throw_error(unimplemented("this library is built without nlohmann-json, which reads a cluster in TF_CONFIG's form"));
}

}  // namespace dflow::net

#endif
