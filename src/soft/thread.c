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
#define LOST_MS 100
#define STACK_SIZE (256u * 1024u) /* a service thread needs less than 96 KiB */

void soft_thread_init(struct soft_thread *thread)
{
	thread->epoll_fd = -1;
	thread->kick_fd = -1;
	atomic_init(&thread->is_kicked, false);
}

int soft_thread_open(struct soft_thread *thread, epoll_data_t kick)
{
	struct epoll_event event = {.events = EPOLLONESHOT, .data = kick};

	thread->kick = kick;
	soft_fd_begin();
	thread->epoll_fd = soft_fd_end(epoll_create1(EPOLL_CLOEXEC));
	if (thread->epoll_fd < 0)
		return thread->epoll_fd;
	soft_fd_begin();
	thread->kick_fd = soft_fd_end(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
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

/*
 * False: the descriptors are not ours any more. A write could reach a file of the consumer that has
 * the number of ours; this changes no file.
 */
static bool enable_kick(struct soft_thread *thread)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = thread->kick};

	return epoll_ctl(thread->epoll_fd, EPOLL_CTL_MOD, thread->kick_fd, &event) == 0;
}

void soft_thread_kick(struct soft_thread *thread)
{
	/* sequentially consistent: the caller has stored its request; see soft_thread_kicked */
	if (!atomic_exchange(&thread->is_kicked, true) && !enable_kick(thread))
		atomic_store(&thread->is_kicked, false);
}

void soft_thread_kicked(struct soft_thread *thread)
{
	/*
	 * The event was disabled when it was reported. Sequentially consistent, and before the
	 * requests are checked: see soft_thread_kick.
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

/*
 * Does the set of descriptors hold the one of the kicks? Another set of the consumer could have its
 * number, and its events are not ours.
 */
static bool is_ours(const struct soft_thread *thread)
{
	struct epoll_event event = {.events = EPOLLONESHOT};

	if (!epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, thread->kick_fd, &event))
		(void)epoll_ctl(thread->epoll_fd, EPOLL_CTL_DEL, thread->kick_fd, NULL);
	else if (errno == EEXIST)
		return true;
	return false;
}

/* Waits without descriptors, by looking for requests at intervals. */
static int wait_lost(int ms)
{
	(void)poll(NULL, 0, ms < 0 || ms > LOST_MS ? LOST_MS : ms ? ms : 1);
	return -1;
}

/* Negative: no limit. */
static int wait_whole_ms(struct soft_thread *thread, struct epoll_event *events, int most, int ms)
{
	int count, error, state = PTHREAD_CANCEL_DISABLE;

	/* the set can be replaced while the thread sleeps, which then finds nothing */
	if (thread->was_idle && !thread->is_lost)
		thread->is_lost = !is_ours(thread);
	if (thread->is_lost)
		return wait_lost(ms);
	if (!thread->is_ending)
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	count = epoll_wait(thread->epoll_fd, events, most, ms);
	error = errno;
	pthread_setcancelstate(state, NULL);
	if (count < 0 && (error == EBADF || error == EINVAL))
		thread->is_lost = true;
	thread->was_idle = count == 0;
	return thread->is_lost ? wait_lost(ms) : count;
}

static int wait_ms(struct soft_thread *thread, struct epoll_event *events, int most, uint64_t ns)
{
	uint64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);

	return wait_whole_ms(thread, events, most, ms > WAIT_MOST_MS ? (int)WAIT_MOST_MS : (int)ms);
}

/* The slack of this thread's timers is as before when this returns. */
static int wait_late(struct soft_thread *thread, struct epoll_event *events, int most, uint64_t ns,
		     uint64_t tick)
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
		return wait_whole_ms(thread, events, most, -1);
	if (ns && ns < NS_PER_MS) {
		wait_briefly(thread, ns);
		ns = 0;
	}
	return wait_ms(thread, events, most, ns);
}

/* --- the end --- */

void soft_thread_ends(struct soft_thread *thread)
{
	thread->is_ending = true;
}

void soft_thread_stop(struct soft_thread *thread)
{
	bool is_woken = enable_kick(thread);

	if (pthread_equal(thread->thread, pthread_self())) {
		pthread_detach(thread->thread);
		return;
	}
	if (!is_woken)
		pthread_cancel(thread->thread);
	pthread_join(thread->thread, NULL);
}

void soft_thread_close(struct soft_thread *thread)
{
	soft_fd_close(thread->kick_fd);
	soft_fd_close(thread->epoll_fd);
	thread->kick_fd = -1;
	thread->epoll_fd = -1;
}
