// SPDX-License-Identifier: BSD-2-Clause
/*
 * The service thread of a provider or of its engine: what it waits on, and how others wake it. The
 * owner makes and closes the descriptors, as it does its others.
 */
#ifndef CORE_SERVICE_H
#define CORE_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct core_ia;

struct core_service {
	/* the owner's; constant while the thread runs, or may be kicked */
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

struct core_service_form {
	const char *name;
	size_t stack_size; /* 0: the default of the process */
	void *(*run)(void *argument);
};

#define CORE_WAIT_NO_LIMIT UINT64_MAX

void core_service_init(struct core_service *service);

/* From now on epoll reports `kick` when the thread is woken. The owner has made both descriptors.
 * 0, or -errno. */
int core_service_watch_kicks(struct core_service *service, epoll_data_t kick);

/* Starts the thread, as the instance says: 0, or -errno. */
int core_service_start(struct core_service *service, const struct core_ia *ia,
		       const struct core_service_form *form, void *argument);

/*
 * Wakes the thread, which then checks for requests. The caller has stored its request before. If
 * the thread has been woken and has not checked yet, this costs one atomic exchange.
 */
void core_service_kick(struct core_service *service);

/* Called by the thread when epoll reports `kick`, before it checks for requests. */
void core_service_kicked(struct core_service *service);

/*
 * Waits for events, as epoll_wait does. The thread can be cancelled in here, and nowhere else: see
 * core_service_stop. When the consumer has closed the descriptors, each wait ends soon. Ends after
 * `ns` nanoseconds, or after about `late_ns`, whichever comes first; CORE_WAIT_NO_LIMIT: never. A
 * time of a millisecond or more is rounded up to whole ones. The second time may be exceeded by a
 * tick of the kernel (1 to 4 ms), too: then the kernel wakes the thread together with its own work.
 * A timer takes a virtual machine 50 us or more, from the thread that polls on the same processor.
 */
int core_service_wait(struct core_service *service, struct epoll_event *events, int most,
		      uint64_t ns, uint64_t late_ns);

/* The time from `now` to a deadline, for core_service_wait; CORE_WAIT_NO_LIMIT: there is none. */
static inline uint64_t core_wait_until(uint64_t deadline_ns, uint64_t now)
{
	if (deadline_ns == CORE_WAIT_NO_LIMIT)
		return CORE_WAIT_NO_LIMIT;
	return deadline_ns > now ? deadline_ns - now : 0;
}

/* Called by the thread when it ends, also if it was cancelled. */
void core_service_ends(struct core_service *service);

/*
 * Wakes the thread for the last time and waits for its end, unless the caller is that thread. A
 * thread that sleeps on descriptors that the consumer has closed cannot be woken: it is cancelled.
 */
void core_service_stop(struct core_service *service);

#endif
