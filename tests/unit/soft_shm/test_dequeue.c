// SPDX-License-Identifier: BSD-2-Clause
/*
 * A dequeue over all connections of an engine: alone, and among many active connections, whose
 * peers do nothing. One whose work needs the slow path gets it in its turn, wherever the polls
 * begin.
 */
#include "../soft/peer.h"
#include "core/base/clock.h"
#include "play.h"
#include "soft/fds.h"
#include "soft/shm/engine/drive.h"

#define OTHERS 300u
/* In so many polls each connection has its turn. One poll makes up to SHM_POLL_MAX checks. */
#define POLLS 4u
#define FEW 24u

static struct shm_conn *others[OTHERS];

static int open_crowd(void **state)
{
	struct lab *lab = open_fast();

	for (unsigned i = 0; i < OTHERS; i++) {
		int segment_fd;

		assert_int_equal(shm_conn_create(lab->engine, -1, &others[i]), 0);
		assert_int_equal(shm_conn_make_segment(others[i], &segment_fd), 0);
		soft_fd_close(segment_fd);
	}
	*state = lab;
	return 0;
}

static void set_active(struct lab *lab, unsigned from, unsigned to, bool is_active)
{
	for (unsigned i = from; i < to; i++)
		if (is_active)
			shm_engine_activate(lab->engine, others[i]);
		else
			shm_engine_deactivate(lab->engine, others[i]);
}

static int close_crowd(void **state)
{
	struct lab *lab = *state;

	set_active(lab, 0, OTHERS, false);
	for (unsigned i = 0; i < OTHERS; i++)
		shm_conn_put(others[i]);
	lab_close(lab);
	return 0;
}

/* A dequeue, as the core makes one; an event is taken. */
static enum transport_poll dequeue_from(struct lab *lab, struct lab_evd *evd)
{
	DAT_EVENT event;
	enum transport_poll found = lab_dequeue(lab, evd, &event);

	if (found == TRANSPORT_POLL_FOUND)
		lab_take_event(lab, &event);
	return found;
}

static enum transport_poll dequeue(struct lab *lab)
{
	return dequeue_from(lab, &lab->recv_evd);
}

/* The peer sends a message that has a Receive. */
static void send_one(struct lab *lab)
{
	assert_true(lab_post_receive(lab, 0, 8));
	peer_puts(lab, lab_send_entry(8), 0);
}

/* --- one connection --- */

static void dequeue__messages_in_a_row__one_each_and_then_empty(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY);
	for (unsigned i = 0; i < 5; i++)
		send_one(lab);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
		assert_int_equal(lab->received, i + 1);
	}
	assert_int_equal(done_word(lab), 0);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY); /* acknowledges them */
	assert_int_equal(done_word(lab), 5);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY);
}

static void dequeue__endpoint_not_on_its_fast_path__slow_path(void **state)
{
	struct lab *lab = *state;

	send_one(lab);
	core_handle_set_slow(&lab->cell, CORE_EP_SLOW_QUEUE);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_SLOW);
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_QUEUE);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
}

/* The connection is still on the list, but its endpoint has released it, and may own another one. */
static void dequeue__endpoint_has_released_it__slow_path(void **state)
{
	struct lab *lab = *state;
	struct shm_ep *mine = lab->ep.transport;

	send_one(lab);
	mine->conn = NULL;
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_SLOW);
	assert_int_equal(lab->ep.recv.head, 0);
	mine->conn = lab->conn;
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
}

/* Work that the fast path declines after a completion is done before long. */
static void dequeue__completions_and_something_rare__slow_path_in_time(void **state)
{
	enum transport_poll found = TRANSPORT_POLL_FOUND;
	struct lab *lab = *state;
	uint32_t i;

	lab->ep.request_evd = lab->ep.recv_evd;
	peer_puts(lab, lab_send_entry(8), 0); /* no Receive */
	for (i = 0; found == TRANSPORT_POLL_FOUND; i++) {
		assert_in_range(i, 0, 100);
		post_send(lab, 0, 8);
		lab_peer_done(lab, i + 1);
		found = dequeue(lab);
	}
	assert_int_equal(found, TRANSPORT_POLL_SLOW);
	assert_int_equal(lab->done, i - 1);
	(void)shm_engine_progress(lab->engine);
	lab_take_events(lab);
	assert_int_equal(lab->done, i);
	assert_true(is_blocked(lab));
}

/* A stream of messages does not hide connections over TCP, which the slow path polls. */
static void dequeue__messages_and_tcp__slow_path_in_time(void **state)
{
	struct lab *lab = *state;
	unsigned found = 0;

	core_ia_set_slow_poll(&lab->ia, true);
	do {
		assert_in_range(found++, 0, 100);
		send_one(lab);
	} while (dequeue(lab) == TRANSPORT_POLL_FOUND);
	assert_true(found > 10);
}

