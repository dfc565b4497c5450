// SPDX-License-Identifier: BSD-2-Clause
/* The processes at the other ends (process.h). */
#include "soft/shm/connect/process.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/fds.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/state.h"

#ifndef SO_PEERPIDFD
#if defined(__sparc__)
#define SO_PEERPIDFD 0x0056
#elif defined(__hppa__)
#define SO_PEERPIDFD 0x404B
#else
#define SO_PEERPIDFD 77
#endif
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/*
 * Linux 6.5 gives the process that connected or listened. On older kernels the number could by now
 * be that of another process, if the peer has ended and left its socket to others.
 */
static int open_peer(int socket_fd, pid_t pid)
{
	socklen_t len = sizeof(int);
	int fd;

	soft_fd_begin();
	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) < 0)
		fd = errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	return soft_fd_end(fd);
}

bool shm_process_has_ended(struct shm_process *process)
{
	struct pollfd end = {.fd = process->fd, .events = POLLIN};
	int state, rc;

	if (atomic_load(&process->has_ended) || process->fd < 0)
		return atomic_load(&process->has_ended);
	state = core_cancel_off();
	rc = poll(&end, 1, 0);
	if (rc > 0)
		atomic_store(&process->has_ended, true);
	core_cancel_restore(state);
	return rc != 0; /* an error: not known to live */
}

static struct shm_process *find_known(struct shm_engine *engine, pid_t pid)
{
	struct shm_process *process;

	core_lock_acquire(&engine->lock);
	for (process = engine->processes; process; process = process->next)
		if (process->pid == pid && !atomic_load(&process->has_ended))
			break;
	if (process)
		process->refs++;
	core_lock_release(&engine->lock);
	return process;
}

static void list_process(struct shm_engine *engine, struct shm_process *process)
{
	process->refs = 1;
	core_lock_acquire(&engine->lock);
	process->next = engine->processes;
	engine->processes = process;
	core_lock_release(&engine->lock);
}

/* Has the service thread wait for its end. If that fails, only the end of sockets is noticed. */
static void watch_process(struct shm_engine *engine, struct shm_process *process)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (process->fd < 0 || shm_engine_add(engine, SHM_SLOT_PROCESS, process, &process->id) < 0)
		return;
	event.data.u64 = process->id;
	(void)epoll_ctl(engine->service.epoll_fd, EPOLL_CTL_ADD, process->fd, &event);
}

static bool is_of_process(const struct shm_conn *conn, uint64_t process)
{
	return (uintptr_t)atomic_load(&conn->remote.process) == process;
}

void shm_process_event(struct shm_engine *engine, struct shm_process *process)
{
	struct shm_conn *conn;
	uint32_t index = 0;

	epoll_ctl(engine->service.epoll_fd, EPOLL_CTL_DEL, process->fd, NULL);
	/*
	 * before the search: a thread that adds a connection of the process stores it first, then
	 * checks this
	 */
	atomic_store(&process->has_ended, true);
	/* packets that were sent before are read first, then the end of the socket is noticed */
	while ((conn = shm_engine_next_conn(engine, &index, is_of_process, (uintptr_t)process)) !=
	       NULL) {
		shutdown(conn->fd, SHUT_RDWR);
		shm_conn_put(conn);
	}
}

struct shm_process *shm_process_find(struct shm_engine *engine, int socket_fd, pid_t pid)
{
	struct shm_process *process = find_known(engine, pid);
	int fd;

	/* while it lives, the number is its own */
	if (process && !shm_process_has_ended(process))
		return process;
	shm_process_put(engine, process);
	process = core_slab_alloc(sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	fd = pid == getpid() ? -ENOSYS : open_peer(socket_fd, pid);
	/* -EPERM: a seccomp filter does not know the call */
	if (fd < 0 && fd != -ENOSYS && fd != -EPERM && fd != -ESRCH) {
		core_slab_free(process, sizeof(*process));
		return NULL;
	}
	process->fd = fd < 0 ? -1 : fd;
	atomic_init(&process->has_ended, fd == -ESRCH);
	list_process(engine, process);
	watch_process(engine, process);
	return process;
}

void shm_process_put(struct shm_engine *engine, struct shm_process *process)
{
	struct shm_process **link;
	bool is_last;

	if (!process)
		return;
	core_lock_acquire(&engine->lock);
	is_last = --process->refs == 0;
	if (is_last) {
		for (link = &engine->processes; *link != process; link = &(*link)->next)
			;
		*link = process->next;
	}
	core_lock_release(&engine->lock);
	if (!is_last)
		return;
	if (process->id) {
		shm_engine_remove(engine, process->id);
		/* explicitly: a copy in a child would keep the entry alive */
		epoll_ctl(engine->service.epoll_fd, EPOLL_CTL_DEL, process->fd, NULL);
	}
	soft_fd_close(process->fd);
	core_slab_free(process, sizeof(*process));
}
