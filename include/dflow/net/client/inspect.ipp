#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/printable.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/system_seed.hpp>
#include <dflow/io/json/writer.hpp>
#include <dflow/net/client/inspect.hpp>
#include <dflow/net/cluster_peers.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/protocol/call.hpp>
#include <dflow/net/protocol/clock_offset.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

namespace dflow::net {

namespace detail {

/// The answer of a task: the body of its reply, and the times of the question and the answer by the own clock.
struct InspectAnswer {
  Status status;
  std::string body;
  std::int64_t asked_ns = 0;
  std::int64_t returned_ns = 0;
};

/// Answers as they come, from any thread.
struct InspectAnswers {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<InspectAnswer> answers;
  std::size_t num_left = 0;

  void set(std::size_t i, InspectAnswer answer) {
    const std::lock_guard lock(mutex);
    answers[i] = std::move(answer);
    --num_left;
    changed.notify_all();
  }
};

std::string seconds_text(std::int64_t ns) {
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) * 1e-9);
  return std::string(text, static_cast<std::size_t>(size));
}

/// A line about the entries that a bounded list has left out.
std::string left_out(std::string_view what, std::uint64_t all, std::size_t listed) {
  return all > listed ? str_cat("  and ", all - listed, " more ", what, "\n") : std::string();
}

std::string json_text(std::string_view text) {
  std::string out;
  json::append_quoted(out, text, json::BadUtf8::replace);  // others choose it
  return out;
}
std::string json_text(std::uint64_t number) { return str_cat("\"", number, "\""); }

/// "[a, b]": the texts that `write_one` makes of the entries.
template <class T, class WriteOne>
std::string json_list(const std::vector<T>& entries, WriteOne write_one) {
  std::string out = "[";
  for (const T& entry : entries) {
    if (out.size() > 1) out += ", ";
    out += write_one(entry);
  }
  return out + "]";
}

/// The answers of all tasks, in the order of the cluster's.
std::vector<InspectAnswer> ask_all(const ClusterSpec& cluster, Method method, const std::string& body,
                                   InspectOptions options) {
  if (options.clock == nullptr) options.clock = std::make_shared<RealClock>();
  if (options.random == nullptr) options.random = system_seed;
  if (options.transport == nullptr) {
    options.transport = std::make_shared<AsioTransport>(AsioTransportOptions{.clock = options.clock});
  }
  const std::uint64_t incarnation = options.random();
  Peers::Options to = peers_of(cluster, {{}, name_of_client("inspect", incarnation), incarnation, 0}, options.transport,
                               options.clock, options.random);
  to.connect_timeout = options.timeout;
  to.connection.handshake_timeout = options.timeout;
  const auto peers = std::make_shared<Peers>(std::move(to));
  const auto answers = std::make_shared<InspectAnswers>();
  const std::vector<ClusterSpec::Task> tasks = cluster.tasks();
  const std::size_t num_tasks = tasks.size();
  answers->answers.resize(num_tasks);
  answers->num_left = num_tasks;
  const Clock::time_point deadline = options.clock->after(options.timeout);
  for (std::size_t i = 0; i < num_tasks; ++i) {
    const auto ask = [=, clock = options.clock](Status status, const std::shared_ptr<Connection>& connection) {
      if (!status.ok()) return answers->set(i, {std::move(status), {}, 0, 0});
      Call call = make_call(method, body);
      call.deadline = deadline;
      const std::int64_t asked_ns = clock_ns(clock->now());
      connection->call(std::move(call), [=](Status replied, std::string said) {
        answers->set(i, {std::move(replied), std::move(said), asked_ns, clock_ns(clock->now())});
      });
    };
    peers->connect(tasks[i].name, Channel::control, {}, ask);
  }
  std::unique_lock lock(answers->mutex);
  answers->changed.wait(lock, [&] { return answers->num_left == 0; });
  std::vector<InspectAnswer> all = std::move(answers->answers);
  lock.unlock();
  peers->close(Status::cancelled("all tasks have been asked"));
  return all;
}

/// The answers of tasks, as `Report`s.
template <class Report, class Said, class Align>
std::vector<Report> reports_of(const ClusterSpec& cluster, std::vector<InspectAnswer> answers, Align align) {
  const std::vector<ClusterSpec::Task> tasks = cluster.tasks();
  std::vector<Report> reports;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Report& report = reports.emplace_back();
    report.task = tasks[i].name;
    report.address = tasks[i].address;
    report.status = std::move(answers[i].status);
    if (!report.status.ok()) continue;
    try {
      report.said = from_body<Said>(answers[i].body);
      align(report.said, answers[i]);
    } catch (...) {
      report.status = status_of_current_exception();
    }
  }
  return reports;
}

/// Moves the times of a log to the clock of the task that has asked.
void align_log(LogReply& log, const InspectAnswer& answer) {
  const RoundTrip trip{answer.asked_ns, log.now_ns, log.now_ns, answer.returned_ns};
  const std::int64_t offset = ClockOffset().during(trip);
  log.now_ns = wrapped_difference(log.now_ns, offset);
  for (LogRecord& record : log.records) {
    record.start_ns = wrapped_difference(record.start_ns, offset);
    record.end_ns = wrapped_difference(record.end_ns, offset);
  }
}

std::string_view name_of(LogRecord::What what) noexcept {
  if (what == LogRecord::What::ran) return "ran";
  return what == LogRecord::What::sent ? "sent" : "received";
}

}  // namespace detail

