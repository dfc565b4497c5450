// SPDX-License-Identifier: BSD-2-Clause
/*
 * Polls of a consumer among many active connections: one whose work needs the slow path gets it in
 * its turn, however many others are active and wherever the polls begin. The others have no work.
 */
#include "../soft/peer.h"
#include "fast.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/engine/active.h"

#define OTHERS 150u
/*
 * In so many polls each connection has its turn, even if three checks in four are out of turn. One
 * poll makes up to SHM_POLL_MAX checks.
 */
#define POLLS 12u
#define FEW 24u

static struct shm_conn *others[OTHERS];
static struct shm_side silent; /* the words of a peer that does nothing */

static int open_crowd(void **state)
{
	struct lab *lab = open_lab(false);

	for (unsigned i = 0; i < OTHERS; i++) {
		assert_int_equal(shm_conn_create(&lab->engine, -1, SHM_PASSIVE, &others[i]), 0);
		assert_int_equal(
			shm_engine_add(&lab->engine, SHM_SLOT_CONN, others[i], &others[i]->id), 0);
		others[i]->theirs = &silent;
		others[i]->watch = SHM_WATCH_BLOCKED; /* has no ring to check */
	}
	*state = lab;
	return 0;
}

static void set_active(struct lab *lab, unsigned from, unsigned to, bool is_active)
{
	for (unsigned i = from; i < to; i++)
		if (is_active)
			shm_engine_activate(&lab->engine, others[i]);
		else
			shm_engine_deactivate(&lab->engine, others[i]);
}

static int close_crowd(void **state)
{
	struct lab *lab = *state;

	set_active(lab, 0, OTHERS, false);
	for (unsigned i = 0; i < OTHERS; i++) {
		others[i]->theirs = NULL;
		shm_conn_put(others[i]);
	}
	close_lab(lab);
	return 0;
}

/* A dequeue, as the core makes one. */
static enum transport_poll dequeue_from(struct lab *lab, struct lab_evd *evd)
{
	DAT_EVENT event;

	return lab_dequeue(lab, evd, &event);
}

static enum transport_poll dequeue(struct lab *lab)
{
	return dequeue_from(lab, &lab->recv_evd);
}

static void dequeue_nothing(struct lab *lab)
{
	enum transport_poll found = dequeue(lab);

	assert_int_not_equal(found, TRANSPORT_POLL_FOUND);
	if (found == TRANSPORT_POLL_SLOW)
		(void)shm_engine_progress(&lab->engine);
}

/* Takes the message that waits for a Receive, and is ready for the next one. */
static void take_blocked(struct lab *lab)
{
	assert_true(lab->conn->arrival.is_blocked);
	assert_true(lab_post_receive(lab, 0, 8));
	shm_ep_post_recv(&lab->ep);
	lab_take_events(lab);
	assert_false(lab->conn->arrival.is_blocked);
}

/*
 * A message without a Receive needs the slow path, which notes that it waits. `before` others and
 * `behind` others are active; `gaps` places are empty.
 */
static void check_served(struct lab *lab, unsigned before, unsigned behind, unsigned gaps,
			 unsigned polls)
{
	const unsigned end = before + gaps + behind;

	set_active(lab, 0, before + gaps, true);
	shm_engine_activate(&lab->engine, lab->conn);
	set_active(lab, before + gaps, end, true);
	set_active(lab, before, before + gaps, false);
	for (unsigned i = 0; i < polls; i++) /* the turns begin elsewhere */
		dequeue_nothing(lab);
	peer_sends(lab, lab_send_entry(8), 0);
	for (unsigned i = 0; i < POLLS && !lab->conn->arrival.is_blocked; i++)
		dequeue_nothing(lab);
	take_blocked(lab);
	shm_engine_deactivate(&lab->engine, lab->conn);
	set_active(lab, 0, end, false);
}

/* EVD-DEQUEUE-01 SRQ-USE-09: more places than connections, so that some polls are out of turn */
static void dequeue__slow_work_among_gaps__served_in_its_turn(void **state)
{
	struct lab *lab = *state;

	for (unsigned before = 0; before < 14; before++)
		for (unsigned behind = 0; before + behind < 14; behind++)
			for (unsigned polls = 0; polls < 8; polls++)
				check_served(lab, before, behind, 16, polls);
}

