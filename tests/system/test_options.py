#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The options of the tools: the same in --help, the manual pages and the completion for shells."""
import re
import shutil
import subprocess

from testing import (ADAPTER, BUILD, DAT_INFO, DAT_PERF, DAT_PING, DAT_STAT, DAT_TRACE, SOURCE,
                     Skip, contains, equal, main, perf_server, ping_server, run)

TOOLS = {"dat_info": DAT_INFO, "dat_perf": DAT_PERF, "dat_ping": DAT_PING,
         "dat_stat": DAT_STAT, "dat_trace": DAT_TRACE}
COMMON = {("a", "adapter"), ("q", "quiet"), ("j", "json"), ("V", "version"), ("h", "help")}


def table(tool, is_needed=False):
    """The options of a tool: {(letter, name): takes a value}, or needs one."""
    status, out, err = run(TOOLS[tool], "--list-options")
    equal(status, 0, err)
    lines = [line.split("\t") for line in out.splitlines()]
    equal({len(line) for line in lines}, {5}, out)
    return {(line[0], line[1]): bool(line[2]) and not (is_needed and line[2][0] == "[")
            for line in lines if line[0] != "-"}


def completion(name):
    return (BUILD / "tools" / "completion" / name).read_text(encoding="utf-8")


def bash_completes(tool, *words):
    """What bash offers for the last of the words, as a user would see it."""
    file = BUILD / "tools" / "completion" / tool
    script = (f"PATH={BUILD}/tools:$PATH; source {file}\n"
              f"COMP_WORDS=({' '.join(repr(word) for word in (tool, *words))})\n"
              f"COMP_CWORD={len(words)}; _{tool}\n"
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True,
                          check=False)
    equal((done.returncode, done.stderr), (0, ""))
    return done.stdout.split()


def every_tool__common_options__the_same_names_and_letters():
    for tool in TOOLS:
        options = table(tool)
        equal(COMMON - set(options), set(), tool)
        equal(len({letter for letter, _ in options}), len(options), tool)


def every_tool__help__lists_the_table():
    for tool, program in TOOLS.items():
        status, out, err = run(program, "--help", *(("all",) if tool == "dat_perf" else ()))
        equal((status, err), (0, ""))
        found = re.findall(r"^  -(\S), --([\w-]+)( \S+)?  ", out, re.M)
        equal({(letter, name): bool(value) for letter, name, value in found}, table(tool), tool)
        assert max(map(len, out.splitlines())) <= 100, out


def every_tool__help__fits_on_a_screen():
    for tool, program in TOOLS.items():
        assert len(run(program, "--help")[1].splitlines()) <= 24, tool


def dat_perf__help__each_group_on_a_screen_and_all_together_the_table():
    groups = re.findall(r"^  ([a-z]+): ", run(DAT_PERF, "--help")[1], re.M)
    found = set()
    for group in groups:
        status, out, err = run(DAT_PERF, "--help", group)
        equal((status, err), (0, ""))
        assert len(out.splitlines()) <= 24, out
        found |= set(re.findall(r"^  -(\S), --([\w-]+)", out, re.M))
    equal(found, set(table("dat_perf")))
    equal(bash_completes("dat_perf", "--help", ""), [*groups, "all"])
    status, out, err = run(DAT_PERF, "--help", "nothing")
    equal((status, out), (2, ""))
    contains(err, "--help nothing: there is no such group")


def every_tool__manual_page__describes_the_table():
    for tool in TOOLS:
        page = (SOURCE / "man" / f"{tool}.1").read_text(encoding="utf-8").replace("\\-", "-")
        found = re.findall(r'^\.BR -(\S) ", " --([\w-]+)( " ")?', page, re.M)
        equal({(letter, name): bool(value) for letter, name, value in found}, table(tool), tool)


