// SPDX-License-Identifier: BSD-2-Clause
/* How a service thread waits: which system calls it makes, with which time and which slack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <time.h>

#include "core/base/service.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define TICK (4 * MS)
#define NEVER CORE_WAIT_NO_LIMIT
#define NO_SLACK 0ul /* that of the thread */

static struct core_service thread;
static uint64_t tick; /* of the kernel; 0: it does not tell */
static unsigned long slack;
/* the last call of each kind; -2: none */
static int waited_ms;
static int64_t polled_ns;
static unsigned long slack_of_wait;
static int slept_ms;
static int found;     /* what epoll_wait returns; -1: EBADF */
static bool has_kick; /* the set is still that of the thread */

/* --- in place of the kernel --- */

int __wrap_clock_getres(clockid_t clock, struct timespec *tick_out);
int __wrap_clock_getres(clockid_t clock, struct timespec *tick_out)
{
	assert_int_equal(clock, CLOCK_MONOTONIC_COARSE);
	if (!tick)
		return -1;
	tick_out->tv_sec = (time_t)(tick / (1000 * MS));
	tick_out->tv_nsec = (long)(tick % (1000 * MS));
	return 0;
}

int __wrap_prctl(int option, unsigned long value);
int __wrap_prctl(int option, unsigned long value)
{
	assert_int_equal(option, PR_SET_TIMERSLACK);
	slack = value;
	return 0;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
	assert_int_equal(fd, thread.epoll_fd);
	assert_non_null(events);
	assert_int_equal(most, 1);
	waited_ms = timeout_ms;
	slack_of_wait = slack;
	errno = EBADF;
	return found;
}

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	assert_int_equal(epoll_fd, thread.epoll_fd);
	assert_int_equal(fd, thread.kick_fd);
	if (op == EPOLL_CTL_DEL)
		return 0;
	assert_int_equal(op, EPOLL_CTL_ADD);
	assert_int_equal(event->events & EPOLLIN, 0);
	errno = EEXIST;
	return has_kick ? -1 : 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	(void)fds;
	assert_int_equal(count, 0);
	slept_ms = timeout_ms;
	return 0;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time,
		 const sigset_t *signals);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time,
		 const sigset_t *signals)
{
	assert_int_equal(count, 1);
	assert_int_equal(fds->fd, thread.epoll_fd);
	assert_int_equal(fds->events, POLLIN);
	assert_null(signals);
	assert_int_equal(slack, NO_SLACK);
	polled_ns = (int64_t)time->tv_sec * (int64_t)(1000 * MS) + time->tv_nsec;
	return 0;
}

/* --- tests --- */

static int setup(void **state)
{
	(void)state;
	thread = (struct core_service){.epoll_fd = 7, .kick_fd = -1};
	tick = TICK;
	slack = NO_SLACK;
	found = 0;
	has_kick = true;
	return 0;
}

/* Waits; the slack of the thread is as before afterwards. */
static int wait(uint64_t ns, uint64_t late_ns)
{
	struct epoll_event event;
	int count;

	waited_ms = -2;
	slept_ms = -2;
	polled_ns = -2;
	slack_of_wait = ~0ul;
	count = core_service_wait(&thread, &event, 1, ns, late_ns);
	assert_int_equal(slack, NO_SLACK);
	return count;
}

static void assert_waited(int ms, unsigned long with_slack)
{
	assert_int_equal(waited_ms, ms);
	assert_int_equal(slack_of_wait, with_slack);
	assert_int_equal(polled_ns, -2);
}

static void wait__no_time__without_limit(void **state)
{
	(void)state;
	found = 1;
	assert_int_equal(wait(NEVER, NEVER), 1);
	assert_waited(-1, NO_SLACK);
	assert_int_equal(slept_ms, -2);
}

/* GEN-41: sleeps, and never touches a descriptor again */
static void assert_lost(void)
{
	assert_int_equal(wait(NEVER, NEVER), -1);
	assert_waited(-2, ~0ul);
	assert_int_equal(slept_ms, 100);
	assert_int_equal(wait(20 * MS, NEVER), -1);
	assert_waited(-2, ~0ul);
	assert_int_equal(slept_ms, 20);
	assert_int_equal(wait(0, NEVER), -1);
	assert_int_equal(slept_ms, 1);
}

