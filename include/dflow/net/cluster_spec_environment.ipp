#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/cluster_spec.ipp>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace dflow::net {
namespace detail {

inline constexpr std::size_t longest_host = 255;
inline constexpr int most_tasks = static_cast<int>(ClusterSpec::max_tasks);

/// The first of the variables that is set and not empty: its name and value.
inline std::optional<std::pair<std::string, std::string>> first_set(const ClusterSpec::Environment& environment,
                                                                    std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto value = environment(name); value && !value->empty())
      return std::pair(std::string(name), *std::move(value));
  }
  return std::nullopt;
}

inline std::pair<std::string, std::string> required(const ClusterSpec::Environment& environment,
                                                    std::initializer_list<const char*> names) {
  auto found = first_set(environment, names);
  if (!found) fail_spec(str_cat("the environment has no ", *names.begin()));
  return *std::move(found);
}

inline int number_of(const std::pair<std::string, std::string>& variable, int least, int most) {
  const std::optional<int> value = read_count(variable.second, most);
  if (!value || *value < least) {
    fail_spec(str_cat(variable.first, " is ", quoted_text(variable.second), ", not a number of ", least, " to ", most));
  }
  return *value;
}

/// The tasks of ranks that go from 0 on, and which of them this one is.
class RankedTasks {
 public:
  RankedTasks(const TaskLayout& layout, int ranks) : layout_(layout) {
    const int others = layout.has_chief ? 1 : 0;
    if (layout.ps < 0 || ranks < 1 || layout.ps > ranks - others) {
      fail_spec(str_cat(ranks, " tasks are too few for ", layout.ps, " ps", layout.has_chief ? " and a chief" : ""));
    }
    if (layout.port < 1 || layout.port > 65535) fail_spec(str_cat(layout.port, " is no port"));
  }

  std::pair<std::string_view, int> operator[](int rank) const noexcept {
    if (rank < layout_.ps) return {"ps", rank};
    if (layout_.has_chief && rank == layout_.ps) return {"chief", 0};
    return {"worker", rank - layout_.ps - (layout_.has_chief ? 1 : 0)};
  }

  void add(ClusterSpec& spec, int rank, std::string_view host, int local_rank) const {
    const int port = layout_.port + local_rank;
    if (port > 65535)
      fail_spec(str_cat("host ", quoted_text(host), " has no port ", port, " for its task ", local_rank));
    const auto [job, index] = (*this)[rank];
    spec.add_task(job, index, str_cat(host, ':', port));
  }

 private:
  TaskLayout layout_;
};

/// Hosts as they become more, none longer than a host's name, nor more than tasks.
inline void check_hosts(std::size_t count, std::string_view text) {
  if (count > ClusterSpec::max_tasks) {
    fail_spec(str_cat("node list ", quoted_text(text), " has more than ", ClusterSpec::max_tasks, " nodes"));
  }
}

/// "01-03,7" to 01, 02, 03, 7.
inline std::vector<std::string> expand_ranges(std::string_view ranges, std::string_view text) {
  std::vector<std::string> numbers;
  for_each_part(ranges, ',', [&](std::string_view range) {
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const std::optional<int> first = read_count(low);
    const std::optional<int> last = read_count(high);
    if (!first || !last || *last < *first || low.size() > 10) {
      fail_spec(
          str_cat("node list ", quoted_text(text), " has ", quoted_text(range), " where a range as '01-12' is due"));
    }
    check_hosts(numbers.size() + static_cast<std::size_t>(*last - *first) + 1, text);
    for (std::int64_t number = *first; number <= *last; ++number) {
      std::string digits = str_cat(number);
      if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
      numbers.push_back(std::move(digits));
    }
  });
  return numbers;
}

