#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/system_seed.hpp>
#include <dflow/net/asio/asio_transport.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/inspect/inspect.hpp>
#include <dflow/net/messages.hpp>
#include <dflow/net/peers.hpp>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

namespace dflow::net {

namespace detail {

/// Answers as they come, from any thread.
struct InspectAnswers {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<TaskReport> reports;
  std::size_t num_left = 0;

  void set(std::size_t i, Status status, std::string_view body) {
    TaskStatus said;
    try {
      if (status.ok()) said = from_body<TaskStatus>(body);
    } catch (...) {
      status = status_of_current_exception();
    }
    const std::lock_guard lock(mutex);
    reports[i].status = std::move(status);
    reports[i].said = std::move(said);
    --num_left;
    changed.notify_all();
  }
};

DFLOW_INLINE std::string seconds_text(std::int64_t ns) {
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) * 1e-9);
  return std::string(text, static_cast<std::size_t>(size));
}

/// A line for what a bounded list has left out.
DFLOW_INLINE std::string left_out(std::string_view what, std::uint64_t all, std::size_t listed) {
  return all > listed ? str_cat("  and ", all - listed, " more ", what, "\n") : std::string();
}

DFLOW_INLINE std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}
DFLOW_INLINE std::string json_text(std::uint64_t number) { return str_cat("\"", number, "\""); }

/// "[a, b]" of what `write_one` makes of each.
template <class T, class WriteOne>
std::string json_list(const std::vector<T>& entries, WriteOne write_one) {
  std::string out = "[";
  for (const T& entry : entries) {
    if (out.size() > 1) out += ", ";
    out += write_one(entry);
  }
  return out + "]";
}

}  // namespace detail

DFLOW_INLINE std::vector<TaskReport> inspect(const ClusterSpec& cluster, InspectOptions options) {
  if (options.clock == nullptr) options.clock = std::make_shared<RealClock>();
  if (options.random == nullptr) options.random = system_seed;
  if (options.transport == nullptr) {
    options.transport = std::make_shared<AsioTransport>(AsioTransportOptions{.clock = options.clock});
  }
  const std::uint64_t incarnation = options.random();
  Peers::Options to;
  to.transport = options.transport;
  to.connection.self = {{}, str_cat("/job:inspect/replica:0/task:", incarnation % 2'000'000'000), incarnation, 0};
  to.connection.secret = cluster.secret();
  to.connection.clock = options.clock;
  to.connection.random = options.random;
  to.connect_timeout = options.timeout;
  to.connection.handshake_timeout = options.timeout;
  const auto answers = std::make_shared<detail::InspectAnswers>();
  for (const ClusterSpec::Task& task : cluster.tasks()) {
    to.addresses.emplace(task.name, task.address);
    answers->reports.push_back({task.name, task.address, {}, {}});
  }
  answers->num_left = answers->reports.size();
  const auto peers = std::make_shared<Peers>(std::move(to));
  const std::size_t num_tasks = answers->num_left;
  for (std::size_t i = 0; i < num_tasks; ++i) {
    Call call;
    call.method = static_cast<std::uint16_t>(Method::task_status);
    call.deadline = options.clock->after(options.timeout);
    peers->call(cluster.tasks()[i].name, Channel::control, std::move(call),
                [answers, i](Status status, const std::string& body) { answers->set(i, std::move(status), body); });
  }
  std::unique_lock lock(answers->mutex);
  answers->changed.wait(lock, [&] { return answers->num_left == 0; });
  std::vector<TaskReport> reports = std::move(answers->reports);
  lock.unlock();
  peers->close(cancelled("all tasks have been asked"));
  return reports;
}

DFLOW_INLINE std::string to_text(std::span<const TaskReport> reports) {
  std::string out;
  for (const TaskReport& report : reports) {
    out += str_cat(report.task, " at ", report.address, "\n");
    if (!report.status.ok()) {
      out += str_cat("  ", report.status.to_string(), "\n");
      continue;
    }
    const TaskStatus& said = report.said;
    out += str_cat("  incarnation ", said.incarnation, ", up for ", detail::seconds_text(said.age_ns), "; ",
                   said.devices.size(), " devices, ", said.num_sessions, " sessions, ", said.num_steps,
                   " parts of steps run, ", said.num_waits, " tensors are waited for\n");
    for (const TaskStatus::Session& session : said.sessions) {
      out +=
          str_cat("  session ", session.number, " of ", session.client, ": ", session.num_shares, " compiled parts\n");
    }
    out += detail::left_out("sessions", said.num_sessions, said.sessions.size());
    for (const TaskStatus::Step& step : said.steps) {
      out += str_cat("  step ", step.step, " of ", step.client, ": part ", step.share, " for ",
                     detail::seconds_text(step.age_ns), "\n");
    }
    out += detail::left_out("parts of steps", said.num_steps, said.steps.size());
    for (const TaskStatus::Wait& wait : said.waits) out += str_cat("  ", to_string(wait), "\n");
    out += detail::left_out("tensors are waited for", said.num_waits, said.waits.size());
  }
  return out;
}

DFLOW_INLINE std::string to_json(std::span<const TaskReport> reports) {
  using detail::json_list;
  using detail::json_text;
  const std::vector<TaskReport> all(reports.begin(), reports.end());
  const auto tasks = json_list(all, [](const TaskReport& report) {
    const TaskStatus& said = report.said;
    std::string out = str_cat("{\"task\": ", json_text(report.task), ", \"address\": ", json_text(report.address),
                              ", \"status\": ", json_text(code_name(report.status.code())));
    if (!report.status.ok()) return str_cat(out, ", \"message\": ", json_text(report.status.message()), "}");
    const auto devices = json_list(said.devices, [](const std::string& device) { return json_text(device); });
    const auto sessions = json_list(said.sessions, [](const TaskStatus::Session& session) {
      return str_cat("{\"client\": ", json_text(session.client),
                     ", \"client_incarnation\": ", json_text(session.client_incarnation),
                     ", \"session\": ", json_text(session.number), ", \"parts\": ", session.num_shares, "}");
    });
    const auto steps = json_list(said.steps, [](const TaskStatus::Step& step) {
      return str_cat("{\"step\": ", json_text(step.step), ", \"client\": ", json_text(step.client),
                     ", \"part\": ", step.share, ", \"age_ns\": ", step.age_ns, "}");
    });
    const auto waits = json_list(said.waits, [](const TaskStatus::Wait& wait) {
      return str_cat("{\"step\": ", json_text(wait.step), ", \"tensor\": ", json_text(wait.tensor),
                     ", \"from\": ", json_text(wait.from), ", \"to\": ", json_text(wait.to),
                     ", \"frame\": ", json_text(wait.frame), "}");
    });
    return str_cat(out, ", \"incarnation\": ", json_text(said.incarnation), ", \"age_ns\": ", said.age_ns,
                   ", \"num_sessions\": ", said.num_sessions, ", \"num_steps\": ", said.num_steps,
                   ", \"num_waits\": ", said.num_waits, ", \"devices\": ", devices, ", \"sessions\": ", sessions,
                   ", \"steps\": ", steps, ", \"waits\": ", waits, "}");
  });
  return str_cat("{\"tasks\": ", tasks, "}\n");
}

}  // namespace dflow::net
