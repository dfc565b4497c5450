// SPDX-License-Identifier: BSD-2-Clause
/* The service thread of an engine: the descriptors that it waits on, and how others wake it. */
#ifndef SOFT_THREAD_H
#define SOFT_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct core_ia;

struct soft_thread {
	/* constant from soft_thread_open to soft_thread_close */
	int epoll_fd;
	int kick_fd; /* an event descriptor that is always readable; each kick enables it once */
	epoll_data_t kick;
	pthread_t thread;
	_Atomic bool is_kicked; /* it is enabled already */
	/* of the thread */
	bool is_ending; /* it must not be cancelled any more */
	bool was_idle;	/* the last wait found nothing */
	bool is_lost;	/* the consumer has closed the descriptors (GEN-41) */
};

#define SOFT_WAIT_NO_LIMIT UINT64_MAX

void soft_thread_init(struct soft_thread *thread);

/* Opens both descriptors. epoll reports `kick` when the thread is woken. 0, or -errno. */
int soft_thread_open(struct soft_thread *thread, epoll_data_t kick);

/* Starts the thread, as the instance says: 0, or -errno. */
int soft_thread_start(struct soft_thread *thread, const struct core_ia *ia, const char *name,
		      void *(*run)(void *), void *argument);

/*
 * Wakes the thread, which then checks for requests. The caller has stored its request before. If
 * the thread has been woken and has not checked yet, this costs one atomic exchange.
 */
void soft_thread_kick(struct soft_thread *thread);

/* Called by the thread when epoll reports `kick`, before it checks for requests. */
void soft_thread_kicked(struct soft_thread *thread);

/*
 * Waits for events, as epoll_wait does. The thread can be cancelled in here, and nowhere else: see
 * soft_thread_stop. When the consumer has closed the descriptors, each wait ends soon. Ends after
 * `ns` nanoseconds, or after about `late_ns`, whichever comes first; SOFT_WAIT_NO_LIMIT: never. A
 * time of a millisecond or more is rounded up to whole ones. The second time may be exceeded by a
 * tick of the kernel (1 to 4 ms), too: then the kernel wakes the thread together with its own work.
 * A timer takes a virtual machine 50 us or more, from the thread that polls on the same processor.
 */
int soft_thread_wait(struct soft_thread *thread, struct epoll_event *events, int most, uint64_t ns,
		     uint64_t late_ns);

/* The time from `now` to a deadline, for soft_thread_wait; SOFT_WAIT_NO_LIMIT: there is none. */
static inline uint64_t soft_wait_until(uint64_t deadline_ns, uint64_t now)
{
	if (deadline_ns == SOFT_WAIT_NO_LIMIT)
		return SOFT_WAIT_NO_LIMIT;
	return deadline_ns > now ? deadline_ns - now : 0;
}

/* Called by the thread when it ends, also if it was cancelled. */
void soft_thread_ends(struct soft_thread *thread);

/*
 * Wakes the thread for the last time and waits for its end, unless the caller is that thread. A
 * thread that sleeps on descriptors that the consumer has closed cannot be woken: it is cancelled.
 */
void soft_thread_stop(struct soft_thread *thread);

/* Closes the descriptors that are open. */
void soft_thread_close(struct soft_thread *thread);

#endif
