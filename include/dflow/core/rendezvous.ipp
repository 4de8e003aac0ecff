#pragma once

#include <dflow/core/rendezvous.hpp>

#include <charconv>

namespace dflow {

namespace detail {

std::string to_hex(std::uint64_t number) {
  char digits[16];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number, 16);
  static_cast<void>(error);
  return std::string(digits, end);
}

/// Eight bytes a step: a key is hashed once per node and iteration, so this is on a loop's way.
std::uint64_t hash_text(std::string_view text) noexcept {
  constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15u;
  std::uint64_t hash = text.size() * multiplier;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * multiplier;
    hash ^= hash >> 32;
  };
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, text.data() + i, 8);
    mix(word);
  }
  std::uint64_t last = 0;
  if (i < text.size()) __builtin_memcpy(&last, text.data() + i, text.size() - i);
  mix(last);
  return hash;
}

}  // namespace detail

RendezvousKey::RendezvousKey(std::string_view source_device, std::uint64_t source_incarnation,
                             std::string_view destination_device, std::string_view tensor_name, std::string_view frame,
                             std::int64_t iteration)
    : text_(str_cat(source_device, ";", detail::to_hex(source_incarnation), ";", destination_device, ";", tensor_name,
                    ";", frame, ":", iteration)),
      hash_(detail::hash_text(text_)),
      incarnation_(source_incarnation) {}

RendezvousKey RendezvousKey::in_frame(std::string_view frame, std::int64_t iteration) const {
  return {source_device(), incarnation_, destination_device(), tensor_name(), frame, iteration};
}

StatusOr<RendezvousKey> RendezvousKey::parse(std::string_view text) {
  const auto malformed = [&] { return Status::invalid_argument(str_cat("rendezvous key '", text, "' is malformed")); };
  std::string_view parts[5];
  std::string_view rest = text;
  for (int i = 0; i < 4; ++i) {
    const std::size_t end = rest.find(';');
    if (end == std::string_view::npos) return malformed();
    parts[i] = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || rest.find(';') != std::string_view::npos) return malformed();
  parts[4] = rest.substr(0, colon);
  const std::string_view digits = rest.substr(colon + 1);

  std::uint64_t incarnation = 0;
  const std::string_view hex = parts[1];
  const auto read_hex = std::from_chars(hex.data(), hex.data() + hex.size(), incarnation, 16);
  std::int64_t iteration = 0;
  const auto read_digits = std::from_chars(digits.data(), digits.data() + digits.size(), iteration);
  if (read_hex.ec != std::errc() || read_digits.ec != std::errc()) return malformed();
  RendezvousKey key(parts[0], incarnation, parts[2], parts[3], parts[4], iteration);
  if (key.text() != text) return malformed();
  return key;
}

std::string_view RendezvousKey::part(int index) const noexcept {
  std::string_view rest = text_;
  for (; index > 0; --index) rest.remove_prefix(rest.find(';') + 1);
  return rest.substr(0, rest.find(';'));
}

Rendezvous::~Rendezvous() = default;

}  // namespace dflow
