// SPDX-License-Identifier: BSD-2-Clause
/*
 * Connections within one process that hardly gets a processor: far more threads than processors
 * compute beside it, and the library's threads come after them; or the process is stopped for a
 * second. Each connect gets its request all the same, within its time-out.
 *
 * OPENDAT_CONNECTS=N makes N connects beside threads that compute, in place of 100 (a connect takes
 * 5 to 50 ms there). OPENDAT_STOPS=N stops each of 8 processes N times, in place of twice.
 */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn_util.h"

#define CONNECTS 100u
#define EACH 4u	      /* computing processes for each processor */
#define CROWD_MAX 32u /* computing processes in all */
#define NICE 10	      /* of the library's threads */
#define STOPS 2u
#define STOP_US 1100000u /* how long a process is stopped */
#define PROCESSES 8
#define TIMEOUT_US 10000000u /* of a connect */

static unsigned count_of(const char *name, unsigned usual)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

/* --- a connection --- */

/* The request; else says how the attempt ended. */
static DAT_CR_HANDLE request_of(struct conn_fixture *f, unsigned i)
{
	DAT_EVENT event;
	DAT_COUNT more;

	if (dat_evd_wait(f->listener.evd, TIMEOUT_US, 1, &event, &more) == DAT_SUCCESS)
		return event.event_data.cr_arrival_event_data.cr_handle;
	event = dt_event(f->a.conn);
	print_error("connect %u got no request; it ended with event 0x%x\n", i,
		    (unsigned)event.event_number);
	fail();
	return DAT_HANDLE_NULL;
}

static void cycle(struct conn_fixture *f, unsigned i)
{
	struct conn_args args = conn_args_of(f);

	args.timeout = TIMEOUT_US;
	dt_ok(conn_try(f->a.ep, &args));
	dt_ok(dat_cr_accept(request_of(f, i), f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_ep_disconnect(i & 1 ? f->a.ep : f->b.ep,
				i & 2 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(f->a.ep));
	dt_ok(dat_ep_reset(f->b.ep));
}

/* --- others compute --- */

struct crowd {
	pid_t pid[CROWD_MAX];
	unsigned count;
};

/* Some compute all the time, others yield or sleep for moments, as threads that wait do. */
static void compute(unsigned kind, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent) { /* it may have died before */
		for (volatile unsigned i = 0; i < 100000; i++)
			;
		if (kind % 4 == 2)
			sched_yield();
		else if (kind % 4 == 3)
			usleep(50);
	}
	_exit(0);
}

static void crowd_start(struct crowd *crowd)
{
	const pid_t parent = getpid();

	crowd->count = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) * EACH;
	if (crowd->count > CROWD_MAX)
		crowd->count = CROWD_MAX;
	for (unsigned i = 0; i < crowd->count; i++) {
		crowd->pid[i] = fork();
		if (!crowd->pid[i])
			compute(i, parent);
		assert_true(crowd->pid[i] > 0);
	}
}

static void crowd_end(const struct crowd *crowd)
{
	for (unsigned i = 0; i < crowd->count; i++) {
		kill(crowd->pid[i], SIGKILL);
		waitpid(crowd->pid[i], NULL, 0);
	}
}

/* Gives all threads but this one a low priority. */
static void lower_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		const long tid = strtol(entry->d_name, NULL, 10);

		if (tid > 0 && tid != getpid())
			assert_int_equal(setpriority(PRIO_PROCESS, (id_t)tid, NICE), 0);
	}
	closedir(tasks);
}

/* CONN-GEN-12 */
static void ep_connect__others_compute__each_gets_its_request(void **state)
{
	const unsigned count = count_of("OPENDAT_CONNECTS", CONNECTS);
	struct crowd crowd;
	void *fixture;

	(void)state;
	crowd_start(&crowd); /* before this process has threads */
	conn_setup(&fixture);
	lower_others();
	for (unsigned i = 0; i < count; i++)
		cycle(fixture, i);
	conn_teardown(&fixture);
	crowd_end(&crowd);
}

/* --- the process is stopped --- */

struct stops {
	unsigned count;
	_Atomic unsigned over; /* counted while the processes are stopped */
};

static void connect_after_stops(struct dt_peer *peer, void *arg)
{
	struct stops *stops = arg;
	void *fixture;

	setenv("DAT_SPIN_US", "0", 1); /* the library's thread does its own work */
	conn_setup(&fixture);
	for (unsigned i = 0; i < stops->count; i++) {
		cycle(fixture, 2 * i);
		dt_peer_sync(peer);
		while (atomic_load(&stops->over) == i)
			;
		cycle(fixture, 2 * i + 1);
	}
	conn_teardown(&fixture);
}

/* CONN-GEN-12: the threads of the process go on at the same time, and all its timers have expired.
 */
static void ep_connect__after_a_stop__gets_its_request(void **state)
{
	struct stops *stops = mmap(NULL, sizeof(*stops), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct dt_peer peer[PROCESSES];

	(void)state;
	assert_ptr_not_equal(stops, MAP_FAILED);
	stops->count = count_of("OPENDAT_STOPS", STOPS);
	for (int p = 0; p < PROCESSES; p++)
		dt_peer_start(&peer[p], connect_after_stops, stops);
	for (unsigned i = 0; i < stops->count; i++) {
		for (int p = 0; p < PROCESSES; p++) {
			dt_peer_sync(&peer[p]);
			dt_peer_stop(&peer[p]);
		}
		usleep(STOP_US);
		atomic_store(&stops->over, i + 1);
		for (int p = 0; p < PROCESSES; p++)
			dt_peer_continue(&peer[p]);
	}
	for (int p = 0; p < PROCESSES; p++)
		dt_peer_join(&peer[p]);
	munmap(stops, sizeof(*stops));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_connect__after_a_stop__gets_its_request),
		cmocka_unit_test(ep_connect__others_compute__each_gets_its_request),
	};

	return cmocka_run_group_tests_name("starved", tests, NULL, NULL);
}