/// One entry of a list: text and brackets in turn; the last bracket counts fastest.
inline void expand_entry(std::string_view entry, std::string_view text, std::vector<std::string>& hosts) {
  std::vector<std::string> made{""};
  while (!entry.empty()) {
    const std::size_t open = std::min(entry.find('['), entry.size());
    const std::string_view plain = entry.substr(0, open);
    for (const char c : plain) {
      if (!is_letter(c) && !is_digit(c) && c != '-' && c != '_' && c != '.') {
        fail_spec(
            str_cat("node list ", quoted_text(text), " has ", quoted_text(std::string_view(&c, 1)), " in a name"));
      }
    }
    entry.remove_prefix(open);
    std::vector<std::string> numbers{""};
    if (!entry.empty()) {
      const std::size_t close = entry.find(']');
      if (close == std::string_view::npos)
        fail_spec(str_cat("node list ", quoted_text(text), " has a '[' without its ']'"));
      numbers = expand_ranges(entry.substr(1, close - 1), text);
      entry.remove_prefix(close + 1);
    }
    check_hosts(hosts.size() + made.size() * numbers.size(), text);
    std::vector<std::string> longer;
    longer.reserve(made.size() * numbers.size());
    for (const std::string& start : made) {
      for (const std::string& number : numbers) {
        longer.push_back(str_cat(start, plain, number));
        if (longer.back().size() > longest_host) {
          fail_spec(str_cat("node list ", quoted_text(text), " has a name of more than ", longest_host, " characters"));
        }
      }
    }
    made = std::move(longer);
  }
  if (made.front().empty()) fail_spec(str_cat("node list ", quoted_text(text), " has an entry without a name"));
  hosts.insert(hosts.end(), std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
}

std::vector<std::string> expand_node_list(std::string_view text) {
  if (text.size() > ClusterSpec::max_text_bytes) fail_spec("a node list is too long");
  std::vector<std::string> hosts;
  std::size_t start = 0;
  bool is_inside = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (i < text.size() && ((c == '[' && is_inside) || (c == ']' && !is_inside))) {
      fail_spec(str_cat("node list ", quoted_text(text), " has a bracket too many"));
    }
    if (c == '[' || c == ']') is_inside = c == '[';
    if (i < text.size() && (c != ',' || is_inside)) continue;
    expand_entry(text.substr(start, i - start), text, hosts);
    start = i + 1;
  }
  return hosts;
}

/// "2(x3),1" to 2, 2, 2, 1.
inline std::vector<int> expand_tasks_per_node(const std::pair<std::string, std::string>& variable) {
  std::vector<int> counts;
  for_each_part(variable.second, ',', [&](std::string_view part) {
    const std::size_t open = part.find("(x");
    std::optional<int> times = 1;
    if (open != std::string_view::npos) {
      times =
          part.ends_with(')') ? read_count(part.substr(open + 2, part.size() - open - 3), most_tasks) : std::nullopt;
    }
    const std::optional<int> count = read_count(part.substr(0, open), most_tasks);
    if (!count || !times || *times < 1 || counts.size() + static_cast<std::size_t>(*times) > ClusterSpec::max_tasks) {
      fail_spec(str_cat(variable.first, " is ", quoted_text(variable.second), ", not of the form '2(x3),1'"));
    }
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *count);
  });
  return counts;
}

inline TaskLayout layout_of(const ClusterSpec::Environment& environment) {
  TaskLayout layout;
  if (const auto ps = first_set(environment, {"DFLOW_NUM_PS"})) layout.ps = number_of(*ps, 0, most_tasks);
  if (const auto chief = first_set(environment, {"DFLOW_CHIEF"})) layout.has_chief = number_of(*chief, 0, 1) == 1;
  if (const auto port = first_set(environment, {"DFLOW_PORT"})) layout.port = number_of(*port, 1, 65535);
  return layout;
}

}  // namespace detail

