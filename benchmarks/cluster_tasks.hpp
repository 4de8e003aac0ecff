#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/base/system_seed.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include "child.hpp"

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

/// A cluster of processes of one program, over TCP on loopback.
namespace dflow::bench {

/// The program's tasks: `bench_x task JOB INDEX JOBS ...`, which say "ready" when they listen.
class Tasks {
 public:
  /// `more` are further arguments of each.
  Tasks(int ps, int workers, const std::vector<std::string>& more) {
    const std::vector<int> ports = free_ports(ps + workers);
    net::ClusterSpec spec;
    for (int i = 0; i < ps + workers; ++i) {
      spec.add_task(i < ps ? "ps" : "worker", i < ps ? i : i - ps, "127.0.0.1:" + std::to_string(ports[i]));
    }
    const std::string jobs = spec.jobs_to_string();
    // The environment is the owner's to read, unlike arguments.
    ::setenv("DFLOW_SECRET", str_cat("secret ", system_seed(), " ", system_seed()).c_str(), 1);
    for (int i = 0; i < ps + workers; ++i) {
      std::vector<std::string> arguments{"task", i < ps ? "ps" : "worker", std::to_string(i < ps ? i : i - ps), jobs};
      arguments.insert(arguments.end(), more.begin(), more.end());
      (i < ps ? servers : this->workers).emplace_back(std::move(arguments));
    }
    for (Child& task : servers) task.hear();
    for (Child& task : this->workers) task.hear();
  }

  /// The answer of each worker.
  std::vector<std::string> ask_workers(const std::string& command) {
    for (Child& worker : workers) worker.tell(command);
    std::vector<std::string> answers;
    for (Child& worker : workers) answers.push_back(worker.hear());
    return answers;
  }

  std::vector<Child> servers, workers;
};

/// The cluster of a task's arguments.
inline net::ClusterSpec spec_of(const std::vector<std::string>& arguments) {
  net::ClusterSpec spec;
  const std::string_view jobs = arguments.at(3);
  spec = net::ClusterSpec::parse([&] {
    std::string lines(jobs);
    for (char& letter : lines) letter = letter == ';' ? '\n' : letter;
    return lines;
  }());
  spec.set_task(arguments.at(1), std::stoi(arguments.at(2)));
  spec.set_secret(net::ClusterSpec::process_environment("DFLOW_SECRET").value());
  return spec;
}

/// Answers commands until there are no more.
template <class Answer>
void serve_commands(const Answer& answer) {
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line) << std::endl;
}

}  // namespace dflow::bench
