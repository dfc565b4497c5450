// SPDX-License-Identifier: BSD-2-Clause
/*
 * A kernel that cannot refuse descriptors on a local socket, as those before 6.16: a seccomp filter
 * hides the option of the socket. Include after cmocka.h.
 */
#ifndef TESTS_OLD_KERNEL_H
#define TESTS_OLD_KERNEL_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static inline bool old_kernel_is(void)
{
	const int off = 0;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int rc;

	assert_int_not_equal(fd, -1);
	rc = setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
	close(fd);
	return rc != 0;
}

/* For the calling thread and the threads that it creates from now on. */
static inline void old_kernel_make(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PASSRIGHTS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	assert_true(old_kernel_is());
}

#endif
