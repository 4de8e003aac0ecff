#pragma once

/// Public: the tasks of a cluster, and their addresses.

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

/// How the ranks of a scheduler's job become tasks: the first `ps` ranks hold parameters, the next is the chief if
/// there is one, and the rest are workers.
struct TaskLayout {
  int ps = 1;
  bool has_chief = true;
  /// Port of a host's first task; its next task listens one port above.
  int port = 2222;
};

/// The members of a cluster: jobs ("ps", "worker", "chief"), the address of each task, the task of this process, and
/// its credentials. A job's indices may have gaps. The transport defines the form of an address; here an address is
/// any text of at most 255 printable characters without spaces, ',', ';', '=', '"' and '#'.
///
/// The text form, as in a file, has one item a line:
/// ```
/// # two parameter servers, workers 0, 1 and 5
/// ps=10.0.0.1:2222,10.0.0.2:2222
/// worker=10.0.0.3:2222,10.0.0.4:2222,5=10.0.0.5:2222
/// task worker 1
/// bind 0.0.0.0:2222
/// secret_file /run/secrets/dflow
/// ```
/// A flag has the jobs on one line: "ps=a:1,b:1;worker=c:1". "insecure" is a line of one word. A client that is not a
/// task leaves out "task".
///
/// Thread safety: a value type: threads may use distinct objects, and may share one object while no thread changes
/// it. Errors: all functions that read text throw InvalidArgument, which quotes the wrong text. They also throw it
/// for more than `max_tasks` tasks, an address of two tasks, or a task that is missing in its job.
class ClusterSpec {
 public:
  static constexpr std::size_t max_tasks = 100'000;
  static constexpr std::size_t max_text_bytes = 32u << 20;
  static constexpr std::size_t least_secret_bytes = 16;
  static constexpr std::size_t most_secret_bytes = 4096;

  /// A variable of the environment, or nothing.
  using Environment = std::function<std::optional<std::string>(const std::string& name)>;
  /// Reads a variable of this process's environment.
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
  /// A cluster of this process alone: "/job:localhost/replica:0/task:0". Its address is "none", so its server listens
  /// nowhere, unless `set_bind_address` names an address.
  static ClusterSpec local();

  /// Reads the command line; a flag is "--x=y" or "--x y". Flags outside the table, and all arguments behind "--",
  /// belong to the program. Each flag of the table may also be written with "dflow_" before its name: the name without
  /// it is then the program's own. So is "--task", where no cluster is named and no "--job".
  ///
  /// | flag | what |
  /// |---|---|
  /// | --dflow_cluster | the jobs: "ps=host:port,host:port;worker=host:port" |
  /// | --cluster_file | a file for from_file(), instead |
  /// | --job, --task | which task this is; the index may be left out where the job has one task |
  /// | --bind | where this task listens, if not at its own address |
  /// | --secret_file | a file with the cluster's secret |
  /// | --insecure | everybody who reaches a task may use it without a secret; "--insecure=false" takes it back |
  ///
  /// Without the first two flags, the jobs come from from_environment(). If no secret is given, it comes from the
  /// file that DFLOW_SECRET_FILE names, else from DFLOW_SECRET. No flag holds the secret itself, because every user
  /// of a machine can read the flags.
  ///
  /// May block to read files. Errors also: InvalidArgument for a flag that stands twice or has no value; errors of
  /// PosixFileSystem::read_file.
  static ClusterSpec from_flags(int argc, const char* const* argv,
                                const Environment& environment = process_environment);
  /// The same with names that begin with "dflow_" alone, for a program with a "--job" or a "--bind" of its own.
  static ClusterSpec from_prefixed_flags(int argc, const char* const* argv,
                                         const Environment& environment = process_environment);

  /// Reads a file: the form above, or the form of from_tf_config() if the file begins with '{'. May block.
  static ClusterSpec from_file(const std::string& path);

  /// Reads TF_CONFIG if it is set. Else Slurm, if SLURM_PROCID is set and there are several tasks. Else an indexed
  /// job of Kubernetes, if DFLOW_KUBERNETES_SERVICE and DFLOW_KUBERNETES_PODS are set and there are several pods.
  /// Else local(). Slurm and Kubernetes take their layout from DFLOW_NUM_PS (1), DFLOW_CHIEF (1 or 0; 1), DFLOW_PORT
  /// (2222). Errors also: InvalidArgument if only one of Kubernetes's two variables is set.
  static ClusterSpec from_environment(const Environment& environment = process_environment);

  /// TensorFlow's TF_CONFIG: {"cluster": {"ps": ["host:port"], "worker": [...]}, "task": {"type": "ps", "index": 0}}.
  /// A job may be an object of indices instead: {"worker": {"1": "host:port"}}. A missing or empty "cluster" means
  /// local(). "task" may be left out, and its index too if the job has one task. An "evaluator" need not be in the
  /// cluster. Other members are ignored. If there is no "cluster", a member that TensorFlow does not know is an
  /// error, because it may be a misspelt "cluster".
  static ClusterSpec from_tf_config(std::string_view json);

