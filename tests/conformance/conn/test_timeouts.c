// SPDX-License-Identifier: BSD-2-Clause
/*
 * How long time-outs last: never shorter than requested, and not much longer. On a busy machine any
 * single one may be late, so the fastest of several is measured; one that is early is always wrong.
 */
#include "cno_util.h"
#include "conn_util.h"

#define SHORT_US 60000u
#define TRIES 12
#define LATE_US(us) ((us) + (us) / 10 * 3) /* that is, 1.3 times */

/* Checks whether the fastest of several is on time; none may be early. */
static void check_time(void (*wait)(void *arg, DAT_TIMEOUT us), void *arg, DAT_TIMEOUT us)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES && best > LATE_US(us); i++) {
		const uint64_t start = dt_now_us();
		uint64_t took;

		wait(arg, us);
		took = dt_now_us() - start;
		if (took < us)
			print_error("%u us: over after %u\n", (unsigned)us, (unsigned)took);
		assert_true(took >= us);
		best = took < best ? took : best;
	}
	if (best > LATE_US(us))
		print_error("%u us: %u at best\n", (unsigned)us, (unsigned)best);
	assert_true(best <= LATE_US(us));
}

static void wait_on_evd(void *evd, DAT_TIMEOUT us)
{
	DAT_EVENT event;
	DAT_COUNT more;

	dt_fails(dat_evd_wait(evd, us, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
}

static void wait_on_cno(void *cno, DAT_TIMEOUT us)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	assert_int_equal(dat_cno_wait(cno, us, &evd), DAT_QUEUE_EMPTY);
}

/* With no connection, and with a connection that may cause events. */
static void check_evd_and_cno(void)
{
	void *state;
	struct conn_fixture *f;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	conn_setup(&state);
	f = state;
	cno = cno_create(&f->ia);
	evd = cno_evd(&f->ia, cno);
	check_time(wait_on_evd, evd, SHORT_US);
	check_time(wait_on_cno, cno, SHORT_US);
	conn_link(f, &f->a, &f->b);
	check_time(wait_on_evd, f->a.recv, SHORT_US);
	check_time(wait_on_evd, f->b.request, SHORT_US);
	check_time(wait_on_cno, cno, SHORT_US);
	conn_teardown(&state);
}

/* EVD-WAIT-05 CNO-WAIT-08: a thread that sleeps at once */
static void evd_wait_and_cno_wait__asleep__time_as_requested(void **state)
{
	(void)state;
	setenv("DAT_SPIN_US", "0", 1);
	check_evd_and_cno();
	unsetenv("DAT_SPIN_US");
}

/* EVD-WAIT-05 CNO-WAIT-08: with the default spin time, and with one longer than the time-out */
static void evd_wait_and_cno_wait__spinning__time_as_requested(void **state)
{
	(void)state;
	check_evd_and_cno();
	setenv("DAT_SPIN_US", "1000000", 1);
	check_evd_and_cno();
	unsetenv("DAT_SPIN_US");
}

/* Starts an attempt that nobody answers. */
static void connect_in_vain(void *arg, DAT_TIMEOUT us)
{
	struct conn_fixture *f = arg;

	conn_start_timed(f, f->a.ep, us);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_TIMED_OUT);
	dt_ok(dat_ep_reset(f->a.ep));
}

/* EP-CONNECT-12 EP-CONNECT-14 */
static void ep_connect__not_answered__time_as_requested(void **state)
{
	check_time(connect_in_vain, *state, CONN_SHORT_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evd_wait_and_cno_wait__asleep__time_as_requested),
		cmocka_unit_test(evd_wait_and_cno_wait__spinning__time_as_requested),
		conn_test(ep_connect__not_answered__time_as_requested),
	};

	return cmocka_run_group_tests_name("timeouts", tests, NULL, NULL);
}
