#pragma once

#include "interleaved.hpp"

#include <cstdio>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

/// One side of a contest that benchmarks/contest.py referees: a process that runs a row on command. Libraries that do
/// not fit into one process are measured in turn all the same.
namespace dflow::bench {

/// Rows by name. The lines on standard input are `rows`, `run MILLISECONDS NAME` and `drop NAME`. Each answer is one
/// line: the names with tabs between them, the median nanoseconds of one iteration, or `dropped`.
class Contestant {
 public:
  using Iteration = std::function<void()>;

  /// The first run of the row calls `prepare`; the iteration that it returns is timed and may be called any number of
  /// times.
  void row(std::string name, std::function<Iteration()> prepare) {
    rows_.push_back({std::move(name), std::move(prepare), {}, {}, {}, {}});
  }
  /// A row that times itself, once per run.
  void timed(std::string name, std::function<double()> measure_ns) {
    rows_.push_back({std::move(name), {}, std::move(measure_ns), {}, {}, {}});
  }
  /// A row that times itself for the given milliseconds. It uses the result of `prepare`, which is freed when the row
  /// is dropped.
  using Measure = std::function<double(double milliseconds)>;
  void measured(std::string name, std::function<Measure()> prepare) {
    rows_.push_back({std::move(name), {}, {}, {}, std::move(prepare), {}});
  }

  int serve() {
    std::string line;
    while (std::getline(std::cin, line)) {
      std::istringstream words(line);
      std::string command, name;
      words >> command;
      if (command == "rows") {
        for (const auto& row : rows_) std::cout << row.name << '\t';
        std::cout << std::endl;
        continue;
      }
      double milliseconds = 0;
      if (command == "run") words >> milliseconds;
      std::getline(words >> std::ws, name);
      Row* row = find(name);
      if (row == nullptr) return std::fprintf(stderr, "no row %s\n", name.c_str()), 1;
      if (command == "drop") {
        row->iteration = {};
        row->measure = {};
        std::cout << "dropped" << std::endl;
      } else {
        std::cout << run(*row, milliseconds * 1e6) << std::endl;
      }
    }
    return 0;
  }

 private:
  struct Row {
    std::string name;
    std::function<Iteration()> prepare;
    std::function<double()> measure_ns;
    Iteration iteration;
    std::function<Measure()> prepare_measure;
    Measure measure;
  };

  Row* find(const std::string& name) {
    for (auto& row : rows_) {
      if (row.name == name) return &row;
    }
    return nullptr;
  }

  static double run(Row& row, double duration_ns) {
    if (row.measure_ns) return row.measure_ns();
    if (row.prepare_measure) {
      if (!row.measure) row.measure = row.prepare_measure();
      return row.measure(duration_ns / 1e6);
    }
    if (!row.iteration) row.iteration = row.prepare();
    row.iteration();
    // Short iterations are timed together, so that reading the clock does not count.
    const double once = time_ns(row.iteration, 1, Clock::wall);
    const int together = once > 20'000 ? 1 : static_cast<int>(100'000 / (once + 1)) + 1;
    std::vector<double> times;
    const double start = now_ns(Clock::wall);
    do {
      times.push_back(time_ns(row.iteration, together, Clock::wall));
    } while (now_ns(Clock::wall) - start < duration_ns);
    return median(std::move(times));
  }

  std::vector<Row> rows_;
};

}  // namespace dflow::bench