  /// A step of Slurm with ranks in blocks. Reads SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE and
  /// SLURM_STEP_NUM_TASKS, or the job's variables if the step has none (SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE,
  /// SLURM_NTASKS); SLURM_PROCID. Errors also: InvalidArgument for several tasks without a step (SLURM_STEP_ID or
  /// another variable of the step), as in a batch script that does not call srun. Also if SLURM_NODEID and
  /// SLURM_LOCALID say that ranks are not in blocks.
  static ClusterSpec from_slurm(const Environment& environment, const TaskLayout& layout = {});

  /// An indexed job of Kubernetes with a headless service for its pods: pod i is "<job>-<i>.<service>". Reads
  /// JOB_COMPLETION_INDEX (Kubernetes sets it), DFLOW_KUBERNETES_SERVICE, DFLOW_KUBERNETES_PODS and
  /// DFLOW_KUBERNETES_JOB. Without the last one, the job is HOSTNAME without its "-<i>".
  static ClusterSpec from_kubernetes(const Environment& environment, const TaskLayout& layout = {});

  /// Reads the form above, also the result of to_string(). May block if the text names a secret_file.
  static ClusterSpec parse(std::string_view text);
  /// The form above, with jobs in the order of their names and without the secret.
  std::string to_string() const;
  /// The jobs on one line, for a flag.
  std::string jobs_to_string() const;

  /// A job's name begins with a letter and goes on with letters, digits and '_', at most 64 in all.
  void add_task(std::string_view job, int index, std::string_view address);
  /// Sets the task of this process. An "evaluator" need not be in the cluster: it reads checkpoints of the other
  /// tasks.
  void set_task(std::string_view job, int index);
  /// Sets a secret of `least_secret_bytes` to `most_secret_bytes` bytes; empty for none.
  void set_secret(std::string secret);
  /// Sets the file's content, without the newline at its end, as the secret. May block.
  void read_secret_file(const std::string& path);
  /// Without a secret, allows TCP, and lets processes of other users in at Unix sockets: whoever reaches a task may run
  /// any graph there. A secret counts as before.
  void set_insecure(bool is_insecure) noexcept { is_insecure_ = is_insecure; }
  /// Sets where this task listens, if not at its own address.
  void set_bind_address(std::string_view address);

  bool is_empty() const noexcept { return addresses_.empty(); }
  /// Whether the cluster is one task that has no address, as `local()` is.
  bool is_local() const noexcept;
  /// Whether this process is a task, not only a client.
  bool has_task() const noexcept { return !job_.empty(); }
  /// Empty for a client.
  const std::string& job() const noexcept { return job_; }
  /// 0 for a client.
  int task_index() const noexcept { return index_; }
  /// "/job:worker/replica:0/task:1"; empty for a client.
  std::string task_name() const;
  /// Whether this task initialises and saves: the "chief" or "master", or worker 0 if there is neither.
  bool is_chief() const noexcept;
  /// Number of tasks that train: all tasks of the jobs "chief", "master" and "worker"; 1 if there are none.
  int num_replicas() const noexcept;
  /// Rank of this process among the tasks that train, for `SyncReplicasOptions::rank`: chiefs first, then workers in
  /// the order of their indices. 0 for a process that does not train.
  int replica_rank() const noexcept;

  std::vector<std::string> jobs() const;
  /// By job, then by index.
  std::vector<Task> tasks() const;
  std::size_t num_tasks() const noexcept { return addresses_.size(); }
  /// 0 for a job that does not exist.
  std::size_t num_tasks(std::string_view job) const noexcept;
  /// Indices of a job's tasks, in order.
  std::vector<int> indices(std::string_view job) const;
  /// Errors: NotFound, with the existing jobs.
  const std::string& address(std::string_view job, int index) const;

  const std::string& secret() const noexcept { return secret_; }
  bool is_insecure() const noexcept { return is_insecure_; }
  /// The address where this task listens: the bind address if it is set, else the task's address. Empty for a client,
  /// and for the task of `local()`.
  std::string bind_address() const;

  /// "/job:worker/replica:0/task:1"
  static std::string task_name(std::string_view job, int index);

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;

 private:
  static ClusterSpec read_flags(int argc, const char* const* argv, const Environment& environment,
                                bool takes_short_names);
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

/// Expands Slurm's short form of hosts: "a,n[01-03,7]x[0-1]" is a, n01x0, n01x1, n02x0, ... Errors: InvalidArgument,
/// also for more than ClusterSpec::max_tasks.
std::vector<std::string> expand_node_list(std::string_view text);

}  // namespace detail

}  // namespace dflow::net
