// SPDX-License-Identifier: BSD-2-Clause
/*
 * More busy connections than one poll, or one batch of the service thread, looks at: each has its
 * turn. Both ends are in this process, so that twice as many connections are active.
 */
#include "dto_util.h"

#include <stdlib.h>

#define PAIRS (DT_SLOW ? 70 : 150) /* a poll checks 64 over shared memory, and 16 over TCP */
#define SLOT 64u
#define BURST 8u /* messages for each endpoint while no thread polls */

static struct crowd {
	struct dt_ia ia;
	struct dt_buf buf; /* a slot for each message of a burst, and one to send from */
	DAT_EVD_HANDLE recv, request, from_conn, to_conn;
	struct dt_ep from[150], to[150];
} crowd;

static void add_pair(unsigned i)
{
	struct dt_ep *from = &crowd.from[i], *to = &crowd.to[i];

	*from = (struct dt_ep){
		.recv = crowd.recv, .request = crowd.request, .conn = crowd.from_conn};
	*to = (struct dt_ep){.recv = crowd.recv, .request = crowd.request, .conn = crowd.to_conn};
	dt_ok(dat_ep_create(crowd.ia.ia, crowd.ia.pz, from->recv, from->request, from->conn, NULL,
			    &from->ep));
	dt_ok(dat_ep_create(crowd.ia.ia, crowd.ia.pz, to->recv, to->request, to->conn, NULL,
			    &to->ep));
	dt_ep_link(&crowd.ia, from, to);
}

static void open_crowd(const char *transport)
{
	assert_int_equal(setenv("DAT_TRANSPORT", transport, 1), 0);
	dt_ia_open(&crowd.ia);
	dt_buf_create(&crowd.ia, crowd.ia.pz, &crowd.buf, (PAIRS * BURST + 1) * SLOT,
		      DAT_MEM_PRIV_ALL_FLAG);
	crowd.recv = dt_evd_create(&crowd.ia, 2 * PAIRS * BURST, DAT_EVD_DTO_FLAG);
	crowd.request = dt_evd_create(&crowd.ia, 64, DAT_EVD_DTO_FLAG);
	crowd.from_conn = dt_evd_create(&crowd.ia, 2 * PAIRS, DAT_EVD_CONNECTION_FLAG);
	crowd.to_conn = dt_evd_create(&crowd.ia, 2 * PAIRS, DAT_EVD_CONNECTION_FLAG);
	for (unsigned i = 0; i < PAIRS; i++)
		add_pair(i);
}

static void close_crowd(void)
{
	dt_ia_abort(&crowd.ia);
	dt_mem_free(crowd.buf.p, crowd.buf.mapped);
	unsetenv("DAT_TRANSPORT");
}

static size_t slot_of(unsigned pair, unsigned message)
{
	return (pair * BURST + message) * SLOT;
}

static void give(unsigned pair, unsigned message)
{
	post_recv(&crowd.to[pair], dt_seg(&crowd.buf, slot_of(pair, message), SLOT), pair);
}

static void send_to(unsigned pair)
{
	post_send(&crowd.from[pair], dt_seg(&crowd.buf, slot_of(PAIRS, 0), SLOT), pair,
		  DAT_COMPLETION_SUPPRESS_FLAG);
}

/* --- polled --- */

/* The pair of the next message; this thread polls for it. */
static unsigned next_message(void)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	while (dat_evd_dequeue(crowd.recv, &event) != DAT_SUCCESS)
		assert_true(dt_now_us() < end);
	dto = &event.event_data.dto_completion_event_data;
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(dto->status, DAT_DTO_SUCCESS);
	assert_true(dto->user_cookie.as_64 < PAIRS);
	return (unsigned)dto->user_cookie.as_64;
}

/* Takes a message, and has the peer send the next one on the same connection. */
static unsigned take_and_continue(unsigned quiet)
{
	const unsigned pair = next_message();

	if (pair != quiet) {
		give(pair, 0);
		send_to(pair);
	}
	return pair;
}

/*
 * All others have a message under way all the time. How many of theirs come before the one of the
 * quiet pair depends on when the service thread leaves its connection to this thread, so only time
 * bounds it; test_dequeue.c counts.
 */
static void check_served(unsigned quiet)
{
	uint64_t end;

	for (unsigned i = 0; i < PAIRS; i++) {
		give(i, 0);
		if (i != quiet)
			send_to(i);
	}
	for (unsigned i = 0; i < 2 * PAIRS; i++)
		assert_int_not_equal(take_and_continue(quiet), quiet);
	send_to(quiet);
	end = dt_now_us() + DT_WAIT_US;
	while (take_and_continue(quiet) != quiet)
		assert_true(dt_now_us() < end);
	for (unsigned i = 0; i < PAIRS - 1; i++)
		(void)next_message();
}

/* EVD-DEQUEUE-01 DTO-10 */
static void dequeue__many_are_busy__each_in_its_turn(void **state)
{
	static const char *const transports[] = {"shm", "tcp"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		open_crowd(transports[i]);
		for (unsigned quiet = 0; quiet < PAIRS; quiet += PAIRS / 10)
			check_served(quiet);
		close_crowd();
	}
}

/* --- served by the service thread --- */

/* This thread makes no call that polls. */
static void check_placed(void)
{
	memset(crowd.buf.p, RIG_FILL, slot_of(PAIRS, 0));
	memset(crowd.buf.p + slot_of(PAIRS, 0), 1, SLOT);
	for (unsigned i = 0; i < PAIRS; i++)
		for (unsigned n = 0; n < BURST; n++)
			give(i, n);
	for (unsigned n = 0; n < BURST; n++)
		for (unsigned i = 0; i < PAIRS; i++)
			send_to(i);
	for (unsigned i = 0; i < PAIRS; i++)
		for (unsigned n = 0; n < BURST; n++)
			dt_until(dto_is_written, crowd.buf.p + slot_of(i, n) + SLOT - 1);
	for (unsigned i = 0; i < PAIRS * BURST; i++)
		(void)next_message();
}

/* DTO-10 COMPAT-46 */
static void service_thread__many_are_busy__all_bytes_arrive(void **state)
{
	static const char *const transports[] = {"shm", "tcp"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		open_crowd(transports[i]);
		for (unsigned round = 0; round < 5; round++)
			check_placed();
		close_crowd();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dequeue__many_are_busy__each_in_its_turn),
		cmocka_unit_test(service_thread__many_are_busy__all_bytes_arrive),
	};

	return cmocka_run_group_tests_name("many_active", tests, NULL, NULL);
}
