// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls fail by a seccomp filter in the child that passes each call of one number to the
 * driver. So inline system calls (src/soft/gate.c) and those of threads that block all signals
 * fail, too.
 */
#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALL(call, ...)                                                                            \
	{                                                                                          \
		.name = #call, .number = SYS_##call, .errnos = { __VA_ARGS__ }                     \
	}
/* One operation of a call, named by argument `arg`. */
#define OPERATION(call, title, arg, value, ...)                                                    \
	{                                                                                          \
		.name = title, .number = SYS_##call, .errnos = {__VA_ARGS__},                      \
		.has_operation = true, .operation_arg = arg, .operation = value                    \
	}

const struct sweep_call sweep_calls[] = {
	{.name = "malloc", .number = SWEEP_MALLOC, .errnos = {ENOMEM}},
	CALL(mmap, ENOMEM),
	{.name = "munmap", .number = SYS_munmap, .errnos = {ENOMEM}, .leaks_mappings = true},
	CALL(mremap, ENOMEM),
	CALL(mprotect, ENOMEM),
	CALL(madvise, ENOMEM, EAGAIN),
	CALL(openat, EMFILE, ENOMEM, EACCES),
	CALL(read, EINTR, EIO),
	CALL(pread64, EIO),
	{.name = "close",
	 .number = SYS_close,
	 .errnos = {EINTR, EIO},
	 .leaks_descriptors = true,
	 .leaks_mappings = true},
	CALL(dup3, EBADF),
	{.name = "newfstatat", .number = SYS_newfstatat, .errnos = {ENOMEM}, .leaks_files = true},
	CALL(getdents64, ENOMEM),
	CALL(memfd_create, EMFILE, ENOMEM, EINVAL),
	CALL(ftruncate, ENOMEM, ENOSPC),
	OPERATION(fcntl, "fcntl-dup", 1, F_DUPFD_CLOEXEC, EMFILE),
	OPERATION(fcntl, "fcntl-add-seals", 1, F_ADD_SEALS, EBUSY, EPERM),
	OPERATION(fcntl, "fcntl-get-seals", 1, F_GET_SEALS, EINVAL),
	CALL(fstatfs, ENOMEM),
	CALL(socket, EMFILE, ENOBUFS),
	CALL(bind, ENOMEM, EADDRINUSE),
	CALL(mkdirat, ENOSPC, EACCES),
	CALL(fchmodat, EIO),
	CALL(linkat, ENOSPC, EIO),
	{.name = "unlinkat", .number = SYS_unlinkat, .errnos = {EIO}, .leaks_files = true},
	CALL(listen, ENOMEM),
	CALL(connect, ECONNREFUSED, EAGAIN, ENOMEM),
	CALL(accept4, EMFILE, ECONNABORTED, ENOMEM, EINTR),
	CALL(sendmsg, EAGAIN, ENOBUFS, EPIPE, EINTR),
	CALL(sendto, EAGAIN, ENOBUFS, EPIPE, EINTR),
	CALL(recvmsg, EAGAIN, ENOMEM, ECONNRESET, EINTR),
	CALL(recvfrom, EAGAIN, ENOMEM, ECONNRESET, EINTR),
	CALL(getsockopt, ENOBUFS, EMFILE),
	CALL(pidfd_open, EMFILE, ENOMEM), /* before Linux 6.5 */
	CALL(setsockopt, ENOMEM),
	CALL(shutdown, ENOTCONN),
	CALL(getsockname, ENOBUFS),
	CALL(getpeername, ENOBUFS, ENOTCONN),
	CALL(epoll_create1, EMFILE, ENOMEM),
	OPERATION(epoll_ctl, "epoll_ctl-add", 1, EPOLL_CTL_ADD, ENOMEM, ENOSPC),
	OPERATION(epoll_ctl, "epoll_ctl-mod", 1, EPOLL_CTL_MOD, ENOMEM),
	CALL(eventfd2, EMFILE, ENOMEM),
	CALL(pipe2, EMFILE),
	CALL(write, EINTR, EAGAIN),
	CALL(ppoll, EINTR, ENOMEM),
#ifdef SYS_poll /* newer machines have the next generation of these only */
	CALL(poll, EINTR, ENOMEM),
	CALL(epoll_wait, EINTR),
	CALL(readlink, ENOMEM),
#else
	CALL(epoll_pwait, EINTR),
	CALL(readlinkat, ENOMEM),
#endif
	CALL(ioctl, EINVAL),
	CALL(getrandom, ENOSYS),
	CALL(membarrier, EPERM, ENOMEM),
	CALL(clone3, EAGAIN, ENOMEM),
	CALL(sched_getscheduler, EPERM),
	CALL(sched_getparam, EPERM),
	CALL(process_vm_readv, EPERM, ENOMEM, EFAULT),
	CALL(process_vm_writev, EPERM, ENOMEM, EFAULT, ESRCH),
	OPERATION(futex, "futex-wait", 1, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, EINTR),
	OPERATION(futex, "futex-sem-wait", 1, FUTEX_WAIT_BITSET, EINTR),
};

const unsigned sweep_call_count = sizeof(sweep_calls) / sizeof(sweep_calls[0]);

bool syscalls_filter(const struct sweep_call *call)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	int listener;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	sweep->listener = listener < 0 ? -1 : listener + 1;
	if (listener < 0)
		return false;
	while (!sweep->is_supervised) /* no system call: it might be the one */
		;
	close(listener);
	return true;
}

int syscalls_take(pid_t child)
{
	int process = (int)syscall(SYS_pidfd_open, child, 0);
	int listener;

	if (process < 0)
		return -1;
	listener = (int)syscall(SYS_pidfd_getfd, process, sweep->listener - 1, 0);
	close(process);
	sweep->is_supervised = listener >= 0;
	return listener;
}

static bool is_meant(const struct sweep_call *call, const struct seccomp_data *data)
{
	/* FUTEX_PRIVATE_FLAG does not matter */
	uint64_t mask = call->number == SYS_futex ? ~(uint64_t)FUTEX_PRIVATE_FLAG : UINT64_MAX;

	return !call->has_operation ||
	       (data->args[call->operation_arg] & mask & UINT32_MAX) == call->operation;
}

static bool call_fails(const struct sweep_point *point, const struct seccomp_data *data)
{
	unsigned n;

	if (!sweep->is_armed || !is_meant(point->call, data))
		return false;
	n = ++sweep->calls;
	if (!point->n || n < point->n || (n > point->n && !point->is_always))
		return false;
	sweep->fired++;
	if (sweep->is_in_loader)
		sweep->is_fired_in_loader = true;
	return true;
}

void syscalls_answer(int listener, const struct sweep_point *point)
{
	struct seccomp_notif request;
	struct seccomp_notif_resp response;

	memset(&request, 0, sizeof(request));
	memset(&response, 0, sizeof(response));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request))
		return;
	response.id = request.id;
	if (call_fails(point, &request.data))
		response.error = -point->error;
	else
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

const char *syscalls_errno_name(int error)
{
	return strerrorname_np(error);
}