/* The same with more connections than one poll checks. */
static void dequeue__slow_work_among_many__served_in_its_turn(void **state)
{
	struct lab *lab = *state;

	for (unsigned before = 0; before < 140; before += 7)
		for (unsigned behind = 0; before + behind < 140; behind += 5)
			for (unsigned polls = 0; polls < 4; polls++)
				check_served(lab, before, behind, 0, polls);
}

/*
 * EP-RECVQ-04 EVD-WAIT-30: One poll checks each connection of a list that is not longer than
 * SHM_POLL_MAX, its gaps included: of FEW connections, it never is.
 */
static void check_found_at_once(struct lab *lab, unsigned count, unsigned polls)
{
	enum transport_poll found;

	set_active(lab, 0, count / 2, true);
	shm_engine_activate(&lab->engine, lab->conn);
	set_active(lab, count / 2, count, true);
	assert_true(lab_post_receive(lab, 0, 8));
	for (unsigned i = 0; i < polls; i++) /* the turns begin elsewhere */
		dequeue_nothing(lab);
	peer_sends(lab, lab_send_entry(8), 0);
	found = polls % 2 ? dequeue(lab) : TRANSPORT_POLL_SLOW;
	if (found == TRANSPORT_POLL_FOUND) {
		lab->received++; /* the caller has the event */
	} else {
		assert_int_equal(found, TRANSPORT_POLL_SLOW);
		assert_int_equal(shm_engine_progress(&lab->engine), 1);
		lab_take_events(lab);
	}
	assert_false(lab->ep.recv.head != lab->ep.recv.tail);
	shm_engine_deactivate(&lab->engine, lab->conn);
	set_active(lab, 0, count, false);
}

static void poll__message_among_others__found_at_once(void **state)
{
	for (unsigned count = 1; count < FEW; count++)
		for (unsigned polls = 0; polls < 40; polls++)
			check_found_at_once(*state, count, polls);
}

/* The lab's connection and FEW others behind it are active, and it is its turn. */
static void set_few(struct lab *lab)
{
	shm_engine_deactivate(&lab->engine, lab->conn);
	shm_engine_activate(&lab->engine, lab->conn);
	set_active(lab, 0, FEW, true);
	lab->engine.active_next = shm_active_at(lab->conn);
}

/* The checks of others so far. */
static unsigned others_checked(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < FEW; i++)
		sum += others[i]->idle_polls;
	return sum;
}

/* Each other message is found without a check of the others. */
static void dequeue__stream_among_few__checked_first(void **state)
{
	struct lab *lab = *state;
	unsigned at_once = 0;

	set_few(lab);
	for (unsigned i = 0; i < 32; i++) {
		unsigned before = others_checked();

		assert_true(lab_post_receive(lab, 0, 8));
		peer_sends(lab, lab_send_entry(8), 0);
		assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
		at_once += others_checked() == before;
	}
	assert_in_range(at_once, 15, 17);
	assert_int_equal(others_checked(), (32 - at_once) * FEW);
}

/* EP-RECVQ-04: A connection that is checked first takes no check from the others. */
static void dequeue__checked_first__others_are_checked_too(void **state)
{
	struct lab *lab = *state;
	unsigned before;

	set_few(lab);
	assert_true(lab_post_receive(lab, 0, 8));
	peer_sends(lab, lab_send_entry(8), 0);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
	/* the message has still to be reported */
	lab->engine.active_next = shm_active_at(lab->conn);
	before = others_checked();
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY);
	assert_int_equal(atomic_load(&lab->conn->mine->done), 1);
	assert_int_equal(others_checked(), before + FEW);
}

/* All are active, and the turn of the lab's connection is far. */
static void set_crowd(struct lab *lab)
{
	shm_engine_deactivate(&lab->engine, lab->conn);
	set_active(lab, 0, OTHERS / 2, true);
	shm_engine_activate(&lab->engine, lab->conn);
	set_active(lab, OTHERS / 2, OTHERS, true);
	lab->engine.active_next = 0;
	atomic_store(&lab->engine.posted_at, shm_active_at(lab->conn));
}