def every_tool__completion__offers_the_table():
    for tool in TOOLS:
        options = table(tool)
        names = {f"--{name}" for _, name in options}
        equal(set(bash_completes(tool, "--")), names, tool)
        equal(set(bash_completes(tool, "-")), names | {f"-{letter}" for letter, _ in options})
        found = re.findall(r"\{-(\S)\+?,--([\w-]+)(=?)\}", completion(f"_{tool}"))
        equal({(letter, name): bool(value) for letter, name, value in found}, options, tool)
        found = re.findall(r"-s (\S) -l ([\w-]+)( -x| -r)?", completion(f"{tool}.fish"))
        equal({(letter, name): bool(value) for letter, name, value in found},
              table(tool, is_needed=True), tool)


def bash__values__adapters_words_and_lists():
    adapters = run(DAT_INFO, "--list")[1].split()
    for words in (["--adapter", ""], ["-a", ""], ["--adapter", "="], ["--adapter", "=", ""]):
        equal(bash_completes("dat_ping", *words), adapters, words)
    equal(bash_completes("dat_ping", "--op", "w"), ["write"])
    equal(bash_completes("dat_perf", "--test", "send-lat,write-b"), ["send-lat,write-bw"])
    equal(bash_completes("dat_perf", "--window", ""), [])
    equal(bash_completes("dat_info", "--qu"), ["--quiet"])
    equal(bash_completes("dat_stat", "-p", "1", "--watch", "--js"), ["--json"])


def check_syntax(shell, name_of):
    if not shutil.which(shell):
        raise Skip(f"there is no {shell}")
    for tool in TOOLS:
        equal(run(shell, "-n", str(BUILD / "tools" / "completion" / name_of(tool))), (0, "", ""))


def zsh__completion__valid_syntax():
    check_syntax("zsh", lambda tool: f"_{tool}")


def fish__completion__valid_syntax():
    check_syntax("fish", lambda tool: f"{tool}.fish")


def fish__options__offered_with_their_help():
    if not shutil.which("fish"):
        raise Skip("there is no fish")
    for tool in TOOLS:
        file = BUILD / "tools" / "completion" / f"{tool}.fish"
        status, out, err = run("fish", "--no-config", "-c",
                               f"source {file}; complete -C '{tool} --'")
        equal((status, err), (0, ""))
        equal({line.split("\t")[0] for line in out.splitlines()},
              {f"--{name}" for _, name in table(tool)})


def every_tool__version__that_of_the_project():
    version = re.search(r"version: '([^']+)'",
                        (SOURCE / "meson.build").read_text(encoding="utf-8")).group(1)
    for tool, program in TOOLS.items():
        for option in ("--version", "-V"):
            equal(run(program, option), (0, f"{tool} (OpenDAT) {version}\n", ""))


def every_tool__wrong_command_line__status_2_and_a_hint():
    for tool, program in TOOLS.items():
        # dat_trace takes a program and its arguments
        many = [] if tool == "dat_trace" else ["a", "b", "c"]
        for options in (["--no-such-option"], ["--adapter"], many):
            status, out, err = run(program, *options)
            equal((status, out), (2, ""), options)
            contains(err, f"try `{tool} --help`")


def every_tool__bad_value__named_with_its_option():
    for tool, option, value in (("dat_stat", "--pid", "x"), ("dat_stat", "--watch", "soon"),
                                ("dat_stat", "--watch", "0"), ("dat_ping", "--op", "dance"),
                                ("dat_perf", "--window", "0")):
        status, _, err = run(TOOLS[tool], option, value)
        equal(status, 2)
        contains(err, f"{tool}: {option} {value}: invalid value")


def dat_info__quiet__status_only():
    equal(run(DAT_INFO, "--quiet", "--adapter", ADAPTER), (0, "", ""))
    status, out, err = run(DAT_INFO, "--quiet", "--adapter", "no-such-adapter")
    equal((status, out), (1, ""))
    contains(err, "no-such-adapter")


def dat_ping_and_dat_perf__quiet__status_only():
    for server, program in ((ping_server, DAT_PING), (perf_server, DAT_PERF)):
        with server("--once", "--quiet") as (process, qualifier):
            equal(run(program, "--quiet", "--adapter", ADAPTER, "--qual", qualifier, "--size", "8",
                      "--count", "3"), (0, "", ""))
            equal(process.wait(60), 0)


if __name__ == "__main__":
    main(list(globals().items()))
