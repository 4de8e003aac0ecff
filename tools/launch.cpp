// dflow-launch: starts the tasks of a cluster on this host and takes them down whole.
#include "free_addresses.hpp"
#include "launch_plan.hpp"

#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace dflow;
using namespace dflow::launch;
using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void fail_of_system(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int checked(int result, const char* what) {
  if (result < 0) fail_of_system(what);
  return result;
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads us any more
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// A private file with 256 random bits in hexadecimal.
std::string make_secret_file() {
  std::array<unsigned char, 32> bits{};
  if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size())) fail_of_system("getrandom");
  std::string path = (std::filesystem::temp_directory_path() / "dflow-secret-XXXXXX").string();
  const int file = checked(::mkostemp(path.data(), O_CLOEXEC), "mkstemp");  // readable by its owner only
  std::string text;
  for (const unsigned char byte : bits) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  write_all(file, text + "\n");
  ::close(file);
  return path;
}

/// A process that outlives the launcher for a moment. If the launcher dies, by SIGKILL say, before it has said that a
/// group is gone, this process kills the group and removes the secret.
class Keeper {
 public:
  explicit Keeper(const std::string& temporary) {
    int ends[2];
    checked(::pipe2(ends, O_CLOEXEC), "pipe");
    const pid_t child = checked(::fork(), "fork");
    if (child == 0) {
      ::close(ends[1]);
      keep(ends[0], temporary);
    }
    ::close(ends[0]);
    to_ = ends[1];
    child_ = child;
  }
  ~Keeper() {
    ::close(to_);
    ::waitpid(child_, nullptr, 0);
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void watch(pid_t group) { say(group); }
  void forget(pid_t group) { say(-group); }
  pid_t pid() const noexcept { return child_; }

 private:
  [[noreturn]] static void keep(int from, const std::string& temporary) {
    ::setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
    // A process that waits for the end of the launcher's output must not wait for this process.
    const int null = ::open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor < 3; ++descriptor) ::dup2(null, descriptor);
    std::vector<pid_t> groups;
    pid_t said = 0;
    for (;;) {
      const ssize_t count = ::read(from, &said, sizeof said);
      if (count < 0 && errno == EINTR) continue;
      if (count != static_cast<ssize_t>(sizeof said)) break;
      if (said > 0) groups.push_back(said);
      if (said < 0) groups.erase(std::remove(groups.begin(), groups.end(), -said), groups.end());
    }
    for (const pid_t group : groups) ::kill(-group, SIGKILL);
    if (!temporary.empty()) ::unlink(temporary.c_str());
    ::_exit(0);
  }
  void say(pid_t group) { write_all(to_, {reinterpret_cast<const char*>(&group), sizeof group}); }

  int to_ = -1;
  pid_t child_ = -1;
};

struct Output {
  int descriptor = -1;
  bool is_error = false;
  LineCutter lines;
};

struct Process {
  pid_t pid = -1;
  bool is_running = false;
  std::optional<SteadyClock::time_point> restart_at;
  std::array<Output, 2> outputs;
};

struct Settings {
  OnFailure policy = OnFailure::stop;
  int max_restarts = 10;
  std::chrono::milliseconds grace{5000};
};

class Launcher {
 public:
  Launcher(std::vector<Task> tasks, const Settings& settings, Keeper& keeper, int signals)
      : tasks_(std::move(tasks)),
        processes_(tasks_.size()),
        settings_(settings),
        outcome_(tasks_, settings.policy, settings.max_restarts),
        keeper_(keeper),
        signals_(signals),
        is_coloured_{::isatty(1) == 1, ::isatty(2) == 1} {
    for (const Task& task : tasks_) width_ = std::max(width_, task.label().size());
  }
  ~Launcher() {
    for (Process& process : processes_) {
      if (!process.is_running) continue;
      ::kill(-process.pid, SIGKILL);
      ::waitpid(process.pid, nullptr, 0);
    }
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  int run() {
    for (std::size_t i = 0; i < tasks_.size(); ++i) start(i);
    while (is_any_left()) {
      wait();
      const auto now = SteadyClock::now();
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (processes_[i].restart_at && now >= *processes_[i].restart_at) start(i);
      }
      if (kill_at_ && now >= *kill_at_) {
        signal_all(SIGKILL);
        kill_at_.reset();
      }
    }
    return signal_ != 0 ? 128 + signal_ : outcome_.result();
  }

