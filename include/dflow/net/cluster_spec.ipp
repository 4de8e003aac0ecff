#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/cluster_spec.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

namespace dflow::net {
namespace detail {

/// The jobs with tasks that train, in the order of their ranks.
inline constexpr std::array<std::string_view, 3> replica_jobs{"chief", "master", "worker"};

inline constexpr std::string_view cluster_spaces = " \t\r";

/// The address of the task of `ClusterSpec::local()`.
inline constexpr std::string_view no_address = "none";

[[noreturn]] inline void fail_spec(std::string message) { throw_error(Status::invalid_argument(std::move(message))); }

/// The index of the job's only task; 0 for a job that is not there, nothing for one with several.
inline std::optional<int> only_index(const ClusterSpec& spec, std::string_view job) {
  const std::vector<int> indices = spec.indices(job);
  if (indices.size() > 1) return std::nullopt;
  return indices.empty() ? 0 : indices.front();
}

/// Text from outside as a message shows it.
inline std::string quoted_text(std::string_view text) {
  constexpr std::size_t most = 80;
  std::string shown(text.substr(0, most));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return str_cat("'", shown, text.size() > most ? "..." : "", "'");
}

inline std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(cluster_spaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(cluster_spaces) - first + 1);
}

/// Calls `read(part)` for each text between separators, also for an empty text.
template <class Read>
void for_each_part(std::string_view text, char separator, Read&& read) {
  for (;;) {
    const std::size_t end = text.find(separator);
    read(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// A number of digits only, at most `most`.
inline std::optional<int> read_count(std::string_view text, int most = 0x7fffffff) noexcept {
  int value = 0;
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

inline bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

inline void check_job(std::string_view job) {
  const bool is_legal =
      !job.empty() && job.size() <= 64 && is_letter(job.front()) &&
      std::all_of(job.begin(), job.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
  if (!is_legal)
    fail_spec(str_cat(quoted_text(job), " is no job: at most 64 letters, digits and '_' after a letter are"));
}

inline void check_address(std::string_view address) {
  const bool is_legal =
      !address.empty() && address.size() <= 255 && std::all_of(address.begin(), address.end(), [](char c) {
        return c > ' ' && c <= '~' && std::string_view(",;=\"#").find(c) == std::string_view::npos;
      });
  if (!is_legal) fail_spec(str_cat(quoted_text(address), " is no address, such as 'host:2222'"));
}

/// The values of the cluster's flags; empty for flags that are not given.
struct ClusterFlags {
  static constexpr std::array<std::string_view, 7> names{"cluster", "cluster_file", "job",     "task",
                                                         "bind",    "secret_file",  "insecure"};
  std::array<std::optional<std::string>, names.size()> values;

  const std::optional<std::string>& operator[](std::string_view name) const noexcept {
    return values[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
  }
};

/// Whether "--dflow_NAME" stands in the command line: "--NAME" is then the program's own flag.
inline bool is_given_with_prefix(int argc, const char* const* argv, std::string_view name) {
  const std::string wanted = str_cat("--dflow_", name);
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view all = argv[i];
    if (all.substr(0, all.find('=')) == wanted) return true;
  }
  return false;
}

inline ClusterFlags read_cluster_flags(int argc, const char* const* argv, bool takes_short_names) {
  ClusterFlags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view all = argv[i];
    if (all == "--") break;
    if (!all.starts_with("--")) continue;
    const std::size_t equals = all.find('=');
    std::string_view name = all.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    const bool is_prefixed = name.starts_with("dflow_");
    if (is_prefixed) name.remove_prefix(6);
    const auto at = std::find(flags.names.begin(), flags.names.end(), name);
    if (at == flags.names.end() && is_prefixed) {  // a task with a misspelt flag would train alone
      std::string known;
      for (const std::string_view each : flags.names) known += str_cat(known.empty() ? "" : ", ", "--dflow_", each);
      fail_spec(str_cat("flag ", quoted_text(all.substr(0, equals)), " is none of dflow's, which are ", known));
    }
    if (at == flags.names.end()) continue;
    const bool is_own = !takes_short_names || name == "cluster" || is_given_with_prefix(argc, argv, name);
    if (!is_prefixed && is_own) continue;
    std::optional<std::string>& value = flags.values[static_cast<std::size_t>(at - flags.names.begin())];
    if (value) fail_spec(str_cat("flag ", quoted_text(all), ": --", name, " stands twice"));
    if (equals != std::string_view::npos) {
      value = all.substr(equals + 1);
    } else if (name == "insecure") {
      value = "true";
    } else if (i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--")) {
      value = argv[++i];
    } else {
      fail_spec(str_cat("flag ", quoted_text(all), " has no value"));
    }
    if (value->empty()) fail_spec(str_cat("flag ", quoted_text(all), " has no value"));
  }
  return flags;
}

inline bool read_truth(std::string_view text, std::string_view what) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  fail_spec(str_cat(what, " is ", quoted_text(text), ", not 'true' or 'false'"));
}

}  // namespace detail

std::optional<std::string> ClusterSpec::process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::string ClusterSpec::task_name(std::string_view job, int index) {
  return str_cat("/job:", job, "/replica:0/task:", index);
}

ClusterSpec ClusterSpec::local() {
  ClusterSpec spec;
  spec.add_task("localhost", 0, detail::no_address);
  spec.set_task("localhost", 0);
  return spec;
}

// ---- changes ----

void ClusterSpec::add_task(std::string_view job, int index, std::string_view address) {
  detail::check_job(job);
  detail::check_address(address);
  if (index < 0) detail::fail_spec(str_cat("a task of job ", detail::quoted_text(job), " has the index ", index));
  if (num_tasks() >= max_tasks) detail::fail_spec(str_cat("a cluster has more than ", max_tasks, " tasks"));
  if (has(job, index)) detail::fail_spec(str_cat("task ", task_name(job, index), " stands twice"));
  if (addresses_.find(address) != addresses_.end()) {
    detail::fail_spec(
        str_cat("address ", detail::quoted_text(address), " of ", task_name(job, index), " is another task's too"));
  }
  const auto at = addresses_.emplace(address).first;
  try {
    auto of_job = jobs_.find(job);
    if (of_job == jobs_.end()) {
      std::map<int, std::string> tasks;
      tasks.emplace(index, address);
      jobs_.emplace(std::string(job), std::move(tasks));
    } else {
      of_job->second.emplace(index, address);
    }
  } catch (...) {
    addresses_.erase(at);
    throw;
  }
}

void ClusterSpec::set_task(std::string_view job, int index) {
  detail::check_job(job);
  const bool is_apart = job == "evaluator" && index >= 0;
  if (!has(job, index) && !is_apart) {
    const std::size_t count = num_tasks(job);
    std::string known;
    for (const auto& [name, addresses] : jobs_) known += str_cat(known.empty() ? "" : ", ", name);
    detail::fail_spec(count == 0 ? str_cat("this task's job ", detail::quoted_text(job), " is not in the cluster, ",
                                           known.empty() ? "which has none" : "whose jobs are ", known)
                                 : str_cat("this task's index ", index, " is none of the ", count, " of job ",
                                           detail::quoted_text(job)));
  }
  job_ = job;
  index_ = index;
}

void ClusterSpec::set_secret(std::string secret) {
  if (!secret.empty() && (secret.size() < least_secret_bytes || secret.size() > most_secret_bytes)) {
    detail::fail_spec(str_cat("a cluster's secret has ", least_secret_bytes, " to ", most_secret_bytes, " bytes, not ",
                              secret.size()));
  }
  secret_ = std::move(secret);
}

void ClusterSpec::read_secret_file(const std::string& path) {
  std::string secret = PosixFileSystem().read_file(path, most_secret_bytes + 2);
  if (secret.ends_with('\n')) secret.pop_back();
  if (secret.ends_with('\r')) secret.pop_back();
  if (secret.empty()) detail::fail_spec(str_cat("secret file ", detail::quoted_text(path), " is empty"));
  try {
    set_secret(std::move(secret));
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("secret file ", detail::quoted_text(path), ": ")));
  }
}

void ClusterSpec::set_bind_address(std::string_view address) {
  if (!address.empty()) detail::check_address(address);
  bind_address_ = address;
}

// ---- questions ----

bool ClusterSpec::has(std::string_view job, int index) const noexcept {
  const auto at = jobs_.find(job);
  return at != jobs_.end() && at->second.contains(index);
}

bool ClusterSpec::is_local() const noexcept { return num_tasks() == 1 && addresses_.contains(detail::no_address); }

std::string ClusterSpec::task_name() const { return has_task() ? task_name(job_, index_) : std::string(); }

bool ClusterSpec::is_chief() const noexcept {
  if (job_ == "chief" || job_ == "master" || job_ == "localhost") return index_ == 0;
  return job_ == "worker" && index_ == 0 && !jobs_.contains("chief") && !jobs_.contains("master");
}

int ClusterSpec::num_replicas() const noexcept {
  std::size_t count = 0;
  for (const std::string_view job : detail::replica_jobs) count += num_tasks(job);
  return count == 0 ? 1 : static_cast<int>(count);
}

int ClusterSpec::replica_rank() const noexcept {
  std::ptrdiff_t before = 0;
  for (const std::string_view job : detail::replica_jobs) {
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) continue;
    const auto& addresses = found->second;
    if (job == job_) return static_cast<int>(before + std::distance(addresses.begin(), addresses.find(index_)));
    before += static_cast<std::ptrdiff_t>(addresses.size());
  }
  return 0;
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  names.reserve(jobs_.size());
  for (const auto& [job, tasks] : jobs_) names.push_back(job);
  return names;
}

