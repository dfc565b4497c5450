// SPDX-License-Identifier: BSD-2-Clause
/*
 * Kernels that lack something, made by seccomp filters: those before 6.16 cannot refuse descriptors
 * on a local socket, those before 6.5 do not give a descriptor of the process at its other end, and
 * those before 5.3 have no such descriptors. Include after cmocka.h.
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

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
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

/*
 * A system call fails if that argument has that value; for the calling thread, and the threads and
 * processes that it creates from now on.
 */
static inline void old_kernel_refuse(uint32_t call, unsigned arg, uint32_t value, uint32_t error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (uint32_t)(offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t))),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* As before Linux 6.16. */
static inline void old_kernel_make(void)
{
	old_kernel_refuse(SYS_setsockopt, 2, SO_PASSRIGHTS, ENOPROTOOPT);
	assert_true(old_kernel_is());
}

/* As before Linux 6.5. */
static inline void old_kernel_names_no_process(void)
{
	old_kernel_refuse(SYS_getsockopt, 2, SO_PEERPIDFD, ENOPROTOOPT);
}

/* As before Linux 5.3, too. */
static inline void old_kernel_has_no_process(void)
{
	old_kernel_refuse(SYS_pidfd_open, 1, 0, ENOSYS);
}

#endif
