// Reads text as a cluster in each of its forms: lines, TF_CONFIG, Slurm's node list, tasks per node.
#include <dflow/base/status.hpp>
#include <dflow/net/cluster_spec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace {

using dflow::net::ClusterSpec;

/// Calls `read()`, which may refuse its input but in no other way than this.
template <class Read>
void try_to(Read&& read) {
  try {
    read();
  } catch (const dflow::Error& error) {
    if (error.code() != dflow::Code::invalid_argument) std::abort();
  }
}

void check_round_trip(const ClusterSpec& spec) {
  if (ClusterSpec::parse(spec.to_string()) != spec || spec.tasks().size() != spec.num_tasks()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text;
  if (size != 0) text.assign(reinterpret_cast<const char*>(data), size);
  // It would name files of this machine.
  if (text.find("secret_file") == std::string::npos) try_to([&] { check_round_trip(ClusterSpec::parse(text)); });
  try_to([&] { check_round_trip(ClusterSpec::from_tf_config(text)); });
  try_to([&] {
    for (const std::string& host : dflow::net::detail::expand_node_list(text)) {
      if (host.empty()) std::abort();
    }
  });
  try_to([&] {
    const std::size_t line = text.find('\n');
    if (line == std::string::npos) return;
    const std::string rest = text.substr(line + 1);
    check_round_trip(ClusterSpec::from_slurm([&](const std::string& name) -> std::optional<std::string> {
      if (name == "SLURM_JOB_NODELIST") return text.substr(0, line);
      if (name == "SLURM_TASKS_PER_NODE") return rest;
      if (name == "SLURM_NTASKS") return "7";
      if (name == "SLURM_PROCID") return "3";
      if (name == "SLURM_STEP_ID") return "0";
      return std::nullopt;
    }));
  });
  return 0;
}
