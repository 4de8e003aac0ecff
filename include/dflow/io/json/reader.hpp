#pragma once

#include <dflow/base/config.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// JSON as RFC 8259 has it, and nothing beyond: the library's one reader and writer.
namespace dflow::json {

/// Limits: a text beyond them is refused although it is JSON.
struct Limits {
  std::size_t max_depth = 32;  ///< objects and arrays inside one another
  std::size_t max_bytes = std::size_t{1} << 26;
  bool allows_duplicates = false;  ///< an object may have a name twice
};

/// Takes a text piece by piece as it is read. A member is its key and then its value. Texts are valid until the call
/// ends. If a function throws, the reading ends with its exception.
class Events {
 public:
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  /// As it is spelled: its digits, none lost.
  virtual void number(std::string_view spelling) = 0;
  virtual void string(std::string_view text) = 0;
  virtual void key(std::string_view name) = 0;
  virtual void begin_object() = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;

 protected:
  ~Events() = default;
};

/// Why a text is no JSON, or beyond the limits, and at which of its bytes.
struct Problem {
  std::size_t offset = 0;
  std::string what;
};

/// Reads a text, and returns the first problem if there is one. A byte order mark in front is passed over; zero bytes,
/// bytes that are not UTF-8 and halves of surrogate pairs are problems. `at` is the number of bytes that have been read
/// at a call of `events`: up to a bracket, or past the last byte of a name, text or number.
///
/// Thread safety: may be called from any thread. Memory: the longest text, and the names of the objects that are open.
/// Errors: as `events`.
[[nodiscard]] std::optional<Problem> try_read(std::string_view text, Events& events, const Limits& limits,
                                              std::size_t& at);

/// The same. Errors: InvalidArgument: "line 3, offset 41: a value is due"; as `events`.
void read(std::string_view text, Events& events, const Limits& limits = {});

}  // namespace dflow::json
