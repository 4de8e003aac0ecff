#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/io/json/value.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/cluster_spec.ipp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dflow::net {
namespace detail {

using json::Value;

inline Value parse_tf_config(std::string_view text) {
  if (text.size() > ClusterSpec::max_text_bytes) {
    fail_spec(str_cat("has more than ", ClusterSpec::max_text_bytes, " bytes"));
  }
  try {
    return json::parse(text, {.max_depth = 32, .max_bytes = ClusterSpec::max_text_bytes});
  } catch (const Error& error) {
    throw_error(error.status().with_prefix("no JSON: "));
  }
}

inline const std::string& json_text(const Value& value, std::string_view what) {
  if (!value.is_string()) fail_spec(str_cat(what, " is no text but ", value.kind_name()));
  return value.string();
}

/// A number, or its digits as text.
inline int json_index(const Value& value, std::string_view what) {
  std::optional<int> index;
  if (value.is_number()) index = value.as_int<int>();
  if (value.is_string()) index = read_count(value.string());
  if (!index || *index < 0) fail_spec(str_cat(what, " is no index of a task"));
  return *index;
}

inline void add_json_job(ClusterSpec& spec, const std::string& job, const Value& tasks) {
  const std::string what = str_cat("an address of job ", quoted_text(job));
  if (tasks.is_array()) {
    int index = 0;
    for (const Value& address : tasks.items()) spec.add_task(job, index++, json_text(address, what));
  } else if (tasks.is_object()) {
    for (const auto& [index, address] : tasks.members()) {
      const std::optional<int> number = read_count(index);
      if (!number) fail_spec(str_cat(quoted_text(index), " of job ", quoted_text(job), " is no index of a task"));
      spec.add_task(job, *number, json_text(address, what));
    }
  } else {
    fail_spec(str_cat("job ", quoted_text(job), " is no list of addresses but ", tasks.kind_name()));
  }
}

/// A member that is null counts as absent.
inline const Value* json_member(const Value& object, std::string_view name) {
  const Value* const member = object.find(name);
  return member == nullptr || member->is_null() ? nullptr : member;
}

/// A process alone is told its task and environment; another member may be a misspelt cluster.
inline void check_no_cluster(const Value& config) {
  constexpr std::string_view known[] = {"cluster",   "task",   "environment",    "model_dir",           "job",
                                        "rpc_layer", "master", "session_master", "eval_session_master", "service"};
  for (const auto& [name, value] : config.members()) {
    if (std::ranges::find(known, name) != std::end(known)) continue;
    fail_spec(str_cat("there is no 'cluster', and ", quoted_text(name), " is not known"));
  }
}

}  // namespace detail

ClusterSpec ClusterSpec::from_tf_config(std::string_view json) {
  const json::Value config = detail::parse_tf_config(json);
  if (!config.is_object()) detail::fail_spec(str_cat("an object is due, not ", config.kind_name()));
  const json::Value* cluster = detail::json_member(config, "cluster");
  if (cluster != nullptr && !cluster->is_object()) {
    detail::fail_spec(str_cat("'cluster' is no object but ", cluster->kind_name()));
  }
  if (cluster == nullptr) detail::check_no_cluster(config);
  if (cluster == nullptr || cluster->members().empty()) return local();
  ClusterSpec spec;
  for (const auto& [job, tasks] : cluster->members()) {
    detail::check_job(job);
    detail::add_json_job(spec, job, tasks);
  }
  if (const json::Value* task = detail::json_member(config, "task")) {
    if (!task->is_object()) detail::fail_spec(str_cat("'task' is no object but ", task->kind_name()));
    const json::Value* type = detail::json_member(*task, "type");
    const json::Value* index = detail::json_member(*task, "index");
    if (type == nullptr) detail::fail_spec("'task' has no 'type'");
    const std::string& job = detail::json_text(*type, "'type' of 'task'");
    const std::optional<int> number =
        index == nullptr ? detail::only_index(spec, job) : detail::json_index(*index, "'index' of 'task'");
    // TensorFlow takes 0: then each of the job's tasks is the same one.
    if (!number) {
      detail::fail_spec(
          str_cat("'task' has no 'index', and job ", detail::quoted_text(job), " has ", spec.num_tasks(job), " tasks"));
    }
    spec.set_task(job, *number);
  }
  return spec;
}

}  // namespace dflow::net