 private:
  void start(std::size_t number) {
    Process& process = processes_[number];
    process.restart_at.reset();
    std::vector<char*> argv;
    for (std::string& argument : tasks_[number].command) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int out[2];
    int err[2];
    checked(::pipe2(out, O_CLOEXEC), "pipe");
    checked(::pipe2(err, O_CLOEXEC), "pipe");
    const pid_t launcher = ::getpid();
    const pid_t pid = checked(::fork(), "fork");
    if (pid == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != launcher) ::_exit(127);  // it died before the line above
      sigset_t none;
      ::sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::signal(SIGPIPE, SIG_DFL);
      ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
      ::dup2(out[1], 1);
      ::dup2(err[1], 2);
      ::execvp(argv[0], argv.data());
      const std::string message = str_cat("cannot run ", argv[0], ": ", std::strerror(errno), '\n');
      write_all(2, message);
      ::_exit(127);
    }
    ::setpgid(pid, pid);  // parent and child both call it
    keeper_.watch(pid);
    ::close(out[1]);
    ::close(err[1]);
    close_outputs(number);
    process.pid = pid;
    process.is_running = true;
    process.outputs = {Output{out[0], false, {}}, Output{err[0], true, {}}};
    for (const Output& output : process.outputs) ::fcntl(output.descriptor, F_SETFL, O_NONBLOCK);
  }

  void wait() {
    std::vector<pollfd> polled{{signals_, POLLIN, 0}};
    std::vector<std::pair<std::size_t, std::size_t>> owners;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      for (std::size_t k = 0; k < 2; ++k) {
        const int descriptor = processes_[i].outputs[k].descriptor;
        if (descriptor < 0) continue;
        polled.push_back({descriptor, POLLIN, 0});
        owners.emplace_back(i, k);
      }
    }
    if (::poll(polled.data(), polled.size(), timeout_ms()) < 0 && errno != EINTR) fail_of_system("poll");
    for (std::size_t at = 1; at < polled.size(); ++at) {
      if (polled[at].revents != 0) read_some(owners[at - 1].first, owners[at - 1].second);
    }
    if (polled[0].revents != 0) take_signals();
  }

  int timeout_ms() const {
    std::optional<SteadyClock::time_point> next = kill_at_;
    for (const Process& process : processes_) {
      if (process.restart_at && (!next || *process.restart_at < *next)) next = process.restart_at;
    }
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - SteadyClock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  }

  /// Reads a part of the available output; false if there is none, or never will be.
  bool read_some(std::size_t number, std::size_t which) {
    Output& output = processes_[number].outputs[which];
    std::array<char, 16384> buffer;
    const ssize_t count = ::read(output.descriptor, buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    const auto emit = [&](std::string_view line) { print(number, output.is_error, line); };
    if (count > 0) {
      output.lines.add(std::string_view(buffer.data(), static_cast<std::size_t>(count)), emit);
      return true;
    }
    output.lines.finish(emit);
    ::close(std::exchange(output.descriptor, -1));
    return false;
  }

  /// A process that left its task's group may hold the other end for ever: only the output that is there is shown.
  void close_outputs(std::size_t number) {
    for (std::size_t which = 0; which < 2; ++which) {
      Output& output = processes_[number].outputs[which];
      for (int parts = 0; output.descriptor >= 0 && parts < 64 && read_some(number, which);) ++parts;
      if (output.descriptor < 0) continue;
      output.lines.finish([&](std::string_view line) { print(number, output.is_error, line); });
      ::close(std::exchange(output.descriptor, -1));
    }
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      const bool is_first = signal_ == 0;
      if (is_first) signal_ = signal;
      stop(is_first ? signal : SIGKILL);
    }
    for (std::size_t i = 0; i < processes_.size(); ++i) reap(i);
  }

  void reap(std::size_t number) {
    Process& process = processes_[number];
    if (!process.is_running) return;
    siginfo_t info{};
    // Nobody else gets the group's number until its leader is reaped.
    if (::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      return;
    ::kill(-process.pid, SIGKILL);
    keeper_.forget(process.pid);
    ::waitpid(process.pid, nullptr, 0);
    process.is_running = false;
    close_outputs(number);
    const int status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    if (is_stopping_) return;
    const Outcome::Next next = outcome_.ended(number, status);
    if (status != 0) {
      print(number, true,
            str_cat(status > 128 ? "ended by signal " : "ended with status ", status > 128 ? status - 128 : status,
                    next == Outcome::Next::restart ? ", is started again" : ""));
    }
    if (next == Outcome::Next::stop) stop(SIGTERM);
    if (next == Outcome::Next::restart) {
      const int doublings = std::min(outcome_.restarts(number) - 1, 5);
      process.restart_at = SteadyClock::now() + std::chrono::milliseconds(100 << doublings);
    }
  }

  void stop(int signal) {
    if (!is_stopping_) kill_at_ = SteadyClock::now() + settings_.grace;
    is_stopping_ = true;
    for (Process& process : processes_) process.restart_at.reset();
    signal_all(signal);
  }

  void signal_all(int signal) {
    for (const Process& process : processes_) {
      if (!process.is_running) continue;
      ::kill(-process.pid, signal);
      if (signal != SIGKILL) ::kill(-process.pid, SIGCONT);  // a stopped process sees no signal
    }
  }

  bool is_any_left() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const Process& process) { return process.is_running || process.restart_at; });
  }

  void print(std::size_t number, bool is_error, std::string_view line) {
    const std::size_t which = is_error ? 1 : 0;
    const std::string prefix = prefix_of(tasks_[number], number, width_, is_coloured_[which]);
    write_all(is_error ? 2 : 1, str_cat(prefix, line, '\n'));
  }

  std::vector<Task> tasks_;
  std::vector<Process> processes_;
  Settings settings_;
  Outcome outcome_;
  Keeper& keeper_;
  int signals_;
  std::array<bool, 2> is_coloured_;
  std::size_t width_ = 0;
  bool is_stopping_ = false;
  int signal_ = 0;
  std::optional<SteadyClock::time_point> kill_at_;
};