/* DTO-52: polls of the only connection leave out the list, but not for long. */
static void dequeue__only_connection_and_rare_work__found_soon(void **state)
{
	struct lab *lab = *state;
	unsigned polls = 1;

	send_one(lab);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY); /* acknowledges it */
	atomic_store(&lab->peer->waits, SHM_WAITS_RECEIVE);
	while (dequeue(lab) == TRANSPORT_POLL_EMPTY)
		assert_in_range(polls++, 1, SHM_LIST_AFTER);
	assert_true(polls > 1);
}

/* --- the pulse, which tells peers that a thread polls here --- */

/* As a peer reads it. */
static uint64_t pulse(struct lab *lab)
{
	struct soft_view *view;
	uint64_t ns;

	assert_int_equal(soft_view_get(soft_keys_fd(lab->adapter.keys), &view), 0);
	ns = soft_view_pulse(view);
	soft_view_put(view);
	return ns;
}

/* COMPAT-01 */
static void dequeue__in_vain__pulse_is_the_time_until_one_finds_a_completion(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(pulse(lab), 0);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t before = core_now_ns();

		assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY);
		assert_in_range(pulse(lab), before, core_now_ns());
		send_one(lab);
		assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
		assert_int_equal(pulse(lab), 0);
	}
}

/* The pulse follows polls in vain, on the fast path and on the slow one; also if all sleeps. */
static void dequeue__in_vain_for_long__pulse_stays_recent(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < 100; i++) {
		uint64_t before = core_now_ns();

		for (unsigned j = 0; j < SHM_PULSE_POLLS; j++)
			if (dequeue(lab) == TRANSPORT_POLL_SLOW)
				(void)shm_engine_progress(lab->engine);
		assert_in_range(pulse(lab), before, core_now_ns());
		if (i == 50)
			assert_true(shm_conn_arm(lab->conn));
	}
}

/* --- among others --- */

/* The lab's connection is active, with so many others before and behind it, at any turn. */
static void set_around(struct lab *lab, unsigned before, unsigned behind)
{
	shm_engine_deactivate(lab->engine, lab->conn);
	set_active(lab, 0, OTHERS, false);
	set_active(lab, 0, before, true);
	shm_engine_activate(lab->engine, lab->conn);
	set_active(lab, before, before + behind, true);
}

/* The turns begin with the lab's connection. */
static void turn_to_conn(struct lab *lab)
{
	struct shm_conn *conn = NULL;

	shm_engine_deactivate(lab->engine, lab->conn);
	shm_engine_activate(lab->engine, lab->conn); /* the last one */
	while (conn != lab->conn) {
		conn = shm_engine_rotate(lab->engine);
		shm_conn_put(conn);
	}
	for (unsigned i = shm_active_count(lab->engine) - 1; i; i--)
		shm_conn_put(shm_engine_rotate(lab->engine));
}

/* The checks of others in vain so far. */
static unsigned others_checked(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < OTHERS; i++)
		sum += shm_conn_idle(others[i]);
	return sum;
}

/* A message without a Receive needs the slow path, which notes that it waits. */
static void check_served(struct lab *lab, unsigned polls)
{
	peer_puts(lab, lab_send_entry(8), 0);
	for (unsigned i = 0; i < polls && !is_blocked(lab); i++)
		if (dequeue(lab) == TRANSPORT_POLL_SLOW)
			(void)shm_engine_progress(lab->engine);
	assert_true(is_blocked(lab));
	assert_true(lab_post_receive(lab, 0, 8));
	shm_ep_post_recv(&lab->ep);
	lab_take_events(lab);
	assert_false(is_blocked(lab));
}

/* EVD-DEQUEUE-01 SRQ-USE-09: more places than connections, or more than one poll checks */
static void dequeue__slow_work_among_others__served_in_its_turn(void **state)
{
	struct lab *lab = *state;

	for (unsigned before = 0; before < 140; before += before < 14 ? 1 : 7) {
		for (unsigned behind = 0; before + behind < 140; behind += behind < 14 ? 1 : 5) {
			set_around(lab, before, behind + 16);
			set_active(lab, before, before + 16, false);
			for (unsigned polls = 0; polls < before % 8; polls++)
				(void)dequeue(lab); /* the turns begin elsewhere */
			check_served(lab, POLLS);
		}
	}
}

/* EP-RECVQ-04 EVD-WAIT-30: one poll checks each connection of a list of up to SHM_POLL_MAX. */
static void poll__message_among_few__found_at_once(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < FEW * 40; i++) {
		uint32_t received = lab->received;

		set_around(lab, i % FEW / 2, i % FEW - i % FEW / 2);
		for (unsigned polls = 0; polls < i / FEW; polls++)
			(void)dequeue(lab); /* the turns begin elsewhere */
		send_one(lab);
		if (i % 2 == 0 || dequeue(lab) != TRANSPORT_POLL_FOUND) {
			assert_int_equal(shm_engine_progress(lab->engine), 1);
			lab_take_events(lab);
		}
		assert_int_equal(lab->received, received + 1);
	}
}

