// SPDX-License-Identifier: BSD-2-Clause
/*
 * A signal interrupts a sleeping wait while no event arrives.
 */
#include "evd_sleep.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define INTERRUPT_US 3000000u /* a signal must end a wait within this time */

/* A thread that waits for an event that does not arrive. */
struct sleeper {
	DAT_EVD_HANDLE evd;
	pthread_t thread;
	_Atomic pid_t tid;
	_Atomic bool is_done;
	DAT_RETURN ret;
	DAT_COUNT more;
};

static void *sleeper_run(void *arg)
{
	struct sleeper *sleeper = arg;
	DAT_EVENT event;

	atomic_store(&sleeper->tid, (pid_t)syscall(SYS_gettid));
	sleeper->ret = dat_evd_wait(sleeper->evd, DAT_TIMEOUT_INFINITE, 1, &event, &sleeper->more);
	atomic_store(&sleeper->is_done, true);
	return NULL;
}

/* The thread owns the EVD, and the kernel reports it as sleeping. */
static bool sleeper_is_asleep(void *arg)
{
	struct sleeper *sleeper = arg;
	char name[64], text[256] = "";
	const char *end;
	DAT_EVENT event;
	FILE *file;

	if (DAT_GET_TYPE(dat_evd_dequeue(sleeper->evd, &event)) != DAT_INVALID_STATE)
		return false;
	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)atomic_load(&sleeper->tid));
	file = fopen(name, "r");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = 0;
	fclose(file);
	end = strrchr(text, ')'); /* of the thread's name */
	return end && end[1] == ' ' && end[2] == 'S';
}

static void sleeper_start(struct sleeper *sleeper, DAT_EVD_HANDLE evd)
{
	memset(sleeper, 0, sizeof(*sleeper));
	sleeper->evd = evd;
	assert_int_equal(pthread_create(&sleeper->thread, NULL, sleeper_run, sleeper), 0);
	dt_until(sleeper_is_asleep, sleeper);
}

/*
 * Interrupts the sleep with a signal. Repeats it only if the thread sleeps afterwards: the first
 * signal may have arrived before the sleep.
 */
static bool sleeper_is_interrupted(void *arg)
{
	struct sleeper *sleeper = arg;

	if (atomic_load(&sleeper->is_done))
		return true;
	if (sleeper_is_asleep(sleeper))
		pthread_kill(sleeper->thread, SIGUSR1);
	return false;
}

static void sleeper_interrupt(struct sleeper *sleeper)
{
	const uint64_t end = dt_now_us() + INTERRUPT_US;
	bool is_interrupted;

	do {
		is_interrupted = sleeper_is_interrupted(sleeper);
		sched_yield();
	} while (!is_interrupted && dt_now_us() < end);
	if (!is_interrupted) /* else the program would not end */
		dt_ok(dat_evd_set_unwaitable(sleeper->evd));
	assert_int_equal(pthread_join(sleeper->thread, NULL), 0);
	assert_true(is_interrupted);
	dt_fails(sleeper->ret, DAT_INTERRUPTED_CALL);
	assert_int_equal(sleeper->more, 0);
}

/*
 * EVD-WAIT-24: An EVD of an idle connection. At most one of two such threads sleeps where the peer
 * wakes it. Both are interrupted, in either order.
 */
static void evd_wait__signal_while_asleep_on_a_connection__interrupted(void **state)
{
	struct sigaction action = {.sa_handler = on_signal}, old;
	struct stage *s = *state;
	DAT_EVENT event;

	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	for (int i = 0; i < 20; i++) {
		struct sleeper first, second;

		sleeper_start(&first, s->ep.recv);
		if (i % 4 == 0) {
			sleeper_interrupt(&first);
			continue;
		}
		sleeper_start(&second, i % 4 == 1 ? s->ep.conn : s->ep.request);
		sleeper_interrupt(i % 4 == 2 ? &second : &first);
		sleeper_interrupt(i % 4 == 2 ? &first : &second);
	}
	/* the connection works */
	order(s, SEND_LATER, 0);
	wait_event(s->ep.recv, &event);
	check_message(s, &event);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

/* EVD-WAIT-24: An EVD without a connection. */
static void evd_wait__signal_while_asleep_without_connection__interrupted(void **state)
{
	struct sigaction action = {.sa_handler = on_signal}, old;
	struct sleeper sleeper;
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	for (int i = 0; i < 20; i++) {
		sleeper_start(&sleeper, ia.async);
		sleeper_interrupt(&sleeper);
	}
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
	dt_ia_close(&ia);
}

int main(void)
{
	setenv("DAT_SPIN_US", "0", 1);
	const struct CMUnitTest tests[] = {
		STAGED(evd_wait__signal_while_asleep_on_a_connection__interrupted),
		cmocka_unit_test(evd_wait__signal_while_asleep_without_connection__interrupted),
	};

	return cmocka_run_group_tests_name("evd signal", tests, NULL, NULL);
}