std::vector<ClusterSpec::Task> ClusterSpec::tasks() const {
  std::vector<Task> all;
  all.reserve(num_tasks());
  for (const auto& [job, tasks] : jobs_) {
    for (const auto& [index, address] : tasks) all.push_back({job, index, task_name(job, index), address});
  }
  return all;
}

std::size_t ClusterSpec::num_tasks(std::string_view job) const noexcept {
  const auto at = jobs_.find(job);
  return at == jobs_.end() ? 0 : at->second.size();
}

std::vector<int> ClusterSpec::indices(std::string_view job) const {
  std::vector<int> result;
  if (const auto at = jobs_.find(job); at != jobs_.end()) {
    for (const auto& [index, address] : at->second) result.push_back(index);
  }
  return result;
}

const std::string& ClusterSpec::address(std::string_view job, int index) const {
  if (!has(job, index)) {
    std::string there;
    for (const auto& [name, tasks] : jobs_) {
      there += str_cat(there.empty() ? "" : ", ", name, " (", tasks.size(), ")");
    }
    throw_error(Status::not_found(str_cat("no task ", index, " of job ", detail::quoted_text(job),
                                          " in the cluster; there are ", there.empty() ? "none" : there)));
  }
  return jobs_.find(job)->second.find(index)->second;
}

