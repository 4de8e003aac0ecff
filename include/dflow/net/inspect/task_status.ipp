#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/inspect/task_status.hpp>

#include <algorithm>
#include <string_view>

namespace dflow::net {

namespace detail {

void write_text(ByteWriter& out, std::string_view text) { out.string(text.substr(0, TaskStatus::max_text_bytes)); }

std::string read_text(ByteReader& in) {
  const std::string_view text = in.string();
  if (text.size() > TaskStatus::max_text_bytes)
    throw_error(Status::out_of_range("a name in a task's status is too long"));
  return std::string(text);
}

/// `write_one` of the first entries, as many as may be.
template <class T, class WriteOne>
void write_entries(ByteWriter& out, const std::vector<T>& entries, WriteOne write_one) {
  const std::size_t count = std::min(entries.size(), TaskStatus::max_entries);
  out.count(count);
  std::for_each(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count), write_one);
}

template <class T, class ReadOne>
void read_entries(ByteReader& in, std::size_t min_bytes_each, std::vector<T>& entries, ReadOne read_one) {
  const std::size_t count = in.count(min_bytes_each);
  if (count > TaskStatus::max_entries)
    throw_error(Status::out_of_range(str_cat("a task's status with ", count, " entries")));
  entries.resize(count);
  for (T& entry : entries) read_one(entry);
}

}  // namespace detail

void TaskStatus::write(ByteWriter& out) const {
  detail::write_text(out, task);
  out.u64(incarnation);
  out.i64(age_ns);
  detail::write_entries(out, devices, [&](const std::string& device) { detail::write_text(out, device); });
  detail::write_entries(out, sessions, [&](const Session& session) {
    detail::write_text(out, session.client);
    out.u64(session.client_incarnation);
    out.u64(session.number);
    out.u64(session.num_shares);
    out.u8(session.is_whole ? 1 : 0);
  });
  detail::write_entries(out, steps, [&](const Step& step) {
    out.u64(step.step);
    detail::write_text(out, step.client);
    out.u64(step.share);
    out.i64(step.age_ns);
    out.u8(step.is_whole ? 1 : 0);
  });
  detail::write_entries(out, waits, [&](const Wait& wait) {
    out.u64(wait.step);
    for (const std::string* text : {&wait.tensor, &wait.from, &wait.to, &wait.frame}) detail::write_text(out, *text);
  });
  out.u64(num_sessions);
  out.u64(num_steps);
  out.u64(num_waits);
}

TaskStatus TaskStatus::read(ByteReader& in) {
  TaskStatus status;
  status.task = detail::read_text(in);
  status.incarnation = in.u64();
  status.age_ns = in.i64();
  detail::read_entries(in, 1, status.devices, [&](std::string& device) { device = detail::read_text(in); });
  detail::read_entries(in, 26, status.sessions, [&](Session& session) {
    session.client = detail::read_text(in);
    session.client_incarnation = in.u64();
    session.number = in.u64();
    session.num_shares = in.u64();
    session.is_whole = in.u8() != 0;
  });
  detail::read_entries(in, 26, status.steps, [&](Step& step) {
    step.step = in.u64();
    step.client = detail::read_text(in);
    step.share = in.u64();
    step.age_ns = in.i64();
    step.is_whole = in.u8() != 0;
  });
  detail::read_entries(in, 12, status.waits, [&](Wait& wait) {
    wait.step = in.u64();
    for (std::string* text : {&wait.tensor, &wait.from, &wait.to, &wait.frame}) *text = detail::read_text(in);
  });
  status.num_sessions = in.u64();
  status.num_steps = in.u64();
  status.num_waits = in.u64();
  return status;
}

std::string to_string(const TaskStatus::Wait& wait) {
  const bool is_in_loop = !wait.frame.empty() && wait.frame != ":0";
  return str_cat("step ", wait.step, ": ", wait.to, " waits for '", wait.tensor, "'",
                 is_in_loop ? str_cat(" (", wait.frame, ")") : std::string(), " from ", wait.from);
}

}  // namespace dflow::net
