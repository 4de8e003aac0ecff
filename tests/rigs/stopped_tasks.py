#!/usr/bin/env python3
"""Tasks of a cluster that trains in step are stopped, moved and replaced; what comes out is compared with an undisturbed run.

usage: stopped_tasks.py [--steps N] [--only NAME] PROGRAM

PROGRAM is the example backup_workers. What is tried:
  stopped_backup  a backup worker is stopped (SIGSTOP): steps continue; it goes on after SIGCONT, and ends with the others
  killed_backup   a backup worker is killed (SIGKILL): steps continue; another one takes its place, and ends with the others
  moved_chief     the chief is killed, and a replacement at another address goes on from the last checkpoint, digit for digit
  old_worker      a worker is stopped, replaced by one at another address, and goes on: it is not let in, and the result is
                  that of the undisturbed run, digit for digit
"""

import argparse
import signal
import sys
import tempfile

from cluster_tasks import Cluster, free_ports

WORKERS = 3


def loss_of(chief):
    losses = [line for line in chief.lines if line.startswith("test loss")]
    if not losses:
        raise SystemExit("the chief has printed no test loss:\n" + "\n".join(chief.lines[-20:]))
    return losses[-1]


class Trial:
    def __init__(self, args):
        self.args = args
        self.undisturbed_loss = None

    def train(self, disturb, *flags):
        """The chief's test loss after a run in which `disturb(cluster)` does what it likes, and returns who must end well."""
        with tempfile.TemporaryDirectory() as checkpoints:
            steps = ["--steps", str(self.args.steps), "--save_every", "20", *flags]
            cluster = Cluster(self.args.program, 1, WORKERS, steps, checkpoints, [])
            try:
                cluster.start(("ps", 0))
                for i in range(WORKERS):
                    cluster.start(("worker", i))
                cluster.wait_for_steps(20)
                disturb(cluster)
                for i in range(WORKERS):
                    task = cluster.tasks["worker", i]
                    cluster.wait_for(f"the end of worker {i}", task.has_ended, self.args.timeout)
                    task.reader.join()
                    if task.process.returncode != 0:
                        raise SystemExit(f"worker {i} has failed:\n" + "\n".join(cluster.log[-60:]))
                return loss_of(cluster.tasks["worker", 0])
            finally:
                cluster.end()

    def compare(self, loss):
        if self.undisturbed_loss is None:
            self.undisturbed_loss = self.train(lambda cluster: None)
        if loss != self.undisturbed_loss:
            sys.exit(f"{loss}, undisturbed {self.undisturbed_loss}")
        return f"{loss}, as undisturbed"

    def stopped_backup(self):
        def disturb(cluster):
            backup = cluster.tasks["worker", WORKERS - 1]
            for more in (40, 200):
                backup.send(signal.SIGSTOP)
                begun = cluster.saved_step()
                cluster.wait_for_steps(more)
                print(f"  steps {begun} to {cluster.saved_step()} without it", flush=True)
                backup.send(signal.SIGCONT)
                cluster.wait_for_steps(20)

        return self.train(disturb, "--backups", "1")

    def killed_backup(self):
        def disturb(cluster):
            cluster.tasks["worker", WORKERS - 1].end(signal.SIGKILL)
            begun = cluster.saved_step()
            cluster.wait_for_steps(40)
            print(f"  steps {begun} to {cluster.saved_step()} without it", flush=True)
            cluster.start(("worker", WORKERS - 1))
            cluster.wait_for_steps(20)

        return self.train(disturb, "--backups", "1")

    def moved_chief(self):
        def disturb(cluster):
            cluster.tasks["worker", 0].end()
            cluster.start(("worker", 0), addresses={("worker", 0): f"127.0.0.1:{free_ports(1)[0]}"})

        return self.compare(self.train(disturb))

    def old_worker(self):
        def disturb(cluster):
            old = cluster.tasks["worker", 1]
            old.send(signal.SIGSTOP)
            cluster.start(("worker", 1), addresses={("worker", 1): f"127.0.0.1:{free_ports(1)[0]}"})
            cluster.wait_for_steps(40)
            old.send(signal.SIGCONT)
            ps = cluster.tasks["ps", 0]
            refused = "has been started anew since this one was started"
            cluster.wait_for("the old worker is refused", lambda: ps.has_said(refused), 60)

        return self.compare(self.train(disturb))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--timeout", type=float, default=200, help="seconds for one run")
    parser.add_argument("--only", choices=("stopped_backup", "killed_backup", "moved_chief", "old_worker"))
    parser.add_argument("program")
    args = parser.parse_args()
    trial = Trial(args)
    for name in ("stopped_backup", "killed_backup", "moved_chief", "old_worker"):
        if args.only in (None, name):
            print(f"{name}: {getattr(trial, name)()}", flush=True)


if __name__ == "__main__":
    main()