std::string ClusterSpec::bind_address() const {
  if (!bind_address_.empty()) return bind_address_;
  return has(job_, index_) && !is_local() ? address(job_, index_) : std::string();
}

// ---- text ----

std::string ClusterSpec::jobs_to_string() const {
  std::string text;
  for (const auto& [job, tasks] : jobs_) {
    if (!text.empty()) text += ';';
    text += job;
    char separator = '=';
    int next = 0;
    for (const auto& [index, address] : tasks) {
      text += separator;
      if (index != next) text += str_cat(index, '=');
      text += address;
      separator = ',';
      next = index == 0x7fffffff ? 0 : index + 1;
    }
  }
  return text;
}

std::string ClusterSpec::to_string() const {
  std::string text = jobs_to_string();
  std::replace(text.begin(), text.end(), ';', '\n');
  if (!text.empty()) text += '\n';
  if (has_task()) text += str_cat("task ", job_, ' ', index_, '\n');
  if (!bind_address_.empty()) text += str_cat("bind ", bind_address_, '\n');
  if (is_insecure_) text += "insecure\n";
  return text;
}

/// "ps=a:1,b:1;worker=c:1,7=d:1"
void ClusterSpec::read_jobs(std::string_view text) {
  detail::for_each_part(text, ';', [&](std::string_view part) {
    part = detail::trimmed(part);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      detail::fail_spec(str_cat(detail::quoted_text(part), " is not of the form 'job=host:port,host:port'"));
    }
    const std::string_view job = detail::trimmed(part.substr(0, equals));
    detail::check_job(job);
    if (jobs_.find(job) != jobs_.end()) detail::fail_spec(str_cat("job ", detail::quoted_text(job), " stands twice"));
    int next = 0;
    detail::for_each_part(part.substr(equals + 1), ',', [&](std::string_view item) {
      item = detail::trimmed(item);
      if (const std::size_t sign = item.find('='); sign != std::string_view::npos) {
        const std::optional<int> index = detail::read_count(item.substr(0, sign));
        if (!index) detail::fail_spec(str_cat(detail::quoted_text(item.substr(0, sign)), " is no index of a task"));
        next = *index;
        item.remove_prefix(sign + 1);
      }
      add_task(job, next, item);
      next = next == 0x7fffffff ? 0 : next + 1;
    });
  });
}

