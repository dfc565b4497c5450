// SPDX-License-Identifier: BSD-2-Clause
/* System calls that fail on demand (faults.h). */
#include "faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "core/base/slab.h"

#include "soft/shm/bytes/wire.h"

static const char *fault_call; /* constant while armed */
static enum fault_thread fault_thread;
static pthread_t fault_by;
static int fault_error;
static _Atomic bool is_armed, has_failed;
static _Atomic int calls_left;
static _Atomic int live;

void fault_arm(const char *call, int nth, int error, enum fault_thread thread)
{
	fault_call = call;
	fault_thread = thread;
	fault_by = pthread_self();
	fault_error = error;
	atomic_store(&calls_left, nth);
	atomic_store(&has_failed, false);
	atomic_store(&is_armed, true);
}

bool fault_disarm(void)
{
	atomic_store(&is_armed, false);
	return atomic_load(&has_failed);
}

int fault_live(void)
{
	return atomic_load(&live);
}

bool fault_hits(const char *call)
{
	bool is_caller;

	if (!atomic_load(&is_armed) || strcmp(call, fault_call))
		return false;
	is_caller = pthread_equal(fault_by, pthread_self());
	if (fault_thread == (is_caller ? FAULT_OTHERS : FAULT_CALLER))
		return false;
	if (atomic_fetch_sub(&calls_left, 1) != 1)
		return false;
	atomic_store(&has_failed, true);
	errno = fault_error;
	return true;
}

/* __wrap_NAME(PARAMETERS), which fails by returning `failure`. */
#define WRAP(type, name, parameters, arguments, failure)                                           \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return fault_hits(#name) ? (failure) : __real_##name arguments;                    \
	}

WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
WRAP(int, bind, (int fd, const struct sockaddr *address, socklen_t len), (fd, address, len), -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), -1)
WRAP(int, connect, (int fd, const struct sockaddr *address, socklen_t len), (fd, address, len), -1)
WRAP(int, accept4, (int fd, struct sockaddr *address, socklen_t *len, int flags),
     (fd, address, len, flags), -1)
WRAP(int, getsockname, (int fd, struct sockaddr *address, socklen_t *len), (fd, address, len), -1)
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),
     (fd, level, name, value, len), -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), -1)
WRAP(int, epoll_create1, (int flags), (flags), -1)
WRAP(int, eventfd, (unsigned int value, int flags), (value, flags), -1)
WRAP(int, memfd_create, (const char *name, unsigned int flags), (name, flags), -1)
WRAP(int, ftruncate64, (int fd, off_t len), (fd, len), -1)
WRAP(void *, mmap64, (void *address, size_t len, int prot, int flags, int fd, off_t offset),
     (address, len, prot, flags, fd, offset), MAP_FAILED)
WRAP(int, madvise, (void *address, size_t len, int advice), (address, len, advice), -1)
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg),
     (thread, attr, fn, arg), fault_error)
WRAP(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
      unsigned long remote_count, unsigned long flags),
     (pid, local, local_count, remote, remote_count, flags), -1)
WRAP(ssize_t, process_vm_writev,
     (pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
      unsigned long remote_count, unsigned long flags),
     (pid, local, local_count, remote, remote_count, flags), -1)

/* Is that the next packet? */
static bool is_close_next(int fd)
{
	struct shm_wire_head head;

	return recv(fd, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT) == sizeof(head) &&
	       head.type == SHM_WIRE_CLOSE;
}

/* Fails by a false end of the socket: the peer's last packet arrives a moment later. */
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	if (!atomic_load(&is_armed) || !is_close_next(fd) || !fault_hits("recvmsg"))
		return __real_recvmsg(fd, message, flags);
	message->msg_controllen = 0;
	message->msg_flags = 0;
	return 0;
}

/* Only the operations that need memory: removing a descriptor never fails. */
int __real_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && fault_hits("epoll_ctl"))
		return -1;
	return __real_epoll_ctl(epoll_fd, op, fd, event);
}

/* --- allocations: counted too --- */

void *__real_malloc(size_t size);
void *__real_core_slab_alloc(size_t size);
void __real_core_slab_free(void *p, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_core_slab_alloc(size_t size);
void __wrap_core_slab_free(void *p, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *text);

static void *counted(void *p)
{
	if (p)
		atomic_fetch_add(&live, 1);
	return p;
}

void *__wrap_malloc(size_t size)
{
	return fault_hits("malloc") ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fault_hits("calloc") ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	if (fault_hits("realloc"))
		return NULL;
	return p ? __real_realloc(p, size) : counted(__real_realloc(p, size));
}

void __wrap_free(void *p)
{
	if (p)
		atomic_fetch_sub(&live, 1);
	__real_free(p);
}

void *__wrap_core_slab_alloc(size_t size)
{
	return fault_hits("core_slab_alloc") ? NULL : counted(__real_core_slab_alloc(size));
}

/* ... which may free it by the call above. */
void __wrap_core_slab_free(void *p, size_t size)
{
	if (p && !CORE_SLAB_USES_MALLOC)
		atomic_fetch_sub(&live, 1);
	__real_core_slab_free(p, size);
}

char *__wrap_strdup(const char *text)
{
	char *copy = __wrap_malloc(strlen(text) + 1);

	return copy ? strcpy(copy, text) : NULL;
}