/* GEN-41 */
static void wait__set_closed__sleeps_at_intervals(void **state)
{
	(void)state;
	found = -1;
	assert_int_equal(wait(NEVER, NEVER), -1);
	assert_waited(-1, NO_SLACK);
	assert_int_equal(slept_ms, 100);
	found = 1;
	assert_lost();
}

/* GEN-41: the consumer has closed the set, and another has its number */
static void wait__set_of_another__noticed_after_an_idle_wait(void **state)
{
	(void)state;
	assert_int_equal(wait(5 * MS, NEVER), 0);
	assert_waited(5, NO_SLACK);
	has_kick = false;
	found = 1;
	assert_lost();
}

/* A time of whole milliseconds is never too short. */
static void wait__deadline__exact_and_rounded_up(void **state)
{
	(void)state;
	(void)wait(0, NEVER);
	assert_waited(0, NO_SLACK);
	(void)wait(MS, NEVER);
	assert_waited(1, NO_SLACK);
	(void)wait(MS + 1, NEVER);
	assert_waited(2, NO_SLACK);
	(void)wait(UINT64_C(3600000) * MS, NEVER);
	assert_waited(60000, NO_SLACK);
	(void)wait(NEVER - 1, NEVER);
	assert_waited(60000, NO_SLACK);
}

/* epoll_wait takes whole milliseconds, so ppoll waits. */
static void wait__near_deadline__exact_to_the_nanosecond(void **state)
{
	(void)state;
	found = 1;
	assert_int_equal(wait(200 * US, NEVER), 1);
	assert_int_equal(polled_ns, 200 * US);
	assert_int_equal(waited_ms, 0);
	(void)wait(MS - 1, NEVER);
	assert_int_equal(polled_ns, MS - 1);
}

/* The kernel may wake the thread together with its own tick. */
static void wait__late_time__slack_of_a_tick(void **state)
{
	(void)state;
	found = 1;
	assert_int_equal(wait(NEVER, 2 * MS), 1);
	assert_waited(2, TICK);
	(void)wait(NEVER, 100 * US);
	assert_waited(1, TICK);
	(void)wait(3 * MS + TICK, 2 * MS);
	assert_waited(2, TICK);
	tick = MS;
	(void)wait(NEVER, 2 * MS);
	assert_waited(2, MS);
}

/* Ticks may be long, or unknown; the slack is bounded. */
static void wait__long_or_unknown_tick__slack_of_4_ms(void **state)
{
	static const uint64_t ticks[] = {0, 10 * MS, 1000 * MS};

	(void)state;
	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		tick = ticks[i];
		(void)wait(NEVER, 2 * MS);
		assert_waited(2, TICK);
	}
}

/* A deadline is never missed for the sake of the other time. */
static void wait__deadline_within_the_slack__exact(void **state)
{
	(void)state;
	(void)wait(3 * MS + TICK - 1, 2 * MS);
	assert_waited(2, NO_SLACK);
	/* 2 ms and a tick would be too long */
	(void)wait(2 * MS + TICK - 1, MS + 1);
	assert_waited(2, NO_SLACK);
	(void)wait(2 * MS, 2 * MS);
	assert_waited(2, NO_SLACK);
	(void)wait(MS, 20 * MS);
	assert_waited(1, NO_SLACK);
	(void)wait(0, 2 * MS);
	assert_waited(0, NO_SLACK);
	(void)wait(3 * MS, 300 * US);
	assert_int_equal(polled_ns, 300 * US);
	assert_int_equal(waited_ms, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(wait__no_time__without_limit),
		TEST(wait__set_closed__sleeps_at_intervals),
		TEST(wait__set_of_another__noticed_after_an_idle_wait),
		TEST(wait__deadline__exact_and_rounded_up),
		TEST(wait__near_deadline__exact_to_the_nanosecond),
		TEST(wait__late_time__slack_of_a_tick),
		TEST(wait__long_or_unknown_tick__slack_of_4_ms),
		TEST(wait__deadline_within_the_slack__exact),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
