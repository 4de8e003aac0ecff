// A server for clients that are not of this library: prints where it listens, and ends with its input.
//
// usage: dflow_wire_server SECRET_FILE [SILENCE_MS [ADDRESS [CLIENT_BYTES TASK_BYTES]]]
#include <dflow/base/status.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/server.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
  try {
    if (argc < 2 || argc > 6 || argc == 5) {
      dflow::throw_error(dflow::Status::invalid_argument(
          "usage: dflow_wire_server SECRET_FILE [SILENCE_MS [ADDRESS [CLIENT_BYTES TASK_BYTES]]]"));
    }
    dflow::net::ClusterSpec cluster;
    cluster.add_task("ps", 0, argc >= 4 ? argv[3] : "127.0.0.1:0");
    cluster.set_task("ps", 0);
    cluster.read_secret_file(argv[1]);
    dflow::net::ServerOptions options;
    options.num_threads = 2;
    if (argc >= 3) options.silence_timeout = std::chrono::milliseconds(std::stol(argv[2]));
    if (argc == 6) {
      options.client_memory_limit_bytes = std::stoull(argv[4]);
      options.task_memory_limit_bytes = std::stoull(argv[5]);
    }
    const dflow::net::Server server(cluster, options);
    std::printf("%s\n", server.address().c_str());
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dflow_wire_server: %s\n", error.what());
    return 1;
  }
}
