// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a kernel may lack, or an emulator that stands in for one. A test that needs it is skipped
 * and says why. Include it after cmocka.h.
 */
#ifndef TESTS_ABILITY_H
#define TESTS_ABILITY_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Goes on only if `has`; what has been checked before stays checked. */
#define ABILITY_NEED(has, what)                                                                    \
	do {                                                                                       \
		if (!(has)) {                                                                      \
			print_message("skipped: " what "\n");                                      \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

#define ABILITY_NEED_VM_CALLS()                                                                    \
	ABILITY_NEED(ability_vm_calls(), "the kernel does not copy between processes")

/* process_vm_readv and process_vm_writev */
static inline bool ability_vm_calls(void)
{
	char from = 'a', to = 'b';
	struct iovec local = {&to, 1}, remote = {&from, 1};

	return syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) == 1;
}

/* robust futexes */
static inline bool ability_robust_list(void)
{
	void *head;
	size_t len;

	return syscall(SYS_get_robust_list, 0, &head, &len) == 0;
}

/* MADV_DONTFORK, which an emulator may accept and ignore */
static inline bool ability_dontfork(void)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned char resident;
	int status = 1;
	pid_t pid;

	if (page == MAP_FAILED || madvise(page, len, MADV_DONTFORK))
		return false;
	pid = fork();
	if (pid == 0)
		_exit(mincore(page, len, &resident) == 0);
	munmap(page, len);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Threads in the child of a process with threads. The thread sanitizer and qemu-user end there. */
static inline bool ability_threads_in_child(void)
{
#ifdef __SANITIZE_THREAD__
	return false;
#endif
	return !getenv("MESON_EXE_WRAPPER");
}

#endif
