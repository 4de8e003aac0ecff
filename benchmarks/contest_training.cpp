// One training step of small models on synthetic data; a side of `benchmarks/contest.py training`.
// usage: bench_contest_training THREADS
#include "training_rows.hpp"

#include <cstdlib>

int main(int argc, char** argv) {
  dflow::bench::Contestant rows;
  dflow::bench::add_trainings(rows, {.num_threads = argc > 1 ? std::atoi(argv[1]) : 1}, true);
  return rows.serve();
}
