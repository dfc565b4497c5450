// SPDX-License-Identifier: BSD-2-Clause
/* The descriptor of a notification object (dat/opendat.h), an extension for poll loops. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <dat/opendat.h>

#include "dt.h"

struct fixture {
	struct dt_ia ia;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE a, b;
	int fd;
};

static DAT_EVD_HANDLE evd_on(struct fixture *fixture)
{
	DAT_EVD_HANDLE evd;

	dt_ok(dat_evd_create(fixture->ia.ia, 8, fixture->cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	return evd;
}

static int setup(void **state)
{
	static struct fixture fixture;

	dt_ia_open(&fixture.ia);
	dt_ok(dat_cno_create(fixture.ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &fixture.cno));
	fixture.a = evd_on(&fixture);
	fixture.b = evd_on(&fixture);
	dt_ok(dat_opendat_cno_fd(fixture.cno, &fixture.fd));
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	dt_ia_abort(&fixture->ia);
	return 0;
}

static void post(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	dt_ok(dat_evd_post_se(evd, &event));
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, timeout_ms) == 1 && (poll_fd.revents & POLLIN);
}

static DAT_EVD_HANDLE take(struct fixture *fixture)
{
	DAT_EVD_HANDLE evd;

	dt_ok(dat_cno_wait(fixture->cno, 0, &evd));
	return evd;
}

/* Readable exactly while a trigger is kept. */
static void cno_fd__triggers_kept__readable_until_taken(void **state)
{
	struct fixture *fixture = *state;

	assert_false(is_readable(fixture->fd, 0));
	post(fixture->a);
	post(fixture->a);
	post(fixture->b);
	assert_true(is_readable(fixture->fd, 0));
	assert_ptr_equal(take(fixture), fixture->a);
	assert_true(is_readable(fixture->fd, 0));
	assert_ptr_equal(take(fixture), fixture->b);
	assert_false(is_readable(fixture->fd, 0));
	post(fixture->b);
	assert_true(is_readable(fixture->fd, 0));
}

/* After a trigger ended with its EVD or was taken by a waiter, the descriptor is not readable. */
static void cno_fd__trigger_dropped__not_readable(void **state)
{
	struct fixture *fixture = *state;

	post(fixture->a);
	dt_ok(dat_evd_free(fixture->a));
	assert_false(is_readable(fixture->fd, 0));
}

/* One descriptor per object, closed on exec, also when it is asked for after the trigger. */
static void cno_fd__asked_again__the_same(void **state)
{
	struct fixture *fixture = *state;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	int fd = -1;

	dt_ok(dat_opendat_cno_fd(fixture->cno, &fd));
	assert_int_equal(fd, fixture->fd);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	dt_ok(dat_cno_create(fixture->ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_evd_create(fixture->ia.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	post(evd);
	dt_ok(dat_opendat_cno_fd(cno, &fd));
	assert_true(is_readable(fd, 0));
	dt_ok(dat_evd_free(evd));
	dt_ok(dat_cno_free(cno));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void cno_fd__bad_arguments__refused(void **state)
{
	struct fixture *fixture = *state;
	int fd = 7;

	dt_fails_with(dat_opendat_cno_fd(DAT_HANDLE_NULL, &fd), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_opendat_cno_fd(fixture->a, &fd), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_opendat_cno_fd(fixture->ia.ia, &fd), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_opendat_cno_fd(fixture->cno, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	assert_int_equal(fd, 7);
}

/* A message for a sleeping process makes it readable without a poll. */
static void cno_fd__message_arrives__readable(void **state)
{
	struct fixture *fixture = *state;
	struct dt_ep a, b;
	DAT_EVENT event;

	dt_ep_create(&fixture->ia, fixture->ia.pz, NULL, &a);
	dt_ep_create(&fixture->ia, fixture->ia.pz, NULL, &b);
	dt_ep_link(&fixture->ia, &a, &b);
	dt_ok(dat_evd_modify_cno(b.recv, fixture->cno));
	dt_ok(dat_ep_post_recv(b.ep, 0, NULL, dt_cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	dt_ok(dat_ep_post_send(a.ep, 0, NULL, dt_cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
	assert_true(is_readable(fixture->fd, 10000));
	assert_ptr_equal(take(fixture), b.recv);
	dt_ok(dat_evd_dequeue(b.recv, &event));
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
}

/* A program that closes the descriptor loses its notifications, and nothing else. */
static void cno_fd__closed_by_the_consumer__triggers_are_kept(void **state)
{
	struct fixture *fixture = *state;
	int fd;

	close(fixture->fd);
	post(fixture->a);
	assert_ptr_equal(take(fixture), fixture->a);
	dt_ok(dat_opendat_cno_fd(fixture->cno, &fd)); /* a new one */
	post(fixture->b);
	assert_true(is_readable(fd, 0));
	close(fd);
	assert_ptr_equal(take(fixture), fixture->b);
	dt_ok(dat_opendat_cno_fd(fixture->cno, &fd));
	assert_false(is_readable(fd, 0));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(cno_fd__triggers_kept__readable_until_taken),
		T(cno_fd__trigger_dropped__not_readable),
		T(cno_fd__asked_again__the_same),
		T(cno_fd__bad_arguments__refused),
		T(cno_fd__message_arrives__readable),
		T(cno_fd__closed_by_the_consumer__triggers_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