std::vector<TaskReport> inspect(const ClusterSpec& cluster, InspectOptions options) {
  return detail::reports_of<TaskReport, TaskStatus>(
      cluster, detail::ask_all(cluster, Method::task_status, {}, std::move(options)),
      [](const TaskStatus&, const detail::InspectAnswer&) {});
}

std::vector<LogReport> inspect_logs(const ClusterSpec& cluster, const LogRequest& request, InspectOptions options) {
  return detail::reports_of<LogReport, LogReply>(
      cluster, detail::ask_all(cluster, Method::task_log, to_body(request), std::move(options)), detail::align_log);
}

std::string to_text(std::span<const LogReport> reports) {
  std::string out;
  std::vector<std::pair<const LogRecord*, const LogReport*>> all;
  for (const LogReport& report : reports) {
    out += str_cat(report.task, " at ", report.address, ": ");
    if (!report.status.ok()) {
      out += str_cat(printable(report.status.to_string()), "\n");
      continue;
    }
    out += str_cat("the log is ", report.said.is_on ? "on" : "off",
                   report.said.num_dropped == 0 ? std::string()
                                                : str_cat(", ", report.said.num_dropped, " older records are lost"),
                   "\n");
    for (const LogRecord& record : report.said.records) all.emplace_back(&record, &report);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first->start_ns < b.first->start_ns; });
  for (const auto& [record, report] : all) {
    const auto micros = [&](std::int64_t ns) { return str_cat(ns / 1000, " us"); };
    const bool is_part = record->what == LogRecord::What::ran;
    out += str_cat("  ", micros(detail::wrapped_difference(record->start_ns, all.front().first->start_ns)), ": step ",
                   record->step, ": ", report->task, " ", detail::name_of(record->what), is_part ? " part " : " '",
                   printable(record->name), is_part ? "" : "'",
                   record->what == LogRecord::What::sent ? " to "
                   : is_part                             ? " for "
                                                         : " from ",
                   printable(record->peer), is_part ? std::string() : str_cat(", ", record->bytes, " bytes"), ", in ",
                   micros(detail::wrapped_difference(record->end_ns, record->start_ns)),
                   record->code == Code::ok ? std::string() : str_cat(": ", code_name(record->code)), "\n");
  }
  return out;
}

std::string to_json(std::span<const LogReport> reports) {
  using detail::json_text;
  const std::vector<LogReport> all(reports.begin(), reports.end());
  const auto tasks = detail::json_list(all, [](const LogReport& report) {
    const std::string out = str_cat("{\"task\": ", json_text(report.task), ", \"address\": ", json_text(report.address),
                                    ", \"status\": ", json_text(code_name(report.status.code())));
    if (!report.status.ok()) return str_cat(out, ", \"message\": ", json_text(report.status.message()), "}");
    const auto records = detail::json_list(report.said.records, [](const LogRecord& record) {
      return str_cat("{\"what\": ", json_text(detail::name_of(record.what)), ", \"step\": ", json_text(record.step),
                     ", \"name\": ", json_text(record.name), ", \"peer\": ", json_text(record.peer),
                     ", \"start_ns\": ", record.start_ns, ", \"end_ns\": ", record.end_ns,
                     ", \"bytes\": ", record.bytes, ", \"code\": ", json_text(code_name(record.code)), "}");
    });
    return str_cat(out, ", \"is_on\": ", report.said.is_on ? "true" : "false",
                   ", \"num_dropped\": ", report.said.num_dropped, ", \"records\": ", records, "}");
  });
  return str_cat("{\"tasks\": ", tasks, "}\n");
}

std::string to_text(std::span<const TaskReport> reports) {
  std::string out;
  for (const TaskReport& report : reports) {
    out += str_cat(report.task, " at ", report.address, "\n");
    if (!report.status.ok()) {
      out += str_cat("  ", printable(report.status.to_string()), "\n");
      continue;
    }
    const TaskStatus& said = report.said;
    out += str_cat("  incarnation ", said.incarnation, ", up for ", detail::seconds_text(said.age_ns), "; ",
                   said.devices.size(), " devices, ", said.num_sessions, " sessions, ", said.num_steps, " steps run, ",
                   said.num_waits, " tensors are waited for\n");
    for (const TaskStatus::Session& session : said.sessions) {
      out += str_cat("  session ", session.number, " of ", printable(session.client),
                     session.is_whole ? ", whose master is this task: " : ": ", session.num_shares,
                     session.is_whole ? " steps run\n" : " compiled parts\n");
    }
    out += detail::left_out("sessions", said.num_sessions, said.sessions.size());
    for (const TaskStatus::Step& step : said.steps) {
      out += step.is_whole ? str_cat("  a step of ", printable(step.client), ": session ", step.share)
                           : str_cat("  step ", step.step, " of ", printable(step.client), ": part ", step.share);
      out += str_cat(" for ", detail::seconds_text(step.age_ns), "\n");
    }
    out += detail::left_out("steps", said.num_steps, said.steps.size());
    for (const TaskStatus::Wait& wait : said.waits) out += str_cat("  ", printable(to_string(wait)), "\n");
    out += detail::left_out("tensors are waited for", said.num_waits, said.waits.size());
  }
  return out;
}

std::string to_json(std::span<const TaskReport> reports) {
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
                     ", \"session\": ", json_text(session.number),
                     session.is_whole ? ", \"steps\": " : ", \"parts\": ", session.num_shares, "}");
    });
    const auto steps = json_list(said.steps, [](const TaskStatus::Step& step) {
      return str_cat("{\"step\": ", json_text(step.step), ", \"client\": ", json_text(step.client),
                     step.is_whole ? ", \"session\": " : ", \"part\": ", step.share, ", \"age_ns\": ", step.age_ns,
                     "}");
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
