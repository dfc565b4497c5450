#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The settings of the provider that checks, with examples/faults, which has five faults."""
import os
import re
import signal
import subprocess
import tempfile
import unittest

BUILD = os.environ["OPENDAT_BUILD"]
FAULTS = os.path.join(BUILD, "examples/faults")
RULES = ["recv-overlap", "evd-overflow", "send-changed", "lmr-in-use", "used-freed"]


def run(program=FAULTS, arguments=(), **settings):
    return subprocess.run([program, *arguments], env={**os.environ, **settings}, text=True,
                          capture_output=True, timeout=60, check=False)


def reported(done):
    return re.findall(r"libdat-check\[\d+\]: (?:error|warning): ([a-z-]+):", done.stderr)


class Settings(unittest.TestCase):
    def test_off(self):
        for settings in ({}, {"DAT_CHECK": ""}, {"DAT_CHECK": "0"}):
            done = run(**settings)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_faults(self):
        """CHECK-GEN-02, CHECK-REP-02, CHECK-REP-03: as docs/checking.md says"""
        done = run(DAT_CHECK="1")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
        self.assertEqual(reported(done), RULES)
        self.assertIn("send-changed: 2 times in all", done.stderr)

    def test_abort(self):
        """CHECK-REP-04"""
        done = run(DAT_CHECK="abort")
        self.assertEqual(done.returncode, -signal.SIGABRT)
        self.assertEqual(reported(done), RULES[:1])

    def test_advice(self):
        """CHECK-REP-05: as warnings, with all only"""
        done = run(DAT_CHECK="all")
        self.assertLess(set(RULES), set(reported(done)))
        self.assertRegex(done.stderr, "warning: closed-over:")

    def test_rules_off(self):
        """CHECK-REP-06"""
        done = run(DAT_CHECK="1", DAT_CHECK_OFF="evd-overflow,lmr-in-use,no-such-rule")
        self.assertEqual(reported(done), ["recv-overlap", "send-changed", "used-freed"])
        self.assertIn("no rule has the name no-such-rule", done.stderr)

    def test_suppressions(self):
        """CHECK-REP-07"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "suppressions")
            with open(path, "w", encoding="utf-8") as file:
                file.write("# a comment\n\nsend-changed faults(\nused-freed libother.so\nwrong\n")
            done = run(DAT_CHECK="1", DAT_CHECK_FILE=path)
            self.assertEqual(reported(done),
                             ["recv-overlap", "evd-overflow", "lmr-in-use", "used-freed"])
            self.assertIn(f"{path}:5: not the name of a rule", done.stderr)
            done = run(DAT_CHECK="1", DAT_CHECK_FILE=path + ".absent")
            self.assertEqual(reported(done), RULES)
            self.assertIn("No such file", done.stderr)

    def test_log_file(self):
        """CHECK-REP-02: where DAT_DBG_DEST says"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log")
            done = run(DAT_CHECK="1", DAT_DBG_DEST=path)
            self.assertEqual(done.stderr, "")
            with open(path, encoding="utf-8") as file:
                self.assertIn("error: recv-overlap:", file.read())

    def test_registry(self):
        """CHECK-GEN-01, CHECK-GEN-03: by a line of dat.conf; not listed"""
        info = os.path.join(BUILD, "tools/dat_info")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dat.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write('soft-lo u1.2 nonthreadsafe default libdat-check.so.1 opendat.0.1 '
                           '"below" ""\n'
                           'below u1.2 nonthreadsafe default libdat-soft.so.1 opendat.0.1 '
                           '"lo" ""\n')
            self.assertEqual(reported(run(DAT_OVERRIDE=path)), RULES)
        done = run(info, ["--list"], DAT_CHECK="1")
        self.assertNotIn("check:", done.stdout)

    def test_list_of_rules(self):
        """CHECK-REP-08"""
        done = run(os.path.join(BUILD, "tools/dat_info"), ["--checks"])
        lines = [line.split()[:2] for line in done.stdout.splitlines()[1:]]
        self.assertEqual(done.returncode, 0)
        for rule in RULES:
            self.assertIn([rule, "fault"], lines)
        self.assertIn(["closed-over", "advice"], lines)
        rows = [[line[:18].strip(" "), line[18:26].strip(" "), line[26:40].strip(" "), line[40:]]
                for line in done.stdout.splitlines()[1:]]
        with open(os.path.join(os.environ["OPENDAT_SOURCE"], "docs/checking.md"),
                  encoding="utf-8") as file:
            page = file.read()
        self.assertIn("".join("| `{}` | {} | {} | {} |\n".format(*row) for row in rows), page)
        with open(os.path.join(os.environ["OPENDAT_SOURCE"], "man/opendat-checks.7"),
                  encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        entries = re.findall(r'^\.BR (\S+) " \((\w+)\)"\n(.)(.*)\.\n(\S+),$', page, re.MULTILINE)
        self.assertEqual([[name, level, row, first.lower() + text]
                          for name, level, first, text, row in entries],
                         [[*row[:3], row[3][0].lower() + row[3][1:]] for row in rows])

    def test_list_of_limits(self):
        """CHECK-RULE-24: the page has each limit and its reason"""
        source = os.environ["OPENDAT_SOURCE"]
        with open(os.path.join(source, "src/check/limits.h"), encoding="utf-8") as file:
            limits = re.findall(r'LIMIT\(\w+, (\d+), "(.*)"\)', file.read())
        with open(os.path.join(source, "docs/checking.md"), encoding="utf-8") as file:
            page = file.read()
        self.assertEqual(len(limits), 6)
        for limit in limits:
            self.assertIn("| {} | {} |\n".format(*limit), page)


if __name__ == "__main__":
    unittest.main()
