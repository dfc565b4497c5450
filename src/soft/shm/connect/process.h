// SPDX-License-Identifier: BSD-2-Clause
/*
 * The processes at the other ends of an engine's connections: one descriptor each, which shows
 * whether the process still lives. The service thread waits for it, because the end of a process is
 * not always the end of its sockets: a child that was made without the C library's fork, by a raw
 * clone, has copies of them.
 */
#ifndef SHM_PROCESS_H
#define SHM_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct shm_engine;

struct shm_process {
	struct shm_process *next; /* engine lock */
	uint32_t refs;		  /* engine lock */
	pid_t pid;
	int fd;	     /* -1: it is this process, or the kernel has no such descriptors */
	uint64_t id; /* in the table of the engine; 0: the service thread does not wait */
	_Atomic bool has_ended; /* sequentially consistent: see shm_process_event */
};

/*
 * The process of that number at the other end of a socket, with a reference. NULL: there is no
 * descriptor or memory for it. The caller stores it in the connection, then checks `has_ended`.
 */
struct shm_process *shm_process_find(struct shm_engine *engine, int socket_fd, pid_t pid);
/* Takes a reference; NULL: the last one is gone. Engine locked. */
static inline struct shm_process *shm_process_get_unless_dead(struct shm_process *process)
{
	process->refs += process->refs > 0;
	return process->refs ? process : NULL;
}

/* Drops a reference; NULL: none. */
void shm_process_put(struct shm_engine *engine, struct shm_process *process);
/* Asks the kernel. */
bool shm_process_has_ended(struct shm_process *process);
/* In the service thread: its descriptor is readable. Ends the sockets of its connections. */
void shm_process_event(struct shm_engine *engine, struct shm_process *process);

#endif
