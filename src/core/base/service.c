// SPDX-License-Identifier: BSD-2-Clause
/* See service.h. */
#include "core/base/service.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/instance.h"
#include "core/base/thread.h"

#define NS_PER_MS 1000000u
#define WAIT_MOST_MS 60000u
#define TICK_MOST_NS 4000000u
#define LOST_MS 100

void core_service_init(struct core_service *service)
{
	service->epoll_fd = -1;
	service->kick_fd = -1;
	atomic_init(&service->is_kicked, false);
}

int core_service_watch_kicks(struct core_service *service, epoll_data_t kick)
{
	struct epoll_event event = {.events = EPOLLONESHOT, .data = kick};

	service->kick = kick;
	return epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, service->kick_fd, &event) < 0 ? -errno
											 : 0;
}

int core_service_start(struct core_service *service, const struct core_ia *ia,
		       const struct core_service_form *form, void *argument)
{
	const struct core_thread_form thread = {.name = form->name,
						.stack_size = form->stack_size,
						.sched = ia->sched,
						.cpus = &ia->settings.service_cpus};

	return core_thread_create(&service->thread, &thread, form->run, argument);
}

/*
 * False: the descriptors are not ours any more. A write could reach a file of the consumer that has
 * the number of ours; this changes no file.
 */
static bool enable_kick(struct core_service *service)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = service->kick};

	return epoll_ctl(service->epoll_fd, EPOLL_CTL_MOD, service->kick_fd, &event) == 0;
}

void core_service_kick(struct core_service *service)
{
	/* sequentially consistent: the caller has stored its request; see core_service_kicked */
	if (!atomic_exchange(&service->is_kicked, true) && !enable_kick(service))
		atomic_store(&service->is_kicked, false);
}

void core_service_kicked(struct core_service *service)
{
	/*
	 * The event was disabled when it was reported. Sequentially consistent, and before the
	 * requests are checked: see core_service_kick.
	 */
	atomic_store(&service->is_kicked, false);
}

/* --- waiting --- */

/*
 * The thread may be cancelled in these functions. The address sanitizer would take what is left of
 * their frames for variables that live, when the handlers of the cancellation run.
 */
#define CANCELLED __attribute__((no_sanitize_address))

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
static bool is_ours(const struct core_service *service)
{
	struct epoll_event event = {.events = EPOLLONESHOT};

	if (!epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, service->kick_fd, &event))
		(void)epoll_ctl(service->epoll_fd, EPOLL_CTL_DEL, service->kick_fd, NULL);
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
CANCELLED static int wait_whole_ms(struct core_service *service, struct epoll_event *events,
				   int most, int ms)
{
	int count, error, state = PTHREAD_CANCEL_DISABLE;

	/* the set can be replaced while the thread sleeps, which then finds nothing */
	if (service->was_idle && !service->is_lost)
		service->is_lost = !is_ours(service);
	if (service->is_lost)
		return wait_lost(ms);
	if (!service->is_ending)
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	count = epoll_wait(service->epoll_fd, events, most, ms);
	error = errno;
	pthread_setcancelstate(state, NULL);
	if (count < 0 && (error == EBADF || error == EINVAL))
		service->is_lost = true;
	service->was_idle = count == 0;
	return service->is_lost ? wait_lost(ms) : count;
}

CANCELLED static int wait_ms(struct core_service *service, struct epoll_event *events, int most,
			     uint64_t ns)
{
	uint64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);

	return wait_whole_ms(service, events, most,
			     ms > WAIT_MOST_MS ? (int)WAIT_MOST_MS : (int)ms);
}

/* The slack of this thread's timers is as before when this returns. */
CANCELLED static int wait_late(struct core_service *service, struct epoll_event *events, int most,
			       uint64_t ns, uint64_t tick)
{
	int count;

	(void)prctl(PR_SET_TIMERSLACK, (unsigned long)tick);
	count = wait_ms(service, events, most, ns);
	(void)prctl(PR_SET_TIMERSLACK, 0ul);
	return count;
}

/* epoll_wait counts in milliseconds, which is too long for some deadlines. */
static void wait_briefly(const struct core_service *service, uint64_t ns)
{
	const struct timespec time = core_timespec(ns);
	struct pollfd ready = {.fd = service->epoll_fd, .events = POLLIN};

	(void)ppoll(&ready, 1, &time, NULL);
}

CANCELLED int core_service_wait(struct core_service *service, struct epoll_event *events, int most,
				uint64_t ns, uint64_t late_ns)
{
	if (late_ns < ns) {
		uint64_t tick = tick_ns();

		/* epoll_wait rounds up */
		if (ns - late_ns >= tick + NS_PER_MS)
			return wait_late(service, events, most, late_ns, tick);
		ns = late_ns;
	}
	if (ns == CORE_WAIT_NO_LIMIT)
		return wait_whole_ms(service, events, most, -1);
	if (ns && ns < NS_PER_MS) {
		wait_briefly(service, ns);
		ns = 0;
	}
	return wait_ms(service, events, most, ns);
}

/* --- the end --- */

void core_service_ends(struct core_service *service)
{
	service->is_ending = true;
}

void core_service_stop(struct core_service *service)
{
	bool is_woken = enable_kick(service);

	if (pthread_equal(service->thread, pthread_self())) {
		pthread_detach(service->thread);
		return;
	}
	if (!is_woken)
		pthread_cancel(service->thread);
	pthread_join(service->thread, NULL);
}