/* EP-RECVQ-04 EP-STATUS-02: A query of one endpoint finds it where a poll does not. */
static void progress_ep__message_among_many__found(void **state)
{
	struct lab *lab = *state;

	set_crowd(lab);
	assert_true(lab_post_receive(lab, 0, 8));
	atomic_store(&lab->engine.posted_at, 0); /* it is not a likely one */
	peer_sends(lab, lab_send_entry(8), 0);
	assert_int_equal(shm_engine_progress(&lab->engine), 0);
	shm_ep_progress(&lab->ep);
	lab_take_events(lab);
	assert_int_equal(lab->received, 1);
	/* nothing more has arrived, or the connection has ended */
	shm_ep_progress(&lab->ep);
	shm_ep_disconnect(&lab->ep, false);
	shm_ep_progress(&lab->ep);
	assert_int_equal(lab->received, 1);
}

/* The checks that a dequeue makes to find the next message of the peer on the list. */
static unsigned count_checks(struct lab *lab)
{
	unsigned before = lab->engine.checked;

	lab->recv_evd.evd.last_ep = NULL;
	assert_true(lab_post_receive(lab, 0, 8));
	peer_sends(lab, lab_send_entry(8), 0);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
	return lab->engine.checked - before;
}

/*
 * The answer to a Send is expected. It is found by a check out of turn, of which one in eight is of
 * that connection; after that three in four are.
 */
static void dequeue__answers_among_many__found_in_few_checks(void **state)
{
	struct lab *lab = *state;

	set_crowd(lab);
	for (unsigned i = 0; i < 32; i++)
		assert_in_range(count_checks(lab), 1, i ? 2 : 8);
}

/*
 * A message without a Receive needs the slow path. A check out of turn finds it, the fast path
 * declines it, and the slow path serves it in the same dequeue, in few checks.
 */
static void dequeue__slow_work_out_of_turn__served_at_once(void **state)
{
	struct lab *lab = *state;
	unsigned before;

	set_crowd(lab);
	for (unsigned i = 0; i < 200; i++) {
		/* the guess is right, and the turn somewhere */
		lab->engine.is_likely = true;
		lab->engine.is_answer = false;
		lab->engine.likely_next = shm_active_at(lab->conn);
		atomic_store(&lab->engine.posted_at, 0);
		lab->engine.active_next = (i * 7) % OTHERS;
		peer_sends(lab, lab_send_entry(8), 0);
		before = lab->engine.checked;
		assert_int_equal(dequeue(lab), TRANSPORT_POLL_SLOW);
		assert_in_range(lab->engine.checked - before, 1, 2);
		(void)shm_engine_progress(&lab->engine);
		take_blocked(lab);
		lab->engine.checked = before; /* it never reaches SHM_LIKELY_FOR */
	}
}

/* After the wrong connection was expected for long, most checks are in turn again. */
static void dequeue__no_answer_for_long__most_checks_in_turn(void **state)
{
	struct lab *lab = *state;
	unsigned at, turns;

	set_crowd(lab);
	(void)count_checks(lab);
	assert_true(lab->engine.is_likely);
	for (unsigned i = 0; i < SHM_LIKELY_FOR; i++)
		dequeue_nothing(lab);
	assert_false(lab->engine.is_likely);
	at = lab->engine.active_next;
	dequeue_nothing(lab);
	turns = (lab->engine.active_next + lab->engine.active_end - at) % lab->engine.active_end;
	assert_in_range(turns, 48, 64);
}

/* --- the connection of the last completion is checked first --- */

static void take_one(struct lab *lab)
{
	assert_true(lab_post_receive(lab, 0, 8));
	peer_sends(lab, lab_send_entry(8), 0);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_FOUND);
}

/*
 * SRQ-USE-09 EVD-DEQUEUE-01: It has work in each other poll only, however long its stream is; in
 * between, others have their turn.
 */
