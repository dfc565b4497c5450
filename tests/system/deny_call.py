#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a program under a seccomp filter that refuses a system call, as a container may have:

  deny_call.py memfd_create|epoll_create1|eventfd2 PROGRAM [ARGUMENT...]
"""
import ctypes
import errno
import os
import struct
import sys

NUMBERS = {"x86_64": {"memfd_create": 319, "epoll_create1": 291, "eventfd2": 290},
           "aarch64": {"memfd_create": 279, "epoll_create1": 20, "eventfd2": 19}}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO = 0x7fff0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def deny(name):
    steps = [(LOAD_NUMBER, 0, 0, 0),
             (JUMP_IF_EQUAL, 0, 1, NUMBERS[os.uname().machine][name]),
             (RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
             (RETURN, 0, 0, SECCOMP_RET_ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)):
        sys.exit(f"no seccomp filter can be set: {os.strerror(ctypes.get_errno())}")


deny(sys.argv[1])
os.execv(sys.argv[2], sys.argv[2:])
