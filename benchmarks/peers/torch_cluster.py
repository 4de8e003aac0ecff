"""PyTorch's all_reduce over gloo, on loopback: the members of the rows of benchmarks/contest_cluster.cpp.

usage, by itself alone: torch_cluster.py RANK MEMBERS PORT BYTES THREADS
"""
import os
import socket
import statistics
import subprocess
import sys
import time


class AllReduce:
    """`AllReduce(...)(seconds)` is the seconds that one takes, all members in processes of their own."""

    def __init__(self, members, count_bytes, threads):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.members = [subprocess.Popen([sys.executable, __file__, str(rank), str(members), str(port), str(count_bytes),
                                          str(threads)],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                        for rank in range(members)]
        self(0.0)

    def __call__(self, seconds):
        for member in self.members:
            member.stdin.write(f"{seconds}\n")
            member.stdin.flush()
        answers = [member.stdout.readline() for member in self.members]
        if not all(answers):
            raise RuntimeError("a member has ended early")
        return float(answers[0])

    def close(self):
        for member in self.members:
            member.kill()
            member.wait()


def run_member(rank, members, port, count_bytes, threads):
    import torch
    import torch.distributed as distributed
    torch.set_num_threads(threads)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    distributed.init_process_group("gloo", rank=rank, world_size=members)
    value, goes_on = torch.zeros(count_bytes // 4), torch.zeros(1)
    for line in sys.stdin:
        times, begin = [], time.perf_counter()
        while True:
            start = time.perf_counter()
            distributed.all_reduce(value)
            times.append(time.perf_counter() - start)
            goes_on.fill_(float(rank == 0 and time.perf_counter() - begin < float(line)))
            distributed.all_reduce(goes_on)
            if not goes_on.item():
                break
        print(statistics.median(times), flush=True)


if __name__ == "__main__":
    run_member(*(int(argument) for argument in sys.argv[1:]))