static void dequeue__stream_among_many__others_have_their_turn(void **state)
{
	struct lab *lab = *state;
	unsigned before, at_once = 0;

	set_crowd(lab);
	for (unsigned i = 0; i < 32; i++) {
		before = lab->engine.checked;
		take_one(lab);
		at_once += lab->engine.checked == before;
	}
	assert_in_range(at_once, 15, 17);
}

/* The same if the completions are those of requests, on an EVD of their own. */
static void dequeue__acknowledgements_among_few__others_have_their_turn(void **state)
{
	struct lab *lab = *state;
	unsigned before, at_once = 0;

	set_few(lab);
	for (unsigned i = 0; i < 32; i++) {
		before = others_checked();
		assert_true(lab_post(lab, CORE_OP_SEND, 0, 8, 0, 0));
		atomic_store(&lab->peer->done, lab->conn->sent);
		assert_int_equal(dequeue_from(lab, &lab->request_evd), TRANSPORT_POLL_FOUND);
		at_once += others_checked() == before;
	}
	assert_in_range(at_once, 15, 17);
}

/* A cell that holds no endpoint any more, or one that needs the slow path, is left out. */
static void dequeue__last_endpoint_is_gone__found_on_the_list(void **state)
{
	struct lab *lab = *state;
	struct core_handle dead;

	memset(&dead, 0, sizeof(dead));
	core_lock_init(&dead.lock);
	atomic_store(&dead.lock.owner, core_lock_self());
	set_few(lab);
	take_one(lab);
	assert_ptr_equal(lab->recv_evd.evd.last_ep, &lab->cell);
	lab->recv_evd.evd.last_ep = &dead;
	take_one(lab);
	assert_int_equal(atomic_load(&dead.lock.inside), 0);
	assert_ptr_equal(lab->recv_evd.evd.last_ep, &lab->cell);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY); /* acknowledges it */
	core_handle_set_slow(&lab->cell, CORE_EP_SLOW_QUEUE);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY);
	assert_int_equal(atomic_load(&lab->cell.lock.inside), 0);
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_QUEUE);
	core_lock_destroy(&dead.lock);
}

/* DTO-52: Polls of the only connection leave out the list, but not for long. */
static void dequeue__only_connection_and_rare_work__found_soon(void **state)
{
	struct lab *lab = *state;
	unsigned polls = 1;

	take_one(lab);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY); /* acknowledges it */
	atomic_store(&lab->peer->waits, 1);
	while (dequeue(lab) == TRANSPORT_POLL_EMPTY)
		assert_in_range(polls++, 1, SHM_LIST_AFTER);
	assert_true(polls > 1);
}

/* The same if another connection is the only one that is active: the last one is asleep. */
static void dequeue__last_connection_is_not_active__list_checked(void **state)
{
	struct lab *lab = *state;
	unsigned before;

	take_one(lab);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY);
	shm_engine_deactivate(&lab->engine, lab->conn);
	set_active(lab, 0, 1, true);
	before = others_checked();
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY);
	assert_int_equal(dequeue(lab), TRANSPORT_POLL_EMPTY);
	assert_int_equal(others_checked(), before + 2);
}

int main(void)
{
#define CROWD(test) cmocka_unit_test_setup_teardown(test, open_crowd, close_crowd)
	const struct CMUnitTest tests[] = {
		CROWD(dequeue__slow_work_among_gaps__served_in_its_turn),
		CROWD(dequeue__slow_work_among_many__served_in_its_turn),
		CROWD(poll__message_among_others__found_at_once),
		CROWD(dequeue__stream_among_few__checked_first),
		CROWD(dequeue__checked_first__others_are_checked_too),
		CROWD(progress_ep__message_among_many__found),
		CROWD(dequeue__answers_among_many__found_in_few_checks),
		CROWD(dequeue__slow_work_out_of_turn__served_at_once),
		CROWD(dequeue__no_answer_for_long__most_checks_in_turn),
		CROWD(dequeue__stream_among_many__others_have_their_turn),
		CROWD(dequeue__acknowledgements_among_few__others_have_their_turn),
		CROWD(dequeue__last_endpoint_is_gone__found_on_the_list),
		CROWD(dequeue__only_connection_and_rare_work__found_soon),
		CROWD(dequeue__last_connection_is_not_active__list_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
