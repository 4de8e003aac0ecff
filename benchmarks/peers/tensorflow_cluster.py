"""TensorFlow's cluster: the null steps of benchmarks/contest_cluster.cpp, and the tasks that run them.

usage, by itself alone: tensorflow_cluster.py JOB INDEX CLUSTER_JSON KIND THREADS
"""
import json
import os
import socket
import subprocess
import sys
import time

ALL_DENSE, ALL_ROWS = 25_000_000, 1_000_000


class Cluster:
    """`Cluster(...)(seconds)` is the seconds of a step, all workers running at once."""

    def __init__(self, kind, ps, workers, threads):
        sockets = [socket.socket() for _ in range(ps + workers)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
        for each in sockets:
            each.close()
        spec = json.dumps({"ps": addresses[:ps], "worker": addresses[ps:]})
        self.tasks = [subprocess.Popen([sys.executable, __file__, job, str(index), spec, kind, str(threads)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                      for job, count in (("ps", ps), ("worker", workers)) for index in range(count)]
        for task in self.tasks:
            self._hear(task)
        self.workers = self.tasks[ps:]
        self._tell(self.workers[0], "initialize")
        self._hear(self.workers[0])
        self(0.0)

    @staticmethod
    def _tell(task, line):
        task.stdin.write(line + "\n")
        task.stdin.flush()

    @staticmethod
    def _hear(task):
        line = task.stdout.readline()
        if not line:
            raise RuntimeError("a task has ended early")
        return line

    def __call__(self, seconds):
        for worker in self.workers:
            self._tell(worker, str(seconds))
        return len(self.workers) / sum(float(self._hear(worker)) for worker in self.workers)

    def close(self):
        for task in self.tasks:
            task.kill()
            task.wait()


def run_task(job, index, cluster, kind, threads):
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    server = tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=index, config=config)
    if job == "ps":
        print("ready", flush=True)
        server.join()
    num_ps, values = len(cluster["ps"]), []
    for i in range(num_ps):
        with tf1.device(f"/job:ps/task:{i}"):
            def variable(shape):
                return tf1.get_variable(f"v{i}", shape, tf.float32, tf1.zeros_initializer(), use_resource=False)
            if kind == "scalar":
                values.append(variable([]))
            elif kind == "dense":
                values.append(variable([ALL_DENSE // num_ps]))
            else:
                rows = ALL_ROWS // num_ps
                ids = tf.random.uniform([32], 0, rows, tf.int32, seed=1)
                values.append(tf.gather(variable([rows, 64]), ids))
    with tf1.device(f"/job:worker/task:{index}"):
        step = tf.group(*[tf.identity(value) for value in values])
    initialize = tf1.global_variables_initializer()
    print("ready", flush=True)
    session, call = None, None
    for line in sys.stdin:
        session = session or tf1.Session(server.target, config=config)
        if line.strip() == "initialize":
            session.run(initialize)
            print("done", flush=True)
            continue
        call = call or session.make_callable(step)
        duration, begin, steps, took = float(line), time.perf_counter(), 0, 0.0
        while steps == 0 or took < duration:
            call()
            steps, took = steps + 1, time.perf_counter() - begin
        print(steps / took, flush=True)


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    run_task(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
