// SPDX-License-Identifier: BSD-2-Clause
/* See thread.h. */
#include "soft/thread.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/instance.h"
#include "soft/fds.h"

#define NS_PER_MS 1000000u
#define WAIT_MOST_MS 60000u
#define TICK_MOST_NS 4000000u
#define STACK_SIZE (256u * 1024u) /* a service thread needs less than 96 KiB */

void soft_thread_init(struct soft_thread *thread)
{
	thread->epoll_fd = -1;
	thread->kick_fd = -1;
	atomic_init(&thread->is_kicked, false);
}

int soft_thread_open(struct soft_thread *thread, epoll_data_t kick)
{
	struct epoll_event event = {.events = EPOLLIN, .data = kick};

	soft_fd_begin();
	thread->epoll_fd = soft_fd_end(epoll_create1(EPOLL_CLOEXEC));
	if (thread->epoll_fd < 0)
		return thread->epoll_fd;
	soft_fd_begin();
	thread->kick_fd = soft_fd_end(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (thread->kick_fd < 0)
		return thread->kick_fd;
	if (epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, thread->kick_fd, &event) < 0)
		return -errno;
	return 0;
}

int soft_thread_start(struct soft_thread *thread, const struct core_ia *ia, const char *name,
		      void *(*run)(void *), void *argument)
{
	/*
	 * A stack of the default size takes 8 MiB of address space, and agents of the consumer do
	 * not run on this one.
	 */
	const struct core_thread_form form = {.name = name,
					      .stack_size = STACK_SIZE,
					      .sched = ia->sched,
					      .cpus = &ia->settings.service_cpus};

	return core_thread_create(&thread->thread, &form, run, argument);
}

static void write_kick(struct soft_thread *thread)
{
	uint64_t one = 1;
	int state = core_cancel_off();
	ssize_t written;

	do
		written = write(thread->kick_fd, &one, sizeof(one));
	while (written < 0 && errno == EINTR);
	/* a full counter (EAGAIN) wakes the thread as well */
	core_cancel_restore(state);
}

void soft_thread_kick(struct soft_thread *thread)
{
	/* sequentially consistent: the caller has stored its request; see soft_thread_kicked */
	if (!atomic_exchange(&thread->is_kicked, true))
		write_kick(thread);
}

void soft_thread_kicked(struct soft_thread *thread)
{
	uint64_t count;
	ssize_t size = read(thread->kick_fd, &count, sizeof(count));

	(void)size; /* EAGAIN: another read took it */
	/*
	 * Cleared after the read. If it were cleared before, the read could swallow the write of a
	 * thread that kicks in between, and that thread's mark would keep all others from writing.
	 * Sequentially consistent, and before the requests are checked: see soft_thread_kick.
	 */
	atomic_store(&thread->is_kicked, false);
}

/* --- waiting --- */

/* The time between two ticks of the kernel, but no more than TICK_MOST_NS. */
static uint64_t tick_ns(void)
{
	struct timespec tick;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec ||
	    tick.tv_nsec > (long)TICK_MOST_NS)
		return TICK_MOST_NS;
	return (uint64_t)tick.tv_nsec;
}

static int wait_ms(const struct soft_thread *thread, struct epoll_event *events, int most,
		   uint64_t ns)
{
	uint64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);

	return epoll_wait(thread->epoll_fd, events, most,
			  ms > WAIT_MOST_MS ? (int)WAIT_MOST_MS : (int)ms);
}

/* The slack of this thread's timers is as before when this returns. */
static int wait_late(const struct soft_thread *thread, struct epoll_event *events, int most,
		     uint64_t ns, uint64_t tick)
{
	int count;

	(void)prctl(PR_SET_TIMERSLACK, (unsigned long)tick);
	count = wait_ms(thread, events, most, ns);
	(void)prctl(PR_SET_TIMERSLACK, 0ul);
	return count;
}

/* epoll_wait counts in milliseconds, which is too long for some deadlines. */
static void wait_briefly(const struct soft_thread *thread, uint64_t ns)
{
	const struct timespec time = core_timespec(ns);
	struct pollfd ready = {.fd = thread->epoll_fd, .events = POLLIN};

	(void)ppoll(&ready, 1, &time, NULL);
}

int soft_thread_wait(struct soft_thread *thread, struct epoll_event *events, int most, uint64_t ns,
		     uint64_t late_ns)
{
	if (late_ns < ns) {
		uint64_t tick = tick_ns();

		/* epoll_wait rounds up */
		if (ns - late_ns >= tick + NS_PER_MS)
			return wait_late(thread, events, most, late_ns, tick);
		ns = late_ns;
	}
	if (ns == SOFT_WAIT_NO_LIMIT)
		return epoll_wait(thread->epoll_fd, events, most, -1);
	if (ns && ns < NS_PER_MS) {
		wait_briefly(thread, ns);
		ns = 0;
	}
	return wait_ms(thread, events, most, ns);
}

/* --- the end --- */

void soft_thread_stop(struct soft_thread *thread)
{
	write_kick(thread);
	if (pthread_equal(thread->thread, pthread_self()))
		pthread_detach(thread->thread);
	else
		pthread_join(thread->thread, NULL);
}

void soft_thread_close(struct soft_thread *thread)
{
	soft_fd_close(thread->kick_fd);
	soft_fd_close(thread->epoll_fd);
	thread->kick_fd = -1;
	thread->epoll_fd = -1;
}
