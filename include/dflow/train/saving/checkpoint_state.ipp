#pragma once

#include <dflow/base/files/file_systems.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/train/saving/checkpoint_state.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <utility>

namespace dflow::train {

namespace detail {

constexpr std::string_view being_removed_mark = "# dflow removes: ";

/// The text between quotes in protobuf's text form.
std::string quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 32 || byte == 127) {
      quoted += '\\';
      for (const int shift : {6, 3, 0}) quoted += static_cast<char>('0' + (byte >> shift & 7));
    } else {
      quoted += c;
    }
  }
  return quoted += '"';
}

[[noreturn]] void fail_state(std::string_view line) {
  throw_error(Status::data_loss(str_cat("damaged checkpoint state: '", line, "'")));
}

std::string unquoted(std::string_view quoted, std::string_view line) {
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"') fail_state(line);
  quoted = quoted.substr(1, quoted.size() - 2);
  std::string text;
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] == '"') fail_state(line);
    if (quoted[i] != '\\') {
      text += quoted[i];
      continue;
    }
    if (++i == quoted.size()) fail_state(line);
    constexpr std::string_view letters = "ntr", meanings = "\n\t\r";
    if (const std::size_t known = letters.find(quoted[i]); known != std::string_view::npos) {
      text += meanings[known];
    } else if (quoted[i] >= '0' && quoted[i] <= '7') {
      int value = 0;
      const std::size_t end = std::min(i + 3, quoted.size());
      for (; i < end && quoted[i] >= '0' && quoted[i] <= '7'; ++i) value = value * 8 + (quoted[i] - '0');
      --i;
      if (value > 255) fail_state(line);
      text += static_cast<char>(value);
    } else {
      text += quoted[i];
    }
  }
  return text;
}

double seconds_of(std::string_view digits, std::string_view line) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(seconds)) fail_state(line);
  return seconds;
}

std::string seconds_text(double seconds) {
  std::array<char, 64> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), seconds);
  return error == std::errc() ? std::string(digits.data(), end) : std::string("0");
}

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace detail

std::string CheckpointState::to_text() const {
  std::string text = str_cat("model_checkpoint_path: ", detail::quoted(model_checkpoint_path), "\n");
  for (const std::string& path : all_model_checkpoint_paths) {
    text += str_cat("all_model_checkpoint_paths: ", detail::quoted(path), "\n");
  }
  for (const double seconds : all_model_checkpoint_timestamps) {
    text += str_cat("all_model_checkpoint_timestamps: ", detail::seconds_text(seconds), "\n");
  }
  if (last_preserved_timestamp != 0) {
    text += str_cat("last_preserved_timestamp: ", detail::seconds_text(last_preserved_timestamp), "\n");
  }
  for (const std::string& path : being_removed) {
    text += str_cat(detail::being_removed_mark, detail::quoted(path), "\n");
  }
  return text;
}

CheckpointState CheckpointState::parse(std::string_view text) {
  CheckpointState state;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = detail::without_spaces(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(detail::being_removed_mark)) {
      state.being_removed.push_back(detail::unquoted(line.substr(detail::being_removed_mark.size()), line));
    }
    if (line.empty() || line.front() == '#') continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) detail::fail_state(line);
    const std::string_view key = detail::without_spaces(line.substr(0, colon));
    const std::string_view value = detail::without_spaces(line.substr(colon + 1));
    if (key == "model_checkpoint_path") {
      state.model_checkpoint_path = detail::unquoted(value, line);
    } else if (key == "all_model_checkpoint_paths") {
      state.all_model_checkpoint_paths.push_back(detail::unquoted(value, line));
    } else if (key == "all_model_checkpoint_timestamps") {
      state.all_model_checkpoint_timestamps.push_back(detail::seconds_of(value, line));
    } else if (key == "last_preserved_timestamp") {
      state.last_preserved_timestamp = detail::seconds_of(value, line);
    }
  }
  return state;
}

std::string checkpoint_state_path(const std::string& directory) { return join_path(directory, "checkpoint"); }

std::optional<CheckpointState> read_checkpoint_state(FileSystem& files, const std::string& directory) {
  const std::string path = checkpoint_state_path(directory);
  if (!files.exists(path)) return std::nullopt;
  try {
    return CheckpointState::parse(read_regular_file(files, path));
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("'", path, "': ")));
  }
}

namespace detail {

/// The places where the checkpoints of a state may be, the newest first: at the paths that it names, and beside the
/// state.
std::vector<std::string> places_of(const CheckpointState& state, const std::string& directory) {
  std::vector<std::string> named{state.model_checkpoint_path};
  named.insert(named.end(), state.all_model_checkpoint_paths.rbegin(), state.all_model_checkpoint_paths.rend());
  std::vector<std::string> places;
  for (const std::string& path : named) {
    if (path.empty()) continue;
    for (std::string place :
         {join_path(directory, path), join_path(directory, path.substr(path.find_last_of('/') + 1))}) {
      if (std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
    }
  }
  return places;
}

}  // namespace detail

std::optional<std::string> latest_checkpoint(FileSystem& files, const std::string& directory) {
  std::optional<CheckpointState> state = read_checkpoint_state(files, directory);
  constexpr int most_tries = 10;
  for (int tries = 1; state; ++tries) {
    const std::vector<std::string> places = detail::places_of(*state, directory);
    if (places.empty()) return std::nullopt;
    const std::string& newest =
        state->model_checkpoint_path.empty() ? state->all_model_checkpoint_paths.back() : state->model_checkpoint_path;
    Status missing = Status::not_found(
        str_cat("'", checkpoint_state_path(directory), "' names '", newest,
                "', and neither that nor an earlier checkpoint is there: remove the file to begin anew"));
    bool has_failed = false;
    for (const std::string& place : places) {
      try {
        if (has_saved_tensors(files, place)) return place;
      } catch (const Error& error) {
        if (!std::exchange(has_failed, true)) missing = error.status();
      }
    }
    // Another saver may have saved a checkpoint meanwhile, and removed all checkpoints that the state named.
    std::optional<CheckpointState> now = read_checkpoint_state(files, directory);
    if (now == state || tries == most_tries) throw_error(std::move(missing));
    state = std::move(now);
  }
  return std::nullopt;
}

std::optional<std::string> latest_checkpoint(const std::string& directory) {
  return latest_checkpoint(*machine_files(), directory);
}

}  // namespace dflow::train
