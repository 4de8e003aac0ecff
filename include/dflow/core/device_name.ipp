#pragma once

#include <dflow/core/device_name.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace dflow {

namespace detail {

// The C locale's, without a locale.
constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr char to_upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
constexpr char to_lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr bool is_identifier(std::string_view text, bool may_have_dash) noexcept {
  if (text.empty() || !is_letter(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || is_digit(c) || c == '_' || (may_have_dash && c == '-'); });
}

/// Reads a device name part by part; the functions return the error in the name, or nothing.
class DeviceNameReader {
 public:
  std::string read(std::string_view text) {
    if (text.empty() || text == "/") return {};
    if (text.front() != '/') return "it must start with '/'";
    while (!text.empty()) {
      text.remove_prefix(1);
      const std::size_t end = std::min(text.find('/'), text.size());
      if (std::string wrong = read_part(text.substr(0, end)); !wrong.empty()) return wrong;
      text.remove_prefix(end);
    }
    return {};
  }

  DeviceName name;

 private:
  std::string read_part(std::string_view part) {
    const std::size_t colon = part.find(':');
    const std::string_view key = part.substr(0, colon);
    const bool has_value = colon != std::string_view::npos;
    const std::string_view value = has_value ? part.substr(colon + 1) : std::string_view();
    if (key == "job") return read_job(value);
    if (key == "replica") return read_number("replica", value, name.replica, has_replica_);
    if (key == "task") return read_number("task", value, name.task, has_task_);
    if (key == "device") {
      const std::size_t second = value.find(':');
      const bool has_id = second != std::string_view::npos;
      return read_device(value.substr(0, second), has_id ? value.substr(second + 1) : "*");
    }
    const auto same = [&](std::string_view type) {
      return std::equal(key.begin(), key.end(), type.begin(), type.end(),
                        [](char a, char b) { return to_upper(a) == b; });
    };
    if (same("CPU") || same("GPU")) return read_device(key, has_value ? value : "*");
    return str_cat("'", part, "' is no job, replica, task, device, cpu or gpu");
  }

  std::string read_job(std::string_view value) {
    if (std::exchange(has_job_, true)) return "it names the job twice";
    if (value == "*") return {};
    if (!is_identifier(value, true)) return str_cat("'", value, "' is no job name");
    name.job = std::string(value);
    return {};
  }

  static std::string read_number(std::string_view what, std::string_view value, std::optional<int>& into,
                                 bool& has_been_read) {
    if (std::exchange(has_been_read, true)) return str_cat("it names the ", what, " twice");
    if (value == "*") return {};
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0 || !is_digit(value.front())) {
      return str_cat("'", value, "' is no ", what, " number");
    }
    into = number;
    return {};
  }

  std::string read_device(std::string_view type, std::string_view id) {
    if (std::exchange(has_device_, true)) return "it names the device twice";
    if (type != "*") {
      if (!is_identifier(type, false)) return str_cat("'", type, "' is no device type");
      name.type.emplace(type);
      std::transform(type.begin(), type.end(), name.type->begin(), to_upper);
    }
    bool has_id = false;
    return read_number("device", id, name.id, has_id);
  }

  bool has_job_ = false;
  bool has_replica_ = false;
  bool has_task_ = false;
  bool has_device_ = false;
};

template <class T>
bool agrees(const std::optional<T>& a, const std::optional<T>& b) noexcept {
  return !a || !b || *a == *b;
}

}  // namespace detail

StatusOr<DeviceName> DeviceName::try_parse(std::string_view text) {
  detail::DeviceNameReader reader;
  if (const std::string wrong = reader.read(text); !wrong.empty()) {
    return Status::invalid_argument(str_cat("device name '", text, "' is malformed: ", wrong));
  }
  return std::move(reader.name);
}

DeviceName DeviceName::parse(std::string_view text) { return try_parse(text).value(); }

std::string DeviceName::to_string() const {
  std::string text;
  if (job) text += str_cat("/job:", *job);
  if (replica) text += str_cat("/replica:", *replica);
  if (task) text += str_cat("/task:", *task);
  if (type || id) {
    text += str_cat("/device:", type ? std::string_view(*type) : std::string_view("*"), ":");
    text += id ? str_cat(*id) : std::string("*");
  }
  return text;
}

std::string DeviceName::to_short_string() const {
  std::string text = "/";
  if (type) {
    std::transform(type->begin(), type->end(), std::back_inserter(text), detail::to_lower);
  } else {
    text += "device";
  }
  return text + ":" + (id ? str_cat(*id) : std::string("*"));
}

DeviceName DeviceName::merged_with(const DeviceName& inner) const {
  DeviceName merged = *this;
  if (inner.job) merged.job = inner.job;
  if (inner.replica) merged.replica = inner.replica;
  if (inner.task) merged.task = inner.task;
  if (inner.type) merged.type = inner.type;
  if (inner.id) merged.id = inner.id;
  return merged;
}

bool DeviceName::matches(const DeviceName& device) const noexcept {
  return (!job || job == device.job) && (!replica || replica == device.replica) && (!task || task == device.task) &&
         (!type || type == device.type) && (!id || id == device.id);
}

bool DeviceName::is_compatible_with(const DeviceName& other) const noexcept {
  return detail::agrees(job, other.job) && detail::agrees(replica, other.replica) && detail::agrees(task, other.task) &&
         detail::agrees(type, other.type) && detail::agrees(id, other.id);
}

}  // namespace dflow
