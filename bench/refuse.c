// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs a program as if the kernel were older than Linux 6.11, for bench/compare: the ioctl
 * PROCMAP_QUERY, by which a process asks about one of its mappings, is answered with ENOTTY.
 *
 *   refuse PROGRAM [ARGUMENT...]
 *
 * The filter makes each system call a little slower, so both sides of a comparison must
 * run under it.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common.h"

/* Debian 12's linux/fs.h does not have it yet; its struct has 104 bytes. */
#define REFUSE_PROCMAP_QUERY _IOWR('f', 17, char[104])

#if defined(__x86_64__)
#define REFUSE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define REFUSE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the number of this architecture's system calls"
#endif

#define REFUSE_LOAD(member)                                                                        \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
/* Skips the next `skip` instructions unless the loaded value is `value`. */
#define REFUSE_UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, skip)

static int refuse_query(void)
{
	struct sock_filter program[] = {
		REFUSE_LOAD(arch),
		REFUSE_UNLESS(REFUSE_ARCH, 5),
		REFUSE_LOAD(nr),
		REFUSE_UNLESS(SYS_ioctl, 3),
		/* the lower half: both machines are little-endian */
		REFUSE_LOAD(args[1]),
		REFUSE_UNLESS(REFUSE_PROCMAP_QUERY, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]), .filter = program};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		    &filter) != 0)
		return -errno;
	return 0;
}

int main(int argc, char **argv)
{
	int rc;

	tool_name = "refuse";
	if (argc < 2) {
		fputs("usage: refuse PROGRAM [ARGUMENT...]\n", stderr);
		return TOOL_EXIT_USAGE;
	}
	rc = refuse_query();
	if (rc != 0) {
		tool_complain("seccomp: %s", strerror(-rc));
		return TOOL_EXIT_FAILED;
	}
	execvp(argv[1], argv + 1);
	tool_complain("%s: %s", argv[1], strerror(errno));
	return TOOL_EXIT_FAILED;
}
