#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <ostream>

namespace dflow {

/// The shared record of an error: immutable but for the count of statuses that point to it.
struct Status::Rep {
  Code code = Code::unknown;
  std::string message;
  std::string op;
  std::string node;
  std::string device;
  std::string task;
  SourceLocation where = {};
  mutable std::atomic<std::uint32_t> owners{1};

  Rep(Code error_code, std::string text) : code(error_code), message(std::move(text)) {}
  Rep(const Rep& other)
      : code(other.code),
        message(other.message),
        op(other.op),
        node(other.node),
        device(other.device),
        task(other.task),
        where(other.where) {}
};

namespace detail {
inline constexpr std::array<std::string_view, 17> code_names = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};
}  // namespace detail

Code code_from_number(int number) noexcept {
  return number >= 0 && number < static_cast<int>(detail::code_names.size()) ? static_cast<Code>(number)
                                                                             : Code::unknown;
}

std::string_view code_name(Code code) noexcept {
  return detail::code_names[static_cast<std::size_t>(code_from_number(static_cast<int>(code)))];
}

Status::Status(Code code, std::string message) : rep_(code == Code::ok ? nullptr : new Rep(code, std::move(message))) {}

void Status::acquire() const noexcept { rep_->owners.fetch_add(1, std::memory_order_relaxed); }

void Status::release() noexcept {
  if (rep_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete rep_;
}

Code Status::code() const noexcept { return rep_ == nullptr ? Code::ok : rep_->code; }

std::string_view Status::message() const noexcept {
  return rep_ == nullptr ? std::string_view() : std::string_view(rep_->message);
}

std::string_view Status::op() const noexcept {
  return rep_ == nullptr ? std::string_view() : std::string_view(rep_->op);
}

std::string_view Status::node() const noexcept {
  return rep_ == nullptr ? std::string_view() : std::string_view(rep_->node);
}

std::string_view Status::device() const noexcept {
  return rep_ == nullptr ? std::string_view() : std::string_view(rep_->device);
}

std::string_view Status::task() const noexcept {
  return rep_ == nullptr ? std::string_view() : std::string_view(rep_->task);
}

SourceLocation Status::where() const noexcept { return rep_ == nullptr ? SourceLocation() : rep_->where; }

Status Status::out_of_memory() noexcept {
  // Never destroyed, and its first owner stays. The text fits into the string itself.
  alignas(Rep) static std::byte storage[sizeof(Rep)];
  static const Rep* rep = ::new (static_cast<void*>(storage)) Rep(Code::resource_exhausted, "out of memory");
  Status status(rep);
  status.acquire();
  return status;
}

template <class Change>
Status Status::changed(const Change& change) const noexcept {
  try {
    Rep* rep = new Rep(*rep_);
    Status result(rep);
    change(*rep);
    return result;
  } catch (...) {
    return *this;
  }
}

Status Status::with_node(std::string_view op, std::string_view node) const noexcept {
  if (rep_ == nullptr || !rep_->op.empty() || !rep_->node.empty()) return *this;
  return changed([&](Rep& rep) {
    rep.op = op;
    rep.node = node;
  });
}

Status Status::with_device(std::string_view device) const noexcept {
  if (rep_ == nullptr || !rep_->device.empty()) return *this;
  return changed([&](Rep& rep) { rep.device = device; });
}

Status Status::with_task(std::string_view task) const noexcept {
  if (rep_ == nullptr || !rep_->task.empty()) return *this;
  return changed([&](Rep& rep) { rep.task = task; });
}

Status Status::with_location(SourceLocation where) const noexcept {
  if (rep_ == nullptr || rep_->where.line() != 0) return *this;
  return changed([&](Rep& rep) { rep.where = where; });
}

Status Status::with_prefix(std::string_view prefix) const noexcept {
  if (rep_ == nullptr) return *this;
  return changed([&](Rep& rep) { rep.message.insert(0, prefix); });
}

std::ostream& operator<<(std::ostream& out, const Status& status) { return out << status.to_string(); }

namespace detail {
/// Each line of a text as `printable` shows it, uncut.
std::string printable_lines(std::string_view text) {
  std::string lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += printable(text.substr(begin, end - begin), text.size());
    if (end < text.size()) lines += '\n';
    begin = end + 1;
  }
  return lines;
}
}  // namespace detail

std::string Status::to_string() const {
  if (rep_ == nullptr) return "OK";
  std::string context;
  const auto add = [&context](const auto&... parts) { context += str_cat(context.empty() ? "" : ", ", parts...); };
  if (!rep_->op.empty()) add("op ", rep_->op);
  if (!rep_->node.empty()) add("node '", rep_->node, "'");
  if (!rep_->device.empty()) add("device ", rep_->device);
  if (!rep_->task.empty()) add("task ", rep_->task);
  if (rep_->where.line() != 0) add("at ", rep_->where.file_name(), ":", rep_->where.line());
  if (!context.empty()) context = str_cat(" [", context, "]");
  return detail::printable_lines(str_cat(code_name(rep_->code), ": ", rep_->message, context));
}

Status Status::cancelled(std::string message) { return Status(Code::cancelled, std::move(message)); }
Status Status::unknown(std::string message) { return Status(Code::unknown, std::move(message)); }
Status Status::invalid_argument(std::string message) { return Status(Code::invalid_argument, std::move(message)); }
Status Status::deadline_exceeded(std::string message) { return Status(Code::deadline_exceeded, std::move(message)); }
Status Status::not_found(std::string message) { return Status(Code::not_found, std::move(message)); }
Status Status::already_exists(std::string message) { return Status(Code::already_exists, std::move(message)); }
Status Status::permission_denied(std::string message) { return Status(Code::permission_denied, std::move(message)); }
Status Status::resource_exhausted(std::string message) { return Status(Code::resource_exhausted, std::move(message)); }
Status Status::failed_precondition(std::string message) {
  return Status(Code::failed_precondition, std::move(message));
}
Status Status::aborted(std::string message) { return Status(Code::aborted, std::move(message)); }
Status Status::out_of_range(std::string message) { return Status(Code::out_of_range, std::move(message)); }
Status Status::unimplemented(std::string message) { return Status(Code::unimplemented, std::move(message)); }
Status Status::internal(std::string message) { return Status(Code::internal, std::move(message)); }
Status Status::unavailable(std::string message) { return Status(Code::unavailable, std::move(message)); }
Status Status::data_loss(std::string message) { return Status(Code::data_loss, std::move(message)); }
Status Status::unauthenticated(std::string message) { return Status(Code::unauthenticated, std::move(message)); }

Error::Error(Status status) : std::runtime_error(status.to_string()), status_(std::move(status)) {}

Error::~Error() = default;

void throw_error(Status status) { throw Error(std::move(status)); }

Status status_of_current_exception() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      return error.status();
    } catch (const std::bad_alloc&) {
      return Status::out_of_memory();
    } catch (const std::exception& error) {
      return Status::internal(error.what());
    } catch (...) {
      return Status::unknown("an exception that is not a std::exception");
    }
  } catch (...) {
    return Status::out_of_memory();
  }
}

}  // namespace dflow
