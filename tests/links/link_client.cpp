// A client for tests of bad connections. Its input says which steps it runs.
//
// usage: dflow_link_client ADDRESS SECRET_FILE SILENCE_MS
// Each line of input is "sum MEGABYTES DEADLINE_MS" or "fetch MEGABYTES DEADLINE_MS". "sum" feeds that many megabytes
// to the task, and "fetch" gets that many from it. The answer to a line is "CODE RESIDENT_MEGABYTES TEXT". The first
// line of output is "ready".
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

namespace df = dflow;

namespace {

std::int64_t resident_megabytes() {
  std::int64_t pages = 0, resident = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * 4096 >> 20;
}

int serve(const char* address, const char* secret_file, const char* silence_ms) {
  df::net::ClusterSpec cluster;
  cluster.add_task("ps", 0, address);
  cluster.read_secret_file(secret_file);
  df::net::ServerOptions options;
  options.silence_timeout = std::chrono::milliseconds(std::stol(silence_ms));
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  auto size = df::placeholder<std::int32_t>(graph, {1});
  const auto on = graph.device("/job:ps/task:0");
  const auto sum = df::reduce_sum(x);
  const auto filled = df::fill(size, df::constant(graph, 1.0f));
  df::Session session(graph, {.target = df::net::connect(cluster, options)});
  static_cast<void>(session.run({{x, df::Tensor<float>::full({2}, 1.0f)}}, sum));
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what;
    std::int64_t megabytes = 0, deadline_ms = 0;
    words >> what >> megabytes >> deadline_ms;
    const std::int64_t elements = megabytes << 18;
    const df::RunOptions run{.deadline = std::chrono::milliseconds(deadline_ms)};
    df::Status status;
    try {
      if (what == "sum") {
        const auto ones = df::Tensor<float>::full({elements}, 1.0f);
        if (session.run(run, {{x, ones}}, sum).scalar() != static_cast<float>(elements))
          status = df::Status::internal("wrong");
      } else {
        const auto shape = df::Tensor<std::int32_t>({1}, {static_cast<std::int32_t>(elements)});
        if (session.run(run, {{size, shape}}, filled).num_elements() != elements)
          status = df::Status::internal("wrong");
      }
    } catch (const df::Error& error) {
      status = error.status();
    }
    std::printf("%s %ld %s\n", std::string(df::code_name(status.code())).c_str(), resident_megabytes(),
                status.to_string().c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4)
      df::throw_error(df::Status::invalid_argument("usage: dflow_link_client ADDRESS SECRET_FILE SILENCE_MS"));
    return serve(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dflow_link_client: %s\n", error.what());
    return 1;
  }
}
