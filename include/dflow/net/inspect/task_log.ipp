#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/net/inspect/task_log.hpp>
#include <dflow/net/protocol/clock_offset.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace dflow::net {

namespace detail {

std::string read_log_text(ByteReader& in) {
  const std::string_view text = in.string();
  if (text.size() > TaskLog::max_text_bytes) throw_error(Status::out_of_range("a name in a task's log is too long"));
  return std::string(text);
}

std::size_t read_log_count(ByteReader& in, std::size_t min_bytes_each) {
  const std::size_t count = in.count(min_bytes_each);
  if (count > TaskLog::max_records) throw_error(Status::out_of_range(str_cat("a task's log with ", count, " entries")));
  return count;
}

}  // namespace detail

void LogRequest::write(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(turn));
  out.boolean(clear);
  out.boolean(fetch);
  out.count(steps.size());
  for (const std::uint64_t step : steps) out.u64(step);
}

LogRequest LogRequest::read(ByteReader& in) {
  LogRequest request;
  const std::uint8_t turn = in.u8();
  if (turn > 2) throw_error(Status::data_loss(str_cat("a log cannot be switched to ", int{turn})));
  request.turn = static_cast<Switch>(turn);
  request.clear = in.boolean();
  request.fetch = in.boolean();
  request.steps.resize(detail::read_log_count(in, 8));
  for (std::uint64_t& step : request.steps) step = in.u64();
  return request;
}

void LogReply::write(ByteWriter& out) const {
  out.boolean(is_on);
  out.i64(now_ns);
  out.u64(num_dropped);
  out.count(records.size());
  for (const LogRecord& record : records) {
    out.u8(static_cast<std::uint8_t>(record.what));
    out.u64(record.step);
    out.string(record.name);
    out.string(record.peer);
    out.i64(record.start_ns);
    out.i64(record.end_ns);
    out.u64(record.bytes);
    out.u8(static_cast<std::uint8_t>(record.code));
  }
}

LogReply LogReply::read(ByteReader& in) {
  LogReply reply;
  reply.is_on = in.boolean();
  reply.now_ns = in.i64();
  reply.num_dropped = in.u64();
  reply.records.resize(detail::read_log_count(in, 36));
  for (LogRecord& record : reply.records) {
    const std::uint8_t what = in.u8();
    if (what < 1 || what > 3) throw_error(Status::data_loss(str_cat(int{what}, " is nothing that a task logs")));
    record.what = static_cast<LogRecord::What>(what);
    record.step = in.u64();
    record.name = detail::read_log_text(in);
    record.peer = detail::read_log_text(in);
    record.start_ns = in.i64();
    record.end_ns = in.i64();
    record.bytes = in.u64();
    record.code = code_from_number(in.u8());
  }
  return reply;
}

std::int64_t TaskLog::now_ns() const { return detail::clock_ns(clock_->now()); }

LogRecord TaskLog::begin_tensor(LogRecord::What what, std::uint64_t step, const RendezvousKey& key,
                                std::string_view peer) const {
  return {.what = what,
          .step = step,
          .name = std::string(key.tensor_name()),
          .peer = std::string(peer),
          .start_ns = now_ns()};
}

void TaskLog::add_tensor(LogRecord record, const AnyTensor& tensor, Code code) {
  record.bytes = tensor.is_initialized() ? static_cast<std::uint64_t>(tensor.bytes()) : 0;
  record.code = code;
  add(std::move(record));
}

void TaskLog::add(LogRecord record) {
  if (!is_on()) return;
  for (std::string* text : {&record.name, &record.peer}) text->resize(std::min(text->size(), max_text_bytes));
  const std::lock_guard lock(mutex_);
  record.end_ns = now_ns();
  if (records_.size() == max_records) {
    records_.pop_front();
    ++num_dropped_;
  }
  records_.push_back(std::move(record));
}

LogReply TaskLog::handle(const LogRequest& request) {
  LogReply reply;
  const std::lock_guard lock(mutex_);
  if (request.turn != LogRequest::Switch::leave) is_on_.store(request.turn == LogRequest::Switch::on);
  reply.is_on = is_on();
  reply.num_dropped = num_dropped_;
  if (request.fetch) {
    std::vector<std::uint64_t> steps = request.steps;
    std::sort(steps.begin(), steps.end());
    std::copy_if(records_.begin(), records_.end(), std::back_inserter(reply.records), [&](const LogRecord& record) {
      return steps.empty() || std::binary_search(steps.begin(), steps.end(), record.step);
    });
  }
  if (request.clear) {
    records_ = {};
    num_dropped_ = 0;
  }
  reply.now_ns = now_ns();
  return reply;
}

}  // namespace dflow::net
