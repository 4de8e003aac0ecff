#!/usr/bin/env python3
"""Runs dflow-launch so that each task has a network and an address of its own, all joined by a bridge.

usage: tests/rigs/task_networks.py [--tasks N] [--delay 5ms] [--rate 10mbit] [--dry-run] -- dflow-launch [flags] -- program arguments

N is the number of tasks, an evaluator included. What a task sends is delayed by --delay and goes at --rate at most.
The rig makes the networks, becomes the launcher, and stands before the program of each task: there it enters the task's
network and names the addresses of these networks instead of the launcher's.

The networks have no names: each is gone when the last process that is in it, or has it open, has ended.
This takes Linux with `ip` and `tc`, and root or user namespaces. Where something is missing, the rig ends with status 2
and says what.
"""
import argparse
import ctypes
import os
import re
import subprocess
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
RIGHTS = "the right to make bridges and pairs of virtual devices (veth)"


class Missing(Exception):
    """Something that this system does not have or permit."""


def number_with_unit(text, units):
    """A number with one of `units`, as so many of the smallest. It is positive and below 2^63."""
    found = re.fullmatch(r"([0-9]+)([a-z]+)", text)
    number = int(found[1]) * units.get(found[2], 0) if found else 0
    if not 0 < number < 2**63:
        raise argparse.ArgumentTypeError(f"'{text}' is no number with one of the units {', '.join(units)}")
    return number


def delay_us(text):
    return number_with_unit(text, {"us": 1, "ms": 1000, "s": 1_000_000})


def bits_per_second(text):
    return number_with_unit(text, {"bit": 1, "kbit": 1000, "mbit": 1_000_000, "gbit": 1_000_000_000})


def host(task):
    """The address of a task's end of its wire. Nobody else is in these networks, so all addresses are free."""
    return f"10.77.{task // 250}.{task % 250 + 1}"


def plan(names, delay, rate):
    """The commands that join the empty networks `names` by a bridge: (task, or None for the bridge's network; words; what
    the system lacks where the command fails)."""
    yield None, "ip link set lo up", RIGHTS
    yield None, "ip link add dflow type bridge", RIGHTS
    yield None, "ip link set dflow up", RIGHTS
    for task, name in enumerate(names):
        yield None, f"ip link add task{task} type veth peer name eth0 netns {name}", RIGHTS
        yield None, f"ip link set task{task} master dflow up", RIGHTS
        yield task, "ip link set lo up", RIGHTS
        yield task, f"ip address add {host(task)}/16 dev eth0", RIGHTS
        yield task, "ip link set eth0 up", RIGHTS
        if delay:
            at_rate = f" rate {rate}bit" if rate else ""
            yield (task, f"tc qdisc add dev eth0 root netem delay {delay}us limit 100000{at_rate}",
                   "a kernel with network emulation (sch_netem), and tc")  # fmt: skip
        elif rate:
            # What may go at once: 10 ms of the rate, and never less than one large segment.
            burst = max(rate // 800, 65536)
            yield (task, f"tc qdisc add dev eth0 root tbf rate {rate}bit burst {burst} latency 400ms",
                   "a kernel with a token bucket filter (sch_tbf), and tc")  # fmt: skip


def call(name, *arguments):
    """A function of the C library that returns 0; os has unshare and setns from Python 3.12 on."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def open_network():
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def make_networks(tasks, delay, rate):
    """Moves this process into a network with a bridge; descriptors of the tasks' networks, which programs inherit."""
    user, group = os.getuid(), os.getgid()
    try:
        try:
            call("unshare", CLONE_NEWNET)
        except PermissionError:
            call("unshare", CLONE_NEWUSER | CLONE_NEWNET)
            # As root of the new user namespace, whose programs keep the rights over its networks.
            for path, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
                with open(f"/proc/self/{path}", "w", encoding="ascii") as file:
                    file.write(text)
        own = open_network()
        networks = []
        for _ in range(tasks):
            call("unshare", CLONE_NEWNET)
            networks.append(open_network())
            call("setns", own, CLONE_NEWNET)
        os.close(own)
    except OSError as error:
        raise Missing(f"this system does not permit so many network namespaces: {error}") from error
    for network in networks:
        os.set_inheritable(network, True)
    for task, command, needs in plan([f"/proc/self/fd/{network}" for network in networks], delay, rate):
        enter = None if task is None else lambda network=networks[task]: call("setns", network, CLONE_NEWNET)
        try:
            subprocess.run(command.split(), check=True, close_fds=False, preexec_fn=enter)
        except FileNotFoundError as error:
            raise Missing(f"'{command}' cannot be run: iproute2 is not installed") from error
        except (subprocess.SubprocessError, OSError) as error:
            raise Missing(f"'{command}' has failed: it needs {needs}") from error
    return networks


def program_of_task(networks, command):
    """Enters the network of the task whose flags `command` ends with; the command with the addresses of the networks."""
    flags = dict(word.lstrip("-").split("=", 1) for word in command if word.startswith("--") and "=" in word)
    number, own = 0, None
    jobs = []
    for job in flags["dflow_cluster"].split(";"):
        name, addresses = job.split("=", 1)
        replaced = []
        for index, address in enumerate(addresses.split(",")):
            if (name, index) == (flags["dflow_job"], int(flags["dflow_task"])):
                own = number
            replaced.append(f"{host(number)}:{address.rsplit(':', 1)[1]}")
            number += 1
        jobs.append(f"{name}={','.join(replaced)}")
    own = number if own is None else own  # an evaluator has no address
    if own >= len(networks):
        raise Missing(f"there are {len(networks)} networks and more tasks: --tasks says how many")
    call("setns", networks[own], CLONE_NEWNET)
    for network in networks:
        os.set_inheritable(network, False)
    cluster = f"--dflow_cluster={flags['dflow_cluster']}"
    return [f"--dflow_cluster={';'.join(jobs)}" if word == cluster else word for word in command]


def become(command):
    sys.stdout.flush()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise Missing(f"cannot run {command[0]}: {error.strerror}") from error


def main(argv):
    if argv[:1] == ["--enter"]:
        become(program_of_task([int(network) for network in argv[1].split(",")], argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tasks", type=int, default=2, help="how many tasks the launcher starts (2)")
    parser.add_argument("--delay", type=delay_us, help="of what a task sends, as 5ms")
    parser.add_argument("--rate", type=bits_per_second, help="at which a task sends at most, as 10mbit")
    parser.add_argument("--dry-run", action="store_true", help="print the commands that make the networks instead")
    parser.add_argument("launch", nargs=argparse.REMAINDER, help="dflow-launch [flags] -- program arguments")
    arguments = parser.parse_args(argv)
    launch = arguments.launch[1:] if arguments.launch[:1] == ["--"] else arguments.launch
    if arguments.dry_run:
        names = [f"NETWORK{task}" for task in range(arguments.tasks)]
        for task, command, _ in plan(names, arguments.delay, arguments.rate):
            print(f"{'bridge' if task is None else f'task {task}'}: {command}")
        return
    if "--" not in launch:
        parser.error("the command has no '--' before the program of the tasks")
    networks = make_networks(arguments.tasks, arguments.delay, arguments.rate)
    at = launch.index("--") + 1
    enter = [sys.executable, os.path.abspath(__file__), "--enter", ",".join(map(str, networks))]
    become(launch[:at] + enter + launch[at:])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Missing as missing:
        print(f"task_networks: {missing}", file=sys.stderr)
        sys.exit(2)
