#pragma once

/// Public: which tasks a cluster has, and where they listen.

#include <dflow/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::net {

/// How the tasks of a scheduler's job are shared out: the first `ps` ranks hold parameters, the next is the chief if
/// there is to be one, and the rest are workers.
struct TaskLayout {
  int ps = 1;
  bool has_chief = true;
  /// Where a host's first task listens; its next one listens one port above.
  int port = 2222;
};

/// Who is in a cluster: jobs ("ps", "worker", "chief"), the address of each of their tasks, which task this process is,
/// and what it needs to be let in. A job's indices may have gaps. What an address looks like is the transport's
/// business; here it is any text of at most 255 printable characters without spaces, ',', ';', '=', '"' and '#'.
///
/// In words, as in a file, one item a line:
/// ```
/// # two parameter servers, workers 0, 1 and 5
/// ps=10.0.0.1:2222,10.0.0.2:2222
/// worker=10.0.0.3:2222,10.0.0.4:2222,5=10.0.0.5:2222
/// task worker 1
/// bind 0.0.0.0:2222
/// secret_file /run/secrets/dflow
/// ```
/// A flag has the jobs on one line: "ps=a:1,b:1;worker=c:1". "insecure" is a line of one word; "task" may be left out
/// by a client that is no task.
///
/// Thread safety: a value: distinct objects may be used from distinct threads, one object by many while none changes
/// it. Errors: all functions that read text throw InvalidArgument, which quotes what is wrong, also for more than
/// `max_tasks` tasks, an address that two tasks have, or a task that its job has not.
class ClusterSpec {
 public:
  static constexpr std::size_t max_tasks = 100'000;
  static constexpr std::size_t max_text_bytes = 32u << 20;
  static constexpr std::size_t least_secret_bytes = 16;
  static constexpr std::size_t most_secret_bytes = 4096;

  /// A variable of the environment, or nothing.
  using Environment = std::function<std::optional<std::string>(const std::string& name)>;
  /// That of this process.
  static std::optional<std::string> process_environment(const std::string& name);

  struct Task {
    std::string job;
    int index = 0;
    std::string name;  ///< "/job:worker/replica:0/task:1"
    std::string address;

    friend bool operator==(const Task&, const Task&) = default;
  };

  /// A cluster without tasks.
  ClusterSpec() = default;
  /// A cluster of this process alone: "/job:localhost/replica:0/task:0" at "localhost:0".
  static ClusterSpec local();

  /// What the command line says, in either of the forms "--x=y" and "--x y". Flags that are not in the table are the
  /// program's own, and so is all behind "--". Each may also be written with "dflow_" before its name.
  ///
  /// | flag | what |
  /// |---|---|
  /// | --dflow_cluster | the jobs: "ps=host:port,host:port;worker=host:port" |
  /// | --cluster_file | a file for from_file(), instead |
  /// | --job, --task | which task this is; the index may be left out where the job has one task |
  /// | --bind | where this task listens, if not at its own address |
  /// | --secret_file | a file with the cluster's secret |
  /// | --insecure | no secret is needed, from wherever it is called; "--insecure=false" takes it back |
  ///
  /// Without the first two the jobs are those of from_environment(). Without a secret it is that of the file that
  /// DFLOW_SECRET_FILE names, or what DFLOW_SECRET holds. Never does a flag hold the secret: every user of a machine
  /// can read those.
  ///
  /// May block to read files. Errors also: InvalidArgument for a flag that stands twice or without its value; those of
  /// PosixFileSystem::read_file.
  static ClusterSpec from_flags(int argc, const char* const* argv,
                                const Environment& environment = process_environment);

  /// What is in a file: the form above, or from_tf_config()'s where it begins with '{'. May block.
  static ClusterSpec from_file(const std::string& path);

  /// That of TF_CONFIG, else of Slurm (where SLURM_PROCID is set and there are several tasks), else of an indexed job
  /// of Kubernetes (where DFLOW_KUBERNETES_SERVICE and DFLOW_KUBERNETES_PODS are set, and there are several pods), else
  /// local(). The layout of the latter two: DFLOW_NUM_PS (1), DFLOW_CHIEF (1 or 0; 1), DFLOW_PORT (2222). Errors also:
  /// InvalidArgument where one of Kubernetes's two variables is set without the other.
  static ClusterSpec from_environment(const Environment& environment = process_environment);

  /// TensorFlow's TF_CONFIG: {"cluster": {"ps": ["host:port"], "worker": [...]}, "task": {"type": "ps", "index": 0}}.
  /// A job may be an object of indices instead: {"worker": {"1": "host:port"}}. Without "cluster", or with an empty
  /// one, it is local(); "task" may be left out, and its index where the job has one task; an "evaluator" need not be
  /// in the cluster. Other members say nothing here, but one that TensorFlow does not know is an error beside no
  /// "cluster", which it may have been meant as.
  static ClusterSpec from_tf_config(std::string_view json);

