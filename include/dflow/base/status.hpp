#pragma once

/// Public: errors, as values (`Status`, `StatusOr`) and as the exception `Error`.

#include <dflow/base/api.hpp>
#include <dflow/base/config.hpp>
#include <dflow/base/source_location.hpp>
#include <dflow/base/str_cat.hpp>

#include <iosfwd>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace dflow {

/// The kind of an error: one of the 16 canonical codes of gRPC, or "ok". The numbers are gRPC's and go over the wire.
enum class Code : int {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

/// "INVALID_ARGUMENT" and the like; "CODE(42)" is never needed: a number outside the table prints as "UNKNOWN".
std::string_view code_name(Code code) noexcept;

/// The code with that number, or Code::unknown for a number outside the table (a newer peer may send one).
Code code_from_number(int number) noexcept;

/// The outcome of an operation that can fail: ok, or a code, a message and the place in the graph.
/// Ok is a null pointer; an error is one shared immutable record, so a copy costs an atomic increment.
///
/// Thread safety: distinct objects may be used from distinct threads, also when they are copies of one another.
class [[nodiscard]] Status {
 public:
  constexpr Status() noexcept = default;
  /// An error. With Code::ok the message is dropped and the status is ok.
  Status(Code code, std::string message);

  Status(const Status& other) noexcept : rep_(other.rep_) {
    if (rep_ != nullptr) acquire();
  }
  Status(Status&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  Status& operator=(const Status& other) noexcept {
    Status copy(other);
    std::swap(rep_, copy.rep_);
    return *this;
  }
  Status& operator=(Status&& other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~Status() {
    if (rep_ != nullptr) release();
  }

  bool ok() const noexcept { return rep_ == nullptr; }
  Code code() const noexcept;
  /// The bare message, without code or context; empty when ok. The views live as long as the status or a copy of it.
  std::string_view message() const noexcept;
  std::string_view op() const noexcept;
  std::string_view node() const noexcept;
  std::string_view device() const noexcept;
  std::string_view task() const noexcept;
  /// Where the node was built; line() is 0 if the place is not known.
  SourceLocation where() const noexcept;

  /// Errors, by code.
  static Status cancelled(std::string message);
  static Status unknown(std::string message);
  static Status invalid_argument(std::string message);
  static Status deadline_exceeded(std::string message);
  static Status not_found(std::string message);
  static Status already_exists(std::string message);
  static Status permission_denied(std::string message);
  static Status resource_exhausted(std::string message);
  static Status failed_precondition(std::string message);
  static Status aborted(std::string message);
  static Status out_of_range(std::string message);
  static Status unimplemented(std::string message);
  static Status internal(std::string message);
  static Status unavailable(std::string message);
  static Status data_loss(std::string message);
  static Status unauthenticated(std::string message);
  /// ResourceExhausted, "out of memory", without allocating any.
  static Status out_of_memory() noexcept;

  /// The status with context added. Context that is already there stays: the caller closest to the fault knows best. An
  /// ok status stays ok. If there is no memory for the context, the status stays as it is.
  Status with_node(std::string_view op, std::string_view node) const noexcept;
  Status with_device(std::string_view device) const noexcept;
  Status with_task(std::string_view task) const noexcept;
  Status with_location(SourceLocation where) const noexcept;
  /// The same status with `prefix` put before its message.
  Status with_prefix(std::string_view prefix) const noexcept;

  /// "OK", or "INVALID_ARGUMENT: msg [op MatMul, node 'layer1/matmul', device /cpu:0, at file.cpp:12]". Messages may
  /// hold names from files and peers: control characters but ends of lines are shown as `printable` shows them.
  std::string to_string() const;

  /// Equal code and message; context is not compared.
  friend bool operator==(const Status& a, const Status& b) noexcept {
    return a.rep_ == b.rep_ || (a.code() == b.code() && a.message() == b.message());
  }

 private:
  struct Rep;
  explicit Status(const Rep* rep) noexcept : rep_(rep) {}
  template <class Change>
  Status changed(const Change& change) const noexcept;
  void acquire() const noexcept;
  void release() noexcept;

  const Rep* rep_ = nullptr;
};

/// Prints `to_string()`.
std::ostream& operator<<(std::ostream& out, const Status& status);

/// The exception of the library: carries a Status that is not ok; what() is the status as text.
class DFLOW_API Error : public std::runtime_error {
 public:
  explicit Error(Status status);
  ~Error() override;

  const Status& status() const noexcept { return status_; }
  Code code() const noexcept { return status_.code(); }

 private:
  Status status_;
};

/// Throws out of line, so that a check in a header costs its caller a compare and a call.
[[noreturn]] void throw_error(Status status);

/// Throws Error if `status` is not ok.
inline void throw_if_error(const Status& status) {
  if (!status.ok()) throw_error(status);
}

/// The exception being handled, as a status; call it only inside a catch block. Error gives its own status,
/// std::bad_alloc ResourceExhausted, any other std::exception Internal with its what(), anything else Unknown. Without
/// memory for the status the result is Status::out_of_memory().
Status status_of_current_exception() noexcept;

/// A value, or the status that says why there is none.
///
/// Errors: value() throws Error with that status. Use * and -> only if ok() is true.
template <class T>
class [[nodiscard]] StatusOr {
 public:
  using value_type = T;

  /// An ok status without a value is a bug of the caller and becomes Code::internal.
  StatusOr(Status status) : status_(std::move(status)) {
    if (status_.ok()) status_ = Status::internal("StatusOr made from an ok status without a value");
  }
  template <class U = T>
    requires(std::is_constructible_v<T, U &&> && !std::is_same_v<std::remove_cvref_t<U>, StatusOr> &&
             !std::is_same_v<std::remove_cvref_t<U>, Status>)
  StatusOr(U&& value) : value_(std::forward<U>(value)) {}

  bool ok() const noexcept { return value_.has_value(); }
  const Status& status() const noexcept { return status_; }

  T& value() & {
    throw_if_error(status_);
    return *value_;
  }
  const T& value() const& {
    throw_if_error(status_);
    return *value_;
  }
  T&& value() && {
    throw_if_error(status_);
    return *std::move(value_);
  }

  T& operator*() & noexcept { return *value_; }
  const T& operator*() const& noexcept { return *value_; }
  T&& operator*() && noexcept { return *std::move(value_); }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace dflow