ClusterSpec ClusterSpec::from_slurm(const Environment& environment, const TaskLayout& layout) {
  const auto nodes = detail::required(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  const bool is_step = nodes.first == "SLURM_STEP_NODELIST";
  const bool has_step =
      is_step || detail::first_set(environment, {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NUM_TASKS"});
  const std::vector<std::string> hosts = detail::expand_node_list(nodes.second);

  const auto number = is_step ? detail::required(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"})
                              : detail::required(environment, {"SLURM_NTASKS", "SLURM_NPROCS"});
  const int ranks = detail::number_of(number, 1, detail::most_tasks);
  if (ranks > 1 && !has_step) {
    detail::fail_spec(str_cat(number.first, " is ", ranks,
                              ", but no step of Slurm runs this process: start the program by "
                              "srun, or with ",
                              number.first, "=1 to run it alone"));
  }
  const auto per_node = is_step ? detail::first_set(environment, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"})
                                : detail::first_set(environment, {"SLURM_TASKS_PER_NODE"});
  std::vector<int> counts;
  if (per_node) {
    counts = detail::expand_tasks_per_node(*per_node);
  } else if (static_cast<std::size_t>(ranks) % hosts.size() == 0) {
    counts.assign(hosts.size(), ranks / static_cast<int>(hosts.size()));
  }
  std::int64_t sum = 0;
  for (const int count : counts) sum += count;
  if (counts.size() != hosts.size() || sum != ranks) {
    detail::fail_spec(str_cat(number.first, " is ", ranks, ", but ", per_node ? per_node->first : "nothing", " says ",
                              sum, " on ", counts.size(), " nodes, and there are ", hosts.size()));
  }

  const int rank = detail::number_of(detail::required(environment, {"SLURM_PROCID"}), 0, ranks - 1);
  const detail::RankedTasks ranked(layout, ranks);
  ClusterSpec spec;
  int next = 0;
  int own_node = 0;
  int own_place = 0;
  for (std::size_t node = 0; node < hosts.size(); ++node) {
    for (int place = 0; place < counts[node]; ++place, ++next) {
      ranked.add(spec, next, hosts[node], place);
      if (next == rank) own_node = static_cast<int>(node), own_place = place;
    }
  }
  const auto agrees = [&](const char* name, int expected) {
    const auto said = detail::first_set(environment, {name});
    return !said || detail::number_of(*said, 0, detail::most_tasks) == expected;
  };
  if (!agrees("SLURM_NODEID", own_node) || !agrees("SLURM_LOCALID", own_place)) {
    detail::fail_spec(str_cat("SLURM_NODEID and SLURM_LOCALID do not put rank ", rank, " on node ", own_node,
                              " as task ", own_place, " of it: start the step with --distribution=block"));
  }
  const auto [job, index] = ranked[rank];
  spec.set_task(job, index);
  return spec;
}

ClusterSpec ClusterSpec::from_kubernetes(const Environment& environment, const TaskLayout& layout) {
  const auto service = detail::required(environment, {"DFLOW_KUBERNETES_SERVICE"});
  const int pods = detail::number_of(detail::required(environment, {"DFLOW_KUBERNETES_PODS"}), 1, detail::most_tasks);
  const int rank = detail::number_of(detail::required(environment, {"JOB_COMPLETION_INDEX"}), 0, pods - 1);
  std::string name;
  if (const auto job = detail::first_set(environment, {"DFLOW_KUBERNETES_JOB"})) {
    name = job->second;
  } else {
    const auto host = detail::required(environment, {"DFLOW_KUBERNETES_JOB", "HOSTNAME"});
    const std::string end = str_cat('-', rank);
    if (!host.second.ends_with(end) || host.second.size() == end.size()) {
      detail::fail_spec(str_cat("HOSTNAME is ", detail::quoted_text(host.second), ", not that of pod ", rank,
                                " of an indexed job: DFLOW_KUBERNETES_JOB says the job's name"));
    }
    name = host.second.substr(0, host.second.size() - end.size());
  }
  const detail::RankedTasks ranked(layout, pods);
  ClusterSpec spec;
  for (int pod = 0; pod < pods; ++pod) ranked.add(spec, pod, str_cat(name, '-', pod, '.', service.second), 0);
  const auto [job, index] = ranked[rank];
  spec.set_task(job, index);
  return spec;
}

ClusterSpec ClusterSpec::from_environment(const Environment& environment) {
  if (const auto config = detail::first_set(environment, {"TF_CONFIG"})) {
    try {
      return from_tf_config(config->second);
    } catch (const Error& error) {
      throw_error(error.status().with_prefix("TF_CONFIG: "));
    }
  }
  const auto is_several = [&](std::initializer_list<const char*> names) {
    const auto count = detail::first_set(environment, names);
    return count && count->second != "1";
  };
  if (detail::first_set(environment, {"SLURM_PROCID"}) &&
      is_several({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"})) {
    return from_slurm(environment, detail::layout_of(environment));
  }
  if (detail::first_set(environment, {"DFLOW_KUBERNETES_SERVICE", "DFLOW_KUBERNETES_PODS"})) {
    detail::required(environment, {"DFLOW_KUBERNETES_SERVICE"});
    detail::required(environment, {"DFLOW_KUBERNETES_PODS"});
    if (is_several({"DFLOW_KUBERNETES_PODS"})) return from_kubernetes(environment, detail::layout_of(environment));
  }
  return local();
}

}  // namespace dflow::net