/* EP-RECVQ-04 EP-STATUS-02: a query of one endpoint finds it where a poll does not. */
static void progress_ep__message_among_many__found(void **state)
{
	struct lab *lab = *state;

	set_around(lab, OTHERS / 2, OTHERS / 2);
	turn_to_conn(lab);
	shm_conn_put(shm_engine_rotate(lab->engine)); /* its turn is over */
	send_one(lab);
	assert_int_equal(shm_engine_progress(lab->engine), 0);
	shm_ep_progress(&lab->ep);
	lab_take_events(lab);
	assert_int_equal(lab->received, 1);
	/* nothing more has arrived, or the connection has ended */
	shm_ep_progress(&lab->ep);
	shm_ep_disconnect(&lab->ep, false);
	shm_ep_progress(&lab->ep);
	assert_int_equal(lab->received, 1);
}

/*
 * SRQ-USE-09 EVD-DEQUEUE-01 EP-RECVQ-04: the connection of the last completion is checked first,
 * but in each other poll only, however long its stream is: in between, others have their turn. Of
 * requests as of messages.
 */
static void dequeue__stream__each_other_poll_checks_the_list(void **state)
{
	struct lab *lab = *state;

	for (unsigned is_send = 0; is_send < 2; is_send++) {
		unsigned at_once = 0, checked;

		set_around(lab, 0, FEW);
		turn_to_conn(lab);
		checked = others_checked();
		for (unsigned i = 0; i < 32; i++) {
			unsigned before = others_checked();

			if (is_send) {
				post_send(lab, 0, 8);
				lab_peer_done(lab, i + 1);
			} else {
				send_one(lab);
			}
			assert_int_equal(
				dequeue_from(lab, is_send ? &lab->request_evd : &lab->recv_evd),
				TRANSPORT_POLL_FOUND);
			at_once += others_checked() == before;
		}
		assert_in_range(at_once, 15, 17);
		assert_int_equal(others_checked(), checked + (32 - at_once) * FEW);
		assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY);
	}
}

/* EP-RECVQ-04: a connection that is checked first takes no check from the others. */
static void dequeue__checked_first__others_are_checked_too(void **state)
{
	struct lab *lab = *state;
	unsigned before;

	set_around(lab, 0, FEW);
	turn_to_conn(lab);
	send_one(lab);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
	before = others_checked();
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY); /* reports the message, too */
	assert_int_equal(done_word(lab), 1);
	assert_int_equal(others_checked(), before + FEW);
}

/* A cell that holds no endpoint any more, or one that needs the slow path, is left out. */
static void dequeue__last_endpoint_is_gone__found_on_the_list(void **state)
{
	struct lab *lab = *state;
	struct core_handle dead;

	memset(&dead, 0, sizeof(dead));
	core_lock_init(&dead.lock);
	lab_own_lock(&dead.lock);
	set_around(lab, 0, FEW);
	send_one(lab);
	while (dequeue(lab) != TRANSPORT_POLL_FOUND)
		continue;
	lab->recv_evd.evd.last_ep = &dead;
	send_one(lab);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
	assert_ptr_equal(lab->recv_evd.evd.last_ep, &lab->cell);
	core_lock_destroy(&dead.lock);
}

int main(void)
{
#define CROWD(test) cmocka_unit_test_setup_teardown(test, open_crowd, close_crowd)
	const struct CMUnitTest tests[] = {
		FAST(dequeue__messages_in_a_row__one_each_and_then_empty),
		FAST(dequeue__endpoint_not_on_its_fast_path__slow_path),
		FAST(dequeue__endpoint_has_released_it__slow_path),
		FAST(dequeue__completions_and_something_rare__slow_path_in_time),
		FAST(dequeue__messages_and_tcp__slow_path_in_time),
		FAST(dequeue__only_connection_and_rare_work__found_soon),
		FAST(dequeue__in_vain__pulse_is_the_time_until_one_finds_a_completion),
		FAST(dequeue__in_vain_for_long__pulse_stays_recent),
		CROWD(dequeue__slow_work_among_others__served_in_its_turn),
		CROWD(poll__message_among_few__found_at_once),
		CROWD(progress_ep__message_among_many__found),
		CROWD(dequeue__stream__each_other_poll_checks_the_list),
		CROWD(dequeue__checked_first__others_are_checked_too),
		CROWD(dequeue__last_endpoint_is_gone__found_on_the_list),
	};

	return cmocka_run_group_tests_name("shm dequeue", tests, NULL, NULL);
}
