# SPDX-License-Identifier: BSD-2-Clause
"""Runs one measurement: dat_perf, ucx_perftest, fi_pingpong or raw, each side bound to a processor.

Records every command with its environment, so that it can be repeated by hand.
"""
import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import time

LIMIT_S = 90
HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """A measurement failed; the text is the reason."""


def free_port():
    """An unused TCP port. If another program takes it before it is used, one run fails."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listened_to(port):
    """Does a process listen on that port? Does not connect: the servers accept one client only."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/net/{name}", encoding="ascii") as table:
            for line in list(table)[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    return True
    return False


class Machine:
    """The build folder, the two processors, and the commands that were run."""

    def __init__(self, folder, cpus):
        self.folder = os.path.abspath(folder)
        self.server_cpu, self.client_cpu = (str(cpu) for cpu in cpus)
        self.commands = []
        path = [f"{self.folder}/src/registry", f"{self.folder}/src/soft"]
        self.library_path = ":".join(path + [os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")

    def note(self, env, *commands):
        """Records commands, those of a pair joined, with the port or qualifier replaced."""
        env = {name: value for name, value in env.items() if name != "LD_LIBRARY_PATH"}
        words = [f"{name}={value}" for name, value in env.items()]
        text = "  |  ".join(" ".join(words + [shlex.quote(word) for word in command])
                            for command in commands)
        text = text.replace(self.folder + "/", "")
        if text not in self.commands:
            self.commands.append(text)

    @contextlib.contextmanager
    def started(self, command, env):
        """A server, which must end by itself if the block ends without an exception."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env={**os.environ, **env})
        try:
            yield process
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{command[0]}: the server did not end") from error
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    @staticmethod
    def run(command, env):
        """The output and the messages of a program, which must succeed."""
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=LIMIT_S, env={**os.environ, **env}, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(str(error)) from error
        if done.returncode != 0:
            raise Failed(f"{shlex.join(command)}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout, done.stderr

    def output(self, command, env):
        return self.run(command, env)[0]

    # ---- ours ----

    def refusing(self):
        """The prefix that makes a command run as on an older kernel: bench/refuse.c."""
        return [f"{self.folder}/bench/refuse"]

    def dat_perf(self, *options, env=None, before=()):
        """The rows of one run. before: the prefix of the client's command"""
        tool = f"{self.folder}/tools/dat_perf"
        env = {"LD_LIBRARY_PATH": self.library_path, **(env or {})}
        server = [tool, "--server", "--once", "--cpu", self.server_cpu]
        client = [*before, tool, "--cpu", self.client_cpu, "--json", *options, "--qual"]
        self.note(env, server, client + ["QUALIFIER"])
        with self.started(server, env) as process:
            found = re.search(r"qualifier=(\d+)", process.stdout.readline())
            if not found:
                raise Failed(f"dat_perf: the server did not start: {process.stdout.read()}")
            return json.loads(self.output(client + [found.group(1)], env))["results"]

    def lines_of(self, program, *options):
        """The results of bench/matrix or bench/mpi, whose processes share the two processors."""
        command = ["taskset", "-c", f"{self.server_cpu},{self.client_cpu}",
                   f"{self.folder}/bench/{program}", "-j", *options]
        env = {"LD_LIBRARY_PATH": self.library_path}
        self.note(env, command)
        return [json.loads(line) for line in self.output(command, env).splitlines()]

    # ---- the machine ----

    def raw(self, test, size, count, before=()):
        command = [*before, f"{self.folder}/bench/raw", test, str(size), str(count), self.server_cpu,
                   self.client_cpu]
        env = {"LD_LIBRARY_PATH": self.library_path}
        self.note(env, command)
        return json.loads(self.output(command, env))

    # ---- others ----

    def ucx(self, test, size, count, transports, *options):
        """The figures of the last line that ucx_perftest prints."""
        port = free_port()
        env = {"UCX_TLS": transports}
        if transports == "tcp":
            env["UCX_NET_DEVICES"] = "lo"
        server = ["taskset", "-c", self.server_cpu, "ucx_perftest", "-f", "-p", str(port)]
        client = ["taskset", "-c", self.client_cpu, "ucx_perftest", "127.0.0.1", "-f",
                  "-t", test, "-s", str(size), "-n", str(count), "-w", str(max(count // 10, 1)),
                  *options, "-p", str(port)]
        self.note(env, server[:-1] + ["PORT"], client[:-1] + ["PORT"])
        with self.started(server, env) as process:
            self.wait_for_port(process, port)
            lines = self.output(client, env).splitlines()
        for line in reversed(lines):
            fields = line.split()
            # with -f the name of the test is not printed
            if len(fields) == 8 and fields[0].isdigit():
                names = ("count", "p50", "avg", "overall", "mb_avg", "mb_per_s", "rate_avg", "per_s")
                return dict(zip(names, map(float, fields)))
        raise Failed(f"ucx_perftest -t {test}: no figures in {lines}")

    def libfabric(self, size, count, provider="shm", kind="rdm"):
        """The average one-way time of a message in us, by fi_pingpong."""
        port = free_port()
        common = ["fi_pingpong", "-p", provider, "-e", kind, "-I", str(count), "-S", str(size)]
        server = ["taskset", "-c", self.server_cpu, *common, "-B", str(port)]
        client = ["taskset", "-c", self.client_cpu, *common, "-P", str(port), "127.0.0.1"]
        self.note({}, server[:-1] + ["PORT"], client[:-2] + ["PORT", "127.0.0.1"])
        with self.started(server, {}) as process:
            self.wait_for_port(process, port)
            lines = self.output(client, {}).splitlines()
        fields = lines[-1].split() if lines else []
        # bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
        if len(fields) != 8:
            raise Failed(f"fi_pingpong: no figures in {lines}")
        return {"avg": float(fields[6]), "mb_per_s": float(fields[5])}

    @staticmethod
    def wait_for_port(process, port):
        end = time.monotonic() + 20
        while not is_listened_to(port):
            if process.poll() is not None or time.monotonic() > end:
                raise Failed("the server did not start")
            time.sleep(0.01)

    # ---- instructions ----

    def instructions(self, path, count):
        """Instructions of one operation of bench/paths, and the polls of each that found nothing."""
        env = {"LD_LIBRARY_PATH": self.library_path}
        total, empty = self.counted(["bench/paths", path, count], env,
                                    "--toggle-collect=paths_measure*")
        return {"instructions": total / count, "empty_polls": empty / count}

    def verbs_instructions(self, way, test, count):
        """The same for bench/verbs/verbs_cost."""
        env = {"LD_LIBRARY_PATH": f"{self.folder}/bench/verbs:{self.library_path}",
               "DAT_OVERRIDE": f"{HERE}/verbs/dat.conf"}
        totals = []
        # the least of three: the time that threads wait for each other in the set-up is random
        for number in (count,) * 3 + (2 * count,) * 3:
            total, empty = self.counted(["bench/verbs/verbs_cost", way, test, number], env)
            totals.append(total)
        return {"instructions": (min(totals[3:]) - min(totals[:3])) / count,
                "empty_polls": empty / (2 * count)}

    def counted(self, program, env, *options):
        """The instructions of a program, and its polls that found nothing."""
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *options,
                   f"{self.folder}/{program[0]}", *(str(word) for word in program[1:])]
        text = "".join(self.run(command, env))
        found = re.search(r"Collected\s*:\s*(\d+)", text)
        empty = re.search(r'"empty_polls": (\d+)', text)
        if not found or not empty:
            raise Failed(f"callgrind: no figures in {text}")
        self.note(env, command)
        return int(found.group(1)), int(empty.group(1))


def has(program):
    return shutil.which(program) is not None