  /// A step of Slurm, ranks in blocks: SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE and SLURM_STEP_NUM_TASKS, or
  /// those of the job where the step has none (SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE, SLURM_NTASKS); SLURM_PROCID.
  /// Errors also: InvalidArgument for several tasks without a step (SLURM_STEP_ID or one of the step's own), as in a
  /// batch script that does not call srun; where SLURM_NODEID and SLURM_LOCALID say that ranks are not in blocks.
  static ClusterSpec from_slurm(const Environment& environment, const TaskLayout& layout = {});

  /// An indexed job of Kubernetes whose pods have a headless service: pod i is "<job>-<i>.<service>". Of the
  /// environment: JOB_COMPLETION_INDEX (Kubernetes sets it), DFLOW_KUBERNETES_SERVICE, DFLOW_KUBERNETES_PODS and
  /// DFLOW_KUBERNETES_JOB, which may be left out: then the job is HOSTNAME without its "-<i>".
  static ClusterSpec from_kubernetes(const Environment& environment, const TaskLayout& layout = {});

  /// Reads the form above, and so what to_string() gives. May block where it names a secret_file.
  static ClusterSpec parse(std::string_view text);
  /// The form above, jobs in the order of their names. Never the secret.
  std::string to_string() const;
  /// The jobs on one line, for a flag.
  std::string jobs_to_string() const;

  /// A job's name begins with a letter and goes on with letters, digits and '_', at most 64 in all.
  void add_task(std::string_view job, int index, std::string_view address);
  /// Which task this process is. An "evaluator" need not be in the cluster: it reads what the others save.
  void set_task(std::string_view job, int index);
  /// Of `least_secret_bytes` to `most_secret_bytes` bytes, or empty for none.
  void set_secret(std::string secret);
  /// The file's content without the newline at its end. May block.
  void read_secret_file(const std::string& path);
  void set_insecure(bool is_insecure) noexcept { is_insecure_ = is_insecure; }
  void set_bind_address(std::string_view address);

  bool is_empty() const noexcept { return addresses_.empty(); }
  /// Whether this process is a task, and not only a client.
  bool has_task() const noexcept { return !job_.empty(); }
  /// Empty for a client.
  const std::string& job() const noexcept { return job_; }
  /// 0 for a client.
  int task_index() const noexcept { return index_; }
  /// "/job:worker/replica:0/task:1"; empty for a client.
  std::string task_name() const;
  /// Whether this task is the one that initialises and saves: the "chief" or "master", or worker 0 where there is
  /// neither.
  bool is_chief() const noexcept;
  /// How many tasks train: those of the jobs "chief", "master" and "worker"; 1 where there is none.
  int num_replicas() const noexcept;
  /// Which of them this process is, for `SyncReplicasOptions::rank`: chiefs first, then workers in the order of their
  /// indices. 0 for a process that is none of them.
  int replica_rank() const noexcept;

  std::vector<std::string> jobs() const;
  /// By job, then by index.
  std::vector<Task> tasks() const;
  std::size_t num_tasks() const noexcept { return addresses_.size(); }
  /// 0 for a job that is not there.
  std::size_t num_tasks(std::string_view job) const noexcept;
  /// Of a job's tasks, in order.
  std::vector<int> indices(std::string_view job) const;
  /// Errors: NotFound, with the jobs that there are.
  const std::string& address(std::string_view job, int index) const;

  const std::string& secret() const noexcept { return secret_; }
  bool is_insecure() const noexcept { return is_insecure_; }
  /// Where this task listens: what was said, else its address; empty for a client.
  std::string bind_address() const;

  /// "/job:worker/replica:0/task:1"
  static std::string task_name(std::string_view job, int index);

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;

 private:
  void read_jobs(std::string_view text);
  void read_line(std::string_view line);
  bool has(std::string_view job, int index) const noexcept;

  std::map<std::string, std::map<int, std::string>, std::less<>> jobs_;
  std::set<std::string, std::less<>> addresses_;
  std::string job_;
  int index_ = 0;
  std::string secret_;
  bool is_insecure_ = false;
  std::string bind_address_;
};

namespace detail {

/// The hosts of Slurm's short form: "a,n[01-03,7]x[0-1]" is a, n01x0, n01x1, n02x0, ... Errors: InvalidArgument, also
/// for more than ClusterSpec::max_tasks.
std::vector<std::string> expand_node_list(std::string_view text);

}  // namespace detail

}  // namespace dflow::net
