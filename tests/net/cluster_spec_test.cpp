#include <dflow/net/cluster_spec.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

ClusterSpec::Environment only(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
}

ClusterSpec spec_of_flags(std::vector<std::string> arguments, std::map<std::string, std::string> variables = {},
                          bool takes_short_names = true) {
  arguments.insert(arguments.begin(), "program");
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  argv.push_back(nullptr);
  const auto read = takes_short_names ? &ClusterSpec::from_flags : &ClusterSpec::from_prefixed_flags;
  return read(static_cast<int>(arguments.size()), argv.data(), only(std::move(variables)));
}

/// A file that lives as long as this.
class SpecFile {
 public:
  explicit SpecFile(std::string_view content) {
    std::string path = (std::filesystem::temp_directory_path() / "dflow_cluster_spec_XXXXXX").string();
    const int descriptor = ::mkstemp(path.data());
    REQUIRE(descriptor >= 0);
    path_ = path;
    std::FILE* file = ::fdopen(descriptor, "wb");
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
  }
  ~SpecFile() { std::filesystem::remove(path_); }
  SpecFile(const SpecFile&) = delete;
  SpecFile& operator=(const SpecFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string parse_error(std::string_view text) {
  return error_of([&] { return ClusterSpec::parse(text); });
}
std::string flags_error(std::vector<std::string> arguments, std::map<std::string, std::string> variables = {}) {
  return error_of([&] { return spec_of_flags(arguments, variables); });
}
std::string tf_config_error(std::string_view text) {
  return error_of([&] { return ClusterSpec::from_tf_config(text); });
}
std::string slurm_error(std::map<std::string, std::string> variables, const TaskLayout& layout = {}) {
  return error_of([&] { return ClusterSpec::from_slurm(only(variables), layout); });
}

constexpr std::string_view long_secret = "0123456789abcdef0123456789abcdef";

const std::map<std::string, std::string> three_nodes{{"SLURM_JOB_NODELIST", "gpu[08-10],login"},
                                                     {"SLURM_NTASKS", "7"},
                                                     {"SLURM_TASKS_PER_NODE", "2(x3),1"},
                                                     {"SLURM_STEP_ID", "0"},
                                                     {"SLURM_PROCID", "3"}};

std::map<std::string, std::string> with(std::map<std::string, std::string> variables, const std::string& name,
                                        const std::string& value) {
  variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("a cluster's text names its jobs, tasks and addresses", "[net]") {
  const ClusterSpec spec = ClusterSpec::parse(
      "# comment\n\n ps = 10.0.0.1:2222 , 10.0.0.2:2222\r\nworker=a:1,b:1,5=c:1,d:1\ntask worker 5\nbind "
      "0.0.0.0:7\ninsecure");
  CHECK(spec.jobs() == std::vector<std::string>{"ps", "worker"});
  CHECK(spec.num_tasks() == 6);
  CHECK(spec.num_tasks("worker") == 4);
  CHECK(spec.num_tasks("chief") == 0);
  CHECK(spec.indices("worker") == std::vector<int>{0, 1, 5, 6});
  CHECK(spec.address("ps", 1) == "10.0.0.2:2222");
  CHECK(spec.address("worker", 6) == "d:1");
  CHECK(spec.job() == "worker");
  CHECK(spec.task_index() == 5);
  CHECK(spec.task_name() == "/job:worker/replica:0/task:5");
  CHECK(spec.bind_address() == "0.0.0.0:7");
  CHECK(spec.is_insecure());
  CHECK(spec.tasks()[2] == ClusterSpec::Task{"worker", 0, "/job:worker/replica:0/task:0", "a:1"});
}

TEST_CASE("a cluster's text reads back as the same cluster", "[net]") {
  for (const char* text :
       {"", "ps=a:1", "task=a:1\nbind=b:1\nsecret_file=c:1\ntask task 0", "worker=3=a:1,b:1,9=c:1\ntask worker 4",
        "ps=a:1;worker=b:1,c:1\ntask evaluator 0\ninsecure\nbind [::1]:5", "w=2147483647=a:1,b:1"}) {
    const ClusterSpec spec = ClusterSpec::parse(text);
    CAPTURE(text, spec.to_string());
    CHECK(ClusterSpec::parse(spec.to_string()) == spec);
    CHECK(ClusterSpec::parse(spec.jobs_to_string()).tasks() == spec.tasks());
  }
}

TEST_CASE("a cluster's text has a number where tasks do not follow each other", "[net]") {
  const auto text = [](const char* jobs) { return ClusterSpec::parse(jobs).jobs_to_string(); };
  CHECK(text("ps=0=a:1,1=b:1,2=c:1;worker=d:1") == "ps=a:1,b:1,c:1;worker=d:1");
  CHECK(text("w=2=a:1,b:1,7=c:1,8=d:1") == "w=2=a:1,b:1,7=c:1,d:1");
}

TEST_CASE("a cluster's errors quote what is wrong", "[net]") {
  CHECK(contains(parse_error("\nps=a:1\nworkers"), "line 3: 'workers' is not of the form"));
  CHECK(contains(parse_error("9ps=a:1"), "'9ps' is no job"));
  CHECK(contains(parse_error(std::string(65, 'p') + "=a:1"), "is no job"));
  CHECK(contains(parse_error("ps=a:1,,b:1"), "'' is no address"));
  CHECK(contains(parse_error("ps="), "'' is no address"));
  CHECK(contains(parse_error("ps=a b"), "'a b' is no address"));
  CHECK(contains(parse_error("ps=" + std::string(256, 'a')), "is no address"));
  CHECK(contains(parse_error("ps=a:1,b:1;worker=a:1"),
                 "address 'a:1' of /job:worker/replica:0/task:0 is another task's"));
  CHECK(contains(parse_error("ps=a:1,0=b:1"), "task /job:ps/replica:0/task:0 stands twice"));
  CHECK(contains(parse_error("ps=a:1\nps=b:1"), "job 'ps' stands twice"));
  CHECK(contains(parse_error("ps=-1=a:1"), "'-1' is no index"));
  CHECK(contains(parse_error("ps=4294967296=a:1"), "'4294967296' is no index"));
  CHECK(contains(parse_error("ps=a:1\ntask ps 1"), "index 1 is none of the 1 of job 'ps'"));
  CHECK(contains(parse_error("ps=a:1\ntask worker 0"), "'worker' is not in the cluster, whose jobs are ps"));
  CHECK(contains(parse_error("task ps"), "'task ps' is not of the form"));
  CHECK(contains(parse_error("task ps 0\ntask ps 0"), "'task' stands twice"));
  CHECK(contains(parse_error("insecure\ninsecure"), "stands twice"));
  CHECK(contains(parse_error("secret_file"), "names no file"));
  CHECK(contains(parse_error("ps=\x01:1"), "'?:1' is no address"));
}

TEST_CASE("a cluster has a bounded number of tasks", "[net]") {
  std::string text = "w=0:1";
  for (std::size_t i = 1; i < ClusterSpec::max_tasks; ++i) text += "," + std::to_string(i) + ":1";
  CHECK(ClusterSpec::parse(text).num_tasks() == ClusterSpec::max_tasks);
  CHECK(contains(parse_error(text + ",x:1"), "more than 100000 tasks"));
}

TEST_CASE("a refused change leaves a cluster as it was", "[net]") {
  ClusterSpec spec = ClusterSpec::parse("ps=a:1\ntask ps 0");
  const ClusterSpec before = spec;
  CHECK(code_of([&] { return spec.add_task("worker", 0, "a:1"), 0; }) == Code::invalid_argument);
  CHECK(code_of([&] { return spec.add_task("ps", 0, "b:1"), 0; }) == Code::invalid_argument);
  CHECK(code_of([&] { return spec.add_task("ps", -1, "b:1"), 0; }) == Code::invalid_argument);
  CHECK(code_of([&] { return spec.set_task("ps", 1), 0; }) == Code::invalid_argument);
  CHECK(code_of([&] { return spec.set_secret("short"), 0; }) == Code::invalid_argument);
  CHECK(code_of([&] { return spec.set_bind_address("a b"), 0; }) == Code::invalid_argument);
  CHECK(spec == before);
  CHECK(status_of([&] { return spec.address("ps", 3); }).code() == Code::not_found);
  CHECK(mentions(status_of([&] { return spec.address("worker", 0); }), "there are ps (1)"));
}

TEST_CASE("one task is the chief", "[net]") {
  CHECK(ClusterSpec::parse("worker=a:1,b:1\ntask worker 0").is_chief());
  CHECK_FALSE(ClusterSpec::parse("worker=a:1,b:1\ntask worker 1").is_chief());
  CHECK_FALSE(ClusterSpec::parse("worker=a:1;chief=b:1\ntask worker 0").is_chief());
  CHECK(ClusterSpec::parse("worker=a:1;chief=b:1\ntask chief 0").is_chief());
  CHECK(ClusterSpec::parse("worker=a:1;master=b:1\ntask master 0").is_chief());
  CHECK_FALSE(ClusterSpec::parse("worker=a:1").is_chief());
  CHECK(ClusterSpec::local().is_chief());
}

TEST_CASE("a cluster of this process alone has no address, unless it is given one", "[net]") {
  const ClusterSpec local = ClusterSpec::local();
  CHECK(local.is_local());
  CHECK(local.task_name() == "/job:localhost/replica:0/task:0");
  CHECK(local.bind_address().empty());
  CHECK(ClusterSpec::parse(local.to_string()) == local);
  const ClusterSpec bound = spec_of_flags({"--bind", "unix:///run/program"});
  CHECK(bound.is_local());
  CHECK(bound.bind_address() == "unix:///run/program");
  CHECK_FALSE(ClusterSpec::parse("ps=a:1").is_local());
  CHECK_FALSE(ClusterSpec::parse("ps=none,a:1").is_local());
  CHECK_FALSE(ClusterSpec().is_local());
}

TEST_CASE("a client is no task, and an evaluator none of the cluster's", "[net]") {
  const ClusterSpec client = ClusterSpec::parse("ps=a:1");
  CHECK_FALSE(client.has_task());
  CHECK(client.task_name().empty());
  CHECK(client.bind_address().empty());
  const ClusterSpec evaluator = ClusterSpec::parse("ps=a:1\ntask evaluator 0");
  CHECK(evaluator.task_name() == "/job:evaluator/replica:0/task:0");
  CHECK(evaluator.bind_address().empty());
}

TEST_CASE("flags say who is in the cluster, in either form, and leave others alone", "[net]") {
  const ClusterSpec expected = ClusterSpec::parse("ps=a:1;worker=b:1,c:1\ntask worker 1");
  CHECK(spec_of_flags({"--dflow_cluster=ps=a:1;worker=b:1,c:1", "--job=worker", "--task=1"}) == expected);
  CHECK(spec_of_flags({"--verbose", "--dflow_cluster", "ps=a:1;worker=b:1,c:1", "in.txt", "--job", "worker", "--rate=1",
                       "--task", "1"}) == expected);
  CHECK(spec_of_flags({"--dflow_cluster=ps=a:1;worker=b:1,c:1", "--dflow_job=worker", "--dflow_task=1"}) == expected);
  CHECK(spec_of_flags({"--", "--dflow_cluster=x"}) == ClusterSpec::local());
  CHECK(spec_of_flags({"--cluster=none of ours", "-job", "task"}) == ClusterSpec::local());
  CHECK(spec_of_flags({"--dflow_cluster=ps=a:1;worker=b:1,c:1", "--job=ps"}).task_index() == 0);
  const ClusterSpec bound = spec_of_flags({"--dflow_cluster=ps=a:1", "--job=ps", "--bind=0.0.0.0:3", "--insecure"});
  CHECK(bound.bind_address() == "0.0.0.0:3");
  CHECK(bound.is_insecure());
  CHECK_FALSE(spec_of_flags({"--insecure=false"}).is_insecure());
}

TEST_CASE("a program may have flags of the names that the cluster's have without a prefix", "[net]") {
  const ClusterSpec expected = spec_of_flags({"--dflow_cluster=ps=a:1;worker=b:1,c:1", "--job=worker", "--task=1"});
  CHECK(spec_of_flags({"--task=sort", "--dflow_cluster=ps=a:1;worker=b:1,c:1", "--dflow_job=worker", "--dflow_task=1",
                       "--job", "--task"}) == expected);
  CHECK(spec_of_flags({"--dflow_job=worker", "--job=x", "--task=1", "--dflow_cluster=ps=a:1;worker=b:1,c:1"}) ==
        expected);
  CHECK(spec_of_flags({"--task=sort"}) == ClusterSpec::local());
  CHECK(contains(flags_error({"--dflow_task=1"}), "without --job"));
  CHECK(contains(flags_error({"--dflow_task=1", "--dflow_task=1"}), "--task stands twice"));
  const std::vector<std::string> own{
      "--job=sort", "--task=7", "--bind", "--insecure=perhaps", "--secret_file=/none", "--cluster_file=/none"};
  CHECK(spec_of_flags(own, {}, false) == ClusterSpec::local());
  std::vector<std::string> both{"--dflow_cluster=ps=a:1;worker=b:1,c:1", "--dflow_job", "worker", "--dflow_task", "1"};
  both.insert(both.end(), own.begin(), own.end());
  CHECK(spec_of_flags(both, {}, false) == expected);
  CHECK(error_of([&] { spec_of_flags({"--dflow_jbo=ps"}, {}, false); }).find("is none of dflow's") !=
        std::string::npos);
}

TEST_CASE("flags that contradict one another are refused", "[net]") {
  CHECK(contains(flags_error({"--dflow_cluster=ps=a:1", "--dflow_cluster=ps=a:1"}), "--cluster stands twice"));
  CHECK(contains(flags_error({"--dflow_cluster=ps=a:1", "--cluster_file=x"}), "both"));
  CHECK(contains(flags_error({"--dflow_cluster"}), "has no value"));
  CHECK(contains(flags_error({"--dflow_cluster="}), "has no value"));
  CHECK(contains(flags_error({"--dflow_cluster", "--job=ps"}), "has no value"));
  CHECK(contains(flags_error({"--dflow_cluster=ps=a:1", "--task=0"}), "without --job"));
  CHECK(contains(flags_error({"--dflow_cluster=ps=a:1", "--job=ps", "--task=one"}), "--task is 'one'"));
  CHECK(contains(flags_error({"--dflow_cluster=ps=a:1", "--job=ps", "--task=1"}), "index 1"));
  CHECK(contains(flags_error({"--dflow_cluster=ps=a:1,b:1", "--job=ps"}), "has 2 tasks"));
  CHECK(contains(flags_error({"--insecure=maybe"}), "'maybe'"));
  CHECK(contains(flags_error({"--dflow_clutser=ps=a:1"}), "'--dflow_clutser' is none of dflow's"));
  CHECK(contains(flags_error({"--dflow_secert_file", "x"}), "--dflow_secret_file"));
  CHECK_NOTHROW(spec_of_flags({"--clutser=ps=a:1", "--", "--dflow_clutser"}));  // the program's own
  CHECK(code_of([] { return spec_of_flags({"--cluster_file=/nowhere/at/all"}); }) == Code::not_found);
  CHECK(code_of([] { return spec_of_flags({"--secret_file=/nowhere/at/all"}); }) == Code::not_found);
}

TEST_CASE("the secret comes from a file or the environment and is never shown", "[net]") {
  const SpecFile file(std::string(long_secret) + "\n");
  CHECK(spec_of_flags({"--secret_file", file.path()}).secret() == long_secret);
  CHECK(spec_of_flags({}, {{"DFLOW_SECRET_FILE", file.path()}}).secret() == long_secret);
  CHECK(spec_of_flags({}, {{"DFLOW_SECRET", std::string(long_secret)}}).secret() == long_secret);
  CHECK(spec_of_flags({"--secret_file=" + file.path()}, {{"DFLOW_SECRET", "another secret, of the environment"}})
            .secret() == long_secret);
  const ClusterSpec spec = ClusterSpec::parse("ps=a:1\nsecret_file " + file.path());
  CHECK(spec.secret() == long_secret);
  CHECK_FALSE(contains(spec.to_string(), long_secret));
  const SpecFile short_file("hunter2\n");
  const std::string message = flags_error({"--secret_file=" + short_file.path()});
  CHECK(contains(message, "16 to 4096 bytes"));
  CHECK_FALSE(contains(message, "hunter2"));
  const SpecFile empty_file("\n");
  CHECK(contains(flags_error({"--secret_file=" + empty_file.path()}), "is empty"));
  const SpecFile large_file(std::string(5000, 's'));
  CHECK(code_of([&] { return spec_of_flags({"--secret_file=" + large_file.path()}); }) == Code::resource_exhausted);
}

TEST_CASE("a file holds a cluster in either form", "[net]") {
  const SpecFile lines("ps=a:1\nworker=b:1\ntask ps 0\n");
  CHECK(spec_of_flags({"--cluster_file=" + lines.path()}) == ClusterSpec::parse("ps=a:1;worker=b:1\ntask ps 0"));
  CHECK(spec_of_flags({"--cluster_file=" + lines.path(), "--job=worker"}).task_name() ==
        "/job:worker/replica:0/task:0");
  const SpecFile bad("ps=a:1,a:1\n");
  CHECK(contains(flags_error({"--cluster_file=" + bad.path()}), bad.path()));
  const SpecFile json("\n {\"cluster\": {\"ps\": [\"a:1\"]}}");
  CHECK(ClusterSpec::from_file(json.path()) == ClusterSpec::parse("ps=a:1"));
}

TEST_CASE("TF_CONFIG is read in TensorFlow's form", "[net]") {
  const std::string_view text =
      R"({"cluster": {"chief": ["c:1"], "worker": ["w0:1", "w1:1"], "ps": ["p:1"]},
          "task": {"type": "worker", "index": 1}, "environment": "cloud", "rpc_layer": "grpc"})";
  const ClusterSpec expected = ClusterSpec::parse("chief=c:1;worker=w0:1,w1:1;ps=p:1\ntask worker 1");
  CHECK(ClusterSpec::from_tf_config(text) == expected);
  CHECK(ClusterSpec::from_environment(only({{"TF_CONFIG", std::string(text)}, {"SLURM_PROCID", "0"}})) == expected);
  CHECK(ClusterSpec::from_tf_config(
            R"({"cluster": {"worker": {"3": "a:1", "1": "b:1"}}, "task": {"type": "worker", "index": "3"}})") ==
        ClusterSpec::parse("worker=1=b:1,3=a:1\ntask worker 3"));
  CHECK(ClusterSpec::from_tf_config(R"({"cluster": {"master": ["a:1"]}, "task": {"type": "evaluator", "index": 0}})")
            .job() == "evaluator");
  CHECK_FALSE(ClusterSpec::from_tf_config(R"({"cluster": {"ps": ["a:1"]}})").has_task());
  CHECK(ClusterSpec::from_tf_config("{}") == ClusterSpec::local());
  CHECK(ClusterSpec::from_tf_config(R"({"task": {"type": "worker"}, "environment": "x"})") == ClusterSpec::local());
  CHECK(ClusterSpec::from_tf_config(R"({"cluster": {}, "task": {}})") == ClusterSpec::local());
  CHECK(ClusterSpec::from_tf_config(R"({"session_master": "grpc://x:1"})") == ClusterSpec::local());
}

TEST_CASE("a TF_CONFIG without an index is of the only task of its job", "[net]") {
  const auto spec_of = [](std::string_view type) {
    return ClusterSpec::from_tf_config(str_cat(
        R"({"cluster": {"chief": ["a:1"], "ps": {"4": "b:1"}, "worker": ["c:1", "d:1", "e:1"]}, "task": {"type": ")",
        type, R"("}})"));
  };
  CHECK(spec_of("chief").task_name() == ClusterSpec::task_name("chief", 0));
  CHECK(spec_of("ps").task_name() == ClusterSpec::task_name("ps", 4));
  CHECK(spec_of("evaluator").task_name() == ClusterSpec::task_name("evaluator", 0));
  const std::string error = error_of([&] { spec_of("worker"); });
  CHECK(contains(error, "INVALID_ARGUMENT"));
  CHECK(contains(error, "'task' has no 'index', and job 'worker' has 3 tasks"));
  CHECK(contains(error_of([&] { spec_of("trainer"); }), "'trainer'"));
}

TEST_CASE("a TF_CONFIG that is none is refused by name", "[net]") {
  CHECK(contains(tf_config_error("{"), "no JSON"));
  CHECK(contains(tf_config_error("[]"), "an object is due, not array"));
  CHECK(contains(tf_config_error(R"({"cluster": 1})"), "'cluster' is no object but number"));
  CHECK(contains(tf_config_error(R"({"cluster": {"ps": "a:1"}})"), "job 'ps' is no list"));
  CHECK(contains(tf_config_error(R"({"cluster": {"ps": [1]}})"), "an address of job 'ps' is no text but number"));
  CHECK(contains(tf_config_error(R"({"cluster": {"ps": {"x": "a:1"}}})"), "'x' of job 'ps'"));
  CHECK(contains(tf_config_error(R"({"cluster": {"ps": ["a:1"], "ps": ["b:1"]}})"), "member 'ps' stands twice"));
  CHECK(contains(tf_config_error(R"({"cluster": {"ps": ["a:1"]}, "task": {"index": 0}})"), "no 'type'"));
  CHECK(contains(tf_config_error(R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": -1}})"), "no index"));
  CHECK(contains(tf_config_error(R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 2}})"), "index 2"));
  CHECK(
      contains(tf_config_error(R"({"cluser": {"ps": ["a:1"]}})"), "there is no 'cluster', and 'cluser' is not known"));
  CHECK(contains(tf_config_error(std::string(100'000, '[')), "nested deeper"));
  CHECK(contains(tf_config_error(R"({"cluster": {"ps": ["\u0000"]}})"), "is no address"));
  CHECK(contains(error_of([] { return ClusterSpec::from_environment(only({{"TF_CONFIG", "x"}})); }), "TF_CONFIG: "));
}

TEST_CASE("Slurm's node lists are expanded in order, with their zeros", "[net]") {
  using List = std::vector<std::string>;
  CHECK(net::detail::expand_node_list("a") == List{"a"});
  CHECK(net::detail::expand_node_list("a,b-1") == List{"a", "b-1"});
  CHECK(net::detail::expand_node_list("n[8-10]") == List{"n8", "n9", "n10"});
  CHECK(net::detail::expand_node_list("n[008-010,12],m") == List{"n008", "n009", "n010", "n12", "m"});
  CHECK(net::detail::expand_node_list("r[0-1]n[1-2].x,l") == List{"r0n1.x", "r0n2.x", "r1n1.x", "r1n2.x", "l"});
  for (const char* bad : {"", ",", "a,", "n[", "n]", "n[[1]]", "n[]", "n[2-1]", "n[1-]", "n[-1]", "n[a]", "n[1-2-3]",
                          "a b", "n[0-100000]", "n[0-999]m[0-999]", "n[4294967296]", "n[00000000001]"}) {
    CAPTURE(bad);
    CHECK(contains(error_of([&] { return net::detail::expand_node_list(bad); }), "node list '"));
  }
}

TEST_CASE("a step of Slurm is a cluster", "[net]") {
  const ClusterSpec spec = ClusterSpec::from_slurm(only(three_nodes), {.ps = 2, .has_chief = true, .port = 5000});
  CHECK(spec == ClusterSpec::parse("ps=gpu08:5000,gpu08:5001;chief=gpu09:5000;"
                                   "worker=gpu09:5001,gpu10:5000,gpu10:5001,login:5000\ntask worker 0"));
  const auto variables = with(three_nodes, "DFLOW_NUM_PS", "0");
  CHECK(ClusterSpec::from_environment(only(with(variables, "DFLOW_CHIEF", "0"))).task_name() ==
        "/job:worker/replica:0/task:3");
  CHECK(ClusterSpec::from_environment(only(with(three_nodes, "SLURM_NTASKS", "1"))) == ClusterSpec::local());
  auto without = three_nodes;
  without.erase("SLURM_NTASKS");
  CHECK(ClusterSpec::from_environment(only(with(without, "SLURM_NPROCS", "7"))).num_tasks() == 7);
  CHECK(ClusterSpec::from_environment(only(with(without, "SLURM_NPROCS", "1"))) == ClusterSpec::local());
  // The step's own variables come before the job's.
  auto step = three_nodes;
  step["SLURM_STEP_NODELIST"] = "gpu10";
  step["SLURM_STEP_NUM_TASKS"] = "4";
  step["SLURM_STEP_TASKS_PER_NODE"] = "4";
  CHECK(ClusterSpec::from_slurm(only(step)).address("worker", 1) == "gpu10:2225");
}

// A batch script has the job's variables, and the rank 0, before it calls srun.
TEST_CASE("a process of a Slurm job that no step runs is told of srun", "[net]") {
  std::map<std::string, std::string> script = three_nodes;
  script.erase("SLURM_STEP_ID");
  for (const std::string& error :
       {slurm_error(script), error_of([&] { ClusterSpec::from_environment(only(script)); })}) {
    CHECK(contains(error, "INVALID_ARGUMENT"));
    CHECK(contains(error, "SLURM_NTASKS is 7, but no step of Slurm runs this process: start the program by srun"));
  }
  CHECK(ClusterSpec::from_environment(only(with(script, "SLURM_NTASKS", "1"))) == ClusterSpec::local());
  for (const char* of_step : {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NUM_TASKS"}) {
    CHECK(ClusterSpec::from_slurm(only(with(script, of_step, "7"))).num_tasks() == 7);
  }
}

TEST_CASE("what Slurm says must agree with itself", "[net]") {
  CHECK(contains(slurm_error({}), "no SLURM_STEP_NODELIST"));
  CHECK(contains(slurm_error(with(three_nodes, "SLURM_NTASKS", "8")), "SLURM_NTASKS is 8"));
  CHECK(contains(slurm_error(with(three_nodes, "SLURM_TASKS_PER_NODE", "2(x3)")), "on 3 nodes, and there are 4"));
  for (const char* bad : {"2(x", "2(x3", "2(x0)", "(x2)", "2,", "x", "2(x999999)", "999999"}) {
    CAPTURE(bad);
    CHECK(contains(slurm_error(with(three_nodes, "SLURM_TASKS_PER_NODE", bad)), "not of the form '2(x3),1'"));
  }
  CHECK(contains(slurm_error(with(three_nodes, "SLURM_PROCID", "7")), "SLURM_PROCID is '7'"));
  CHECK(contains(slurm_error(with(three_nodes, "SLURM_NODEID", "2")), "--distribution=block"));
  CHECK(contains(slurm_error(three_nodes, {.ps = 7}), "too few for 7 ps and a chief"));
  CHECK(contains(slurm_error(three_nodes, {.port = 65535}), "has no port 65536"));
}

TEST_CASE("replicas are the chief and the workers, and each has a rank of its own", "[net]") {
  const auto rank = [](const std::string& jobs, const std::string& job, int index) {
    ClusterSpec spec = ClusterSpec::parse(jobs);
    spec.set_task(job, index);
    return spec.replica_rank();
  };
  const std::string with_chief = "ps=a:1;chief=b:1;worker=c:1,4=d:1";
  CHECK(ClusterSpec::parse(with_chief).num_replicas() == 3);
  CHECK(rank(with_chief, "chief", 0) == 0);
  CHECK(rank(with_chief, "worker", 0) == 1);
  CHECK(rank(with_chief, "worker", 4) == 2);
  CHECK(rank(with_chief, "ps", 0) == 0);
  CHECK(rank(with_chief, "evaluator", 0) == 0);
  CHECK(rank("master=b:1;worker=c:1", "worker", 0) == 1);
  CHECK(rank("ps=a:1;worker=c:1,d:1", "worker", 1) == 1);
  CHECK(ClusterSpec::parse("ps=a:1;worker=c:1,d:1").num_replicas() == 2);
  CHECK(ClusterSpec::local().num_replicas() == 1);
  CHECK(ClusterSpec::local().replica_rank() == 0);
  CHECK(ClusterSpec().num_replicas() == 1);
}

TEST_CASE("an indexed job of Kubernetes is a cluster", "[net]") {
  const std::map<std::string, std::string> pod{{"JOB_COMPLETION_INDEX", "2"},
                                               {"DFLOW_KUBERNETES_SERVICE", "net"},
                                               {"DFLOW_KUBERNETES_PODS", "3"},
                                               {"HOSTNAME", "train-2"}};
  const ClusterSpec expected =
      ClusterSpec::parse("ps=train-0.net:2222;chief=train-1.net:2222;worker=train-2.net:2222\ntask worker 0");
  CHECK(ClusterSpec::from_kubernetes(only(pod)) == expected);
  CHECK(ClusterSpec::from_environment(only(pod)) == expected);
  CHECK(ClusterSpec::from_environment(only(with(with(pod, "HOSTNAME", "else"), "DFLOW_KUBERNETES_JOB", "train"))) ==
        expected);
  const auto error = [&](const std::string& name, const std::string& value) {
    return error_of([&] { return ClusterSpec::from_kubernetes(only(with(pod, name, value))); });
  };
  CHECK(contains(error("HOSTNAME", "train-1"), "HOSTNAME is 'train-1'"));
  CHECK(contains(error("JOB_COMPLETION_INDEX", "3"), "'3', not a number of 0 to 2"));
  CHECK(contains(error("DFLOW_KUBERNETES_PODS", "0"), "DFLOW_KUBERNETES_PODS is '0'"));
  CHECK(contains(error("DFLOW_KUBERNETES_SERVICE", ""), "no DFLOW_KUBERNETES_SERVICE"));
  CHECK(contains(error("DFLOW_KUBERNETES_SERVICE", "a b"), "is no address"));
  // Half of a cluster's settings is an error: the program does not run alone.
  const auto found = [&](const std::string& name, const std::string& value) {
    return error_of([&] { return ClusterSpec::from_environment(only(with(pod, name, value))); });
  };
  CHECK(contains(found("DFLOW_KUBERNETES_PODS", ""), "no DFLOW_KUBERNETES_PODS"));
  CHECK(contains(found("DFLOW_KUBERNETES_SERVICE", ""), "no DFLOW_KUBERNETES_SERVICE"));
  CHECK(ClusterSpec::from_environment(only(with(pod, "DFLOW_KUBERNETES_PODS", "1"))) == ClusterSpec::local());
}

TEST_CASE("the environment of a process is read by name", "[net]") {
  CHECK_FALSE(ClusterSpec::process_environment("DFLOW_A_NAME_THAT_NOBODY_SETS"));
  CHECK(ClusterSpec::process_environment("PATH") == std::string(std::getenv("PATH")));
}