int launch_tasks(int argc, char** argv) {
  CLI::App app{"Starts the tasks of a cluster on this host: dflow-launch --ps 1 --workers 2 -- program arguments"};
  Numbers numbers;
  Settings settings;
  double grace = 5;
  std::string secret_file;
  bool is_insecure = false, is_dry = false;
  std::vector<std::string> program;
  const std::map<std::string, OnFailure> policies{
      {"stop", OnFailure::stop}, {"continue", OnFailure::go_on}, {"restart", OnFailure::restart}};
  std::string policy = "stop";
  app.add_option("--ps", numbers.ps, "tasks that hold parameters (1)")->check(CLI::Range(0, 1000));
  app.add_option("--workers", numbers.workers, "workers (1)")->check(CLI::Range(0, 1000));
  app.add_flag("--chief", numbers.has_chief, "start a chief, whose end is the end of all");
  app.add_flag("--evaluator", numbers.has_evaluator, "start an evaluator");
  app.add_option("--on-failure", policy, "of a task: stop all, continue without it, or restart it (stop)")
      ->check(CLI::IsMember({"stop", "continue", "restart"}));
  app.add_option("--max-restarts", settings.max_restarts, "of one task (10)")->check(CLI::Range(0, 1'000'000));
  app.add_option("--grace", grace, "seconds between SIGTERM and SIGKILL (5)")->check(CLI::Range(0.0, 86'400.0));
  auto* secret = app.add_option("--secret-file,--secret_file", secret_file, "the cluster's secret (one is made)");
  app.add_flag("--insecure", is_insecure, "use no secret")->excludes(secret);
  app.add_flag("--dry-run", is_dry, "print the commands instead");
  app.add_option("program", program, "what each task runs; the cluster's flags go behind its arguments")->required();
  CLI11_PARSE(app, argc, argv);
  settings.policy = policies.at(policy);
  settings.grace = std::chrono::milliseconds(static_cast<std::int64_t>(grace * 1000));

  const bool makes_secret = !is_insecure && secret_file.empty() && !is_dry;
  if (is_dry && !is_insecure && secret_file.empty()) secret_file = "SECRET";
  // Before there is anything to clean up, and so that no task inherits another mask.
  sigset_t waited;
  ::sigemptyset(&waited);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&waited, signal);
  ::sigprocmask(SIG_BLOCK, &waited, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  if (makes_secret) secret_file = make_secret_file();
  Keeper keeper(makes_secret ? secret_file : std::string());
  const std::vector<Task> tasks = plan_tasks(numbers, free_addresses(numbers.addresses()), program, secret_file);
  if (tasks.empty()) throw std::runtime_error("there are no tasks to start");
  if (is_dry) {
    for (const Task& task : tasks) {
      std::cout << task.label() << ":";
      for (const std::string& argument : task.command) std::cout << ' ' << quoted_for_shell(argument);
      std::cout << '\n';
    }
    return 0;
  }
  const int signals = checked(::signalfd(-1, &waited, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd");
  return Launcher(tasks, settings, keeper, signals).run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return launch_tasks(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "dflow-launch: " << error.what() << '\n';
    return 2;
  }
}