void ClusterSpec::read_line(std::string_view line) {
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, end);
  const std::string_view rest = detail::trimmed(line.substr(end));
  const auto once = [&](bool is_first) {
    if (!is_first) detail::fail_spec(str_cat(detail::quoted_text(word), " stands twice"));
  };
  if (word == "task" && !rest.starts_with('=')) {
    once(!has_task());
    const std::size_t space = rest.find_first_of(" \t");
    const std::optional<int> index =
        space == std::string_view::npos ? std::nullopt : detail::read_count(detail::trimmed(rest.substr(space)));
    if (!index) detail::fail_spec(str_cat(detail::quoted_text(line), " is not of the form 'task worker 0'"));
    const std::string_view job = rest.substr(0, space);
    detail::check_job(job);
    job_ = job;
    index_ = *index;
  } else if (word == "bind" && !rest.starts_with('=')) {
    once(bind_address_.empty());
    detail::check_address(rest);
    bind_address_ = rest;
  } else if (word == "secret_file" && !rest.starts_with('=')) {
    once(secret_.empty());
    if (rest.empty()) detail::fail_spec("'secret_file' names no file");
    read_secret_file(std::string(rest));
  } else if (line == "insecure") {
    once(!is_insecure_);
    is_insecure_ = true;
  } else {
    read_jobs(line);
  }
}

ClusterSpec ClusterSpec::parse(std::string_view text) {
  if (text.size() > max_text_bytes) {
    detail::fail_spec(str_cat("a cluster's text has ", text.size(), " bytes, more than ", max_text_bytes));
  }
  ClusterSpec spec;
  std::size_t number = 0;
  detail::for_each_part(text, '\n', [&](std::string_view line) {
    ++number;
    line = detail::trimmed(line);
    if (line.empty() || line.starts_with('#')) return;
    try {
      spec.read_line(line);
    } catch (const Error& error) {
      throw_error(error.status().with_prefix(str_cat("line ", number, ": ")));
    }
  });
  // The jobs may stand behind the task.
  if (spec.has_task()) spec.set_task(std::string(spec.job_), spec.index_);
  return spec;
}

ClusterSpec ClusterSpec::from_file(const std::string& path) {
  const std::string text = PosixFileSystem().read_file(path, max_text_bytes);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  try {
    return first != std::string::npos && text[first] == '{' ? from_tf_config(text) : parse(text);
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("cluster file ", detail::quoted_text(path), ": ")));
  }
}

ClusterSpec ClusterSpec::from_flags(int argc, const char* const* argv, const Environment& environment) {
  return read_flags(argc, argv, environment, true);
}
ClusterSpec ClusterSpec::from_prefixed_flags(int argc, const char* const* argv, const Environment& environment) {
  return read_flags(argc, argv, environment, false);
}

ClusterSpec ClusterSpec::read_flags(int argc, const char* const* argv, const Environment& environment,
                                    bool takes_short_names) {
  const detail::ClusterFlags flags = detail::read_cluster_flags(argc, argv, takes_short_names);
  if (flags["cluster"] && flags["cluster_file"]) {
    detail::fail_spec("--dflow_cluster and --cluster_file both say who is in the cluster");
  }
  ClusterSpec spec;
  if (flags["cluster"]) {
    if (flags["cluster"]->size() > max_text_bytes) detail::fail_spec("--dflow_cluster is too long");
    spec.read_jobs(*flags["cluster"]);
  } else {
    spec = flags["cluster_file"] ? from_file(*flags["cluster_file"]) : from_environment(environment);
  }
  // Where no cluster is named, "--task" alone is the program's.
  const bool is_of_cluster = spec != local() || detail::is_given_with_prefix(argc, argv, "task");
  if (flags["task"] && !flags["job"] && is_of_cluster) detail::fail_spec("--task stands without --job");
  if (flags["job"]) {
    const std::string& job = *flags["job"];
    std::optional<int> index;
    if (flags["task"]) {
      index = detail::read_count(*flags["task"]);
      if (!index) detail::fail_spec(str_cat("--task is ", detail::quoted_text(*flags["task"]), ", not an index"));
    } else if (index = detail::only_index(spec, job); !index) {
      detail::fail_spec(
          str_cat("--job ", detail::quoted_text(job), " has ", spec.num_tasks(job), " tasks: --task says which"));
    }
    spec.set_task(job, *index);
  }
  if (flags["bind"]) spec.set_bind_address(*flags["bind"]);
  if (flags["insecure"]) spec.set_insecure(detail::read_truth(*flags["insecure"], "--insecure"));
  if (flags["secret_file"]) {
    spec.read_secret_file(*flags["secret_file"]);
  } else if (spec.secret().empty()) {
    if (const auto path = environment("DFLOW_SECRET_FILE"); path && !path->empty()) {
      spec.read_secret_file(*path);
    } else if (auto secret = environment("DFLOW_SECRET"); secret && !secret->empty()) {
      spec.set_secret(*std::move(secret));
    }
  }
  return spec;
}

}  // namespace dflow::net
