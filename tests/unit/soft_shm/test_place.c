// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages that the sender places in the Receive of a program that polls its memory (COMPAT-46),
 * both sides: what is offered, what is placed, and what a peer cannot do with it.
 */
#include "place.h"
#include "core/ep/complete.h"
#include "soft/copy.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/wire.h"

static int setup(void **state)
{
	*state = lab_open(CORE_COPY_AUTO, true);
	return 0;
}

/* --- our side receives --- */

/* A new lab in the place of the one before. */
static struct lab *reopen(void **state, bool has_cma)
{
	lab_close(*state);
	*state = lab_open(CORE_COPY_AUTO, has_cma);
	return *state;
}

static void arm__receive_posted__offered_and_on_the_list(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_false(has_offer(lab));
	assert_true(lab_sleep(lab, true));
	assert_true(has_offer(lab));
	assert_int_equal(mine(lab)->offer_key, lab->rkey);
	assert_int_equal(mine(lab)->offer_address, (uintptr_t)lab->memory + AT);
	assert_int_equal(mine(lab)->offer_length, SIZE);
	assert_int_equal(atomic_load(&lab->engine.active_count), 1);
	/* a thread that goes to sleep takes it off the list, and then needs packets */
	assert_true(shm_conn_arm(lab->conn, &lab->ep));
	assert_int_equal(atomic_load(&lab->engine.active_count), 0);
	assert_int_equal(atomic_load(&mine(lab)->is_patient), 0);
}

/* A Receive that cannot be offered is left to the ring. */
static void arm__receive_not_suitable__no_offer(void **state)
{
	struct lab *lab = *state;
	struct core_wqe *receive = &lab->receives[0];
	struct core_srq srq;

	assert_true(lab_sleep(lab, true));
	assert_false(has_offer(lab)); /* there is none */
	assert_true(lab_post_receive(lab, AT, SIZE));
	atomic_store(&mine(lab)->offer, 0);
	lab->conn->offer = 0;
	lab->conn->remote.is_pulling = false; /* the peer cannot access our memory */
	assert_true(lab_sleep(lab, true));
	assert_false(has_offer(lab));
	lab->conn->remote.is_pulling = true;
	lab->is_watched = true; /* a message wakes a thread */
	assert_true(lab_sleep(lab, true));
	assert_false(has_offer(lab));
	lab->is_watched = false;
	core_handle_set_slow(&lab->cell, CORE_EP_SLOW_WATERMARK);
	assert_true(lab_sleep(lab, true));
	assert_false(has_offer(lab));
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_WATERMARK);
	lab->ep.srq = &srq;
	assert_true(lab_sleep(lab, true));
	assert_false(has_offer(lab));
	lab->ep.srq = NULL;
	receive->segments = 2;
	assert_true(lab_sleep(lab, true));
	assert_false(has_offer(lab));
	receive->segments = 1;
	receive->iov->lmr_context++; /* its region was freed */
	assert_true(lab_sleep(lab, true));
	assert_false(has_offer(lab));
	receive->iov->lmr_context--;
	assert_true(lab_sleep(lab, true));
	assert_true(has_offer(lab));
}

static void arm__by_consumer__no_offer(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, false));
	assert_false(has_offer(lab));
}

/* On the fast path, too. */
static void post_recv__patient__offered(void **state)
{
	struct lab *lab = *state;

	lab_go_fast(lab);
	assert_true(lab_sleep(lab, true));
	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(has_offer(lab));
	assert_int_equal(atomic_load(&lab->engine.active_count), 1);
	/* the second one is not the next */
	assert_true(lab_post_receive(lab, AT + SIZE, SIZE));
	assert_int_equal(mine(lab)->offer_address, (uintptr_t)lab->memory + AT);
}

/* A thread waits already, or a CNO came in the meantime, and it does not find the connection: it
 * was not on the list. */
static void post_recv__thread_waits__patience_ends(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < 2; i++) {
		if (i) {
			lab = reopen(state, true);
			lab_go_fast(lab);
		}
		assert_true(lab_sleep(lab, true));
		assert_int_equal(atomic_load(&lab->engine.active_count), 0);
		lab->is_watched = true;
		assert_true(lab_post_receive(lab, AT, SIZE));
		assert_int_equal(atomic_load(&mine(lab)->is_patient), 0);
	}
}

/* The same for a pass that offers a Receive. */
static void pass__thread_waits__patience_ends(void **state)
{
	struct lab *lab = *state;
	struct shm_conn *conn = lab->conn;

	assert_true(lab_sleep(lab, true));
	lab->ep.recv.tail++; /* by a thread that has not called shm_ep_post_recv yet */
	lab->receives[0] = (struct core_wqe){.segments = 1, .len = SIZE};
	lab->receives[0].iov = &lab->receives[0].first;
	lab->receives[0].first = (DAT_LMR_TRIPLET){.lmr_context = LAB_LOCAL_KEY,
						   .virtual_address = (uintptr_t)lab->memory,
						   .segment_length = SIZE};
	lab->is_watched = true;
	shm_conn_update_reasons(conn, &lab->ep);
	assert_true(has_offer(lab));
	assert_int_equal(atomic_load(&mine(lab)->is_patient), 0);
}

/* A poll checks a limited number of connections. */
static void post_recv__many_on_the_list__no_offer(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_sleep(lab, true));
	atomic_store(&lab->engine.active_count, 64);
	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_false(has_offer(lab));
	atomic_store(&lab->engine.active_count, 63);
	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(has_offer(lab));
	atomic_store(&lab->engine.active_count, 1);
}

/* An endpoint that only receives. */
static void arm__no_request_queue__offered(void **state)
{
	struct lab *lab = *state;

	lab->ep.req.capacity = 0;
	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, true));
	assert_true(has_offer(lab));
}

/* When the numbers have wrapped, an old offer is not valid again. */
static void offer__messages_by_another_way__forgotten(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, true));
	assert_true(has_offer(lab));
	shm_conn_disarm(lab->conn);
	ask(lab, lab_send_entry(4), "ring");
	assert_int_equal(lab->received, 1);
	assert_int_equal(atomic_load(&mine(lab)->offer), 0);
	lab->conn->done--;
	assert_false(has_offer(lab));
	lab->conn->done++;
}

/* The word follows the messages, however many there are without another report. */
static void placed__very_many__word_does_not_lag(void **state)
{
	struct lab *lab = *state;
	struct shm_conn *conn = lab->conn;

	conn->done = conn->reported = conn->stored = INT32_MAX;
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(lab_post_receive(lab, AT, SIZE));
		assert_true(lab_sleep(lab, true));
		ask(lab, placed_entry(SIZE), NULL);
		assert_int_equal(done(lab), conn->done);
	}
	assert_int_equal(conn->done, (uint32_t)INT32_MAX + 3);
	assert_int_equal(lab->received, 3);
}

/* The sender has completed its Send. So there is nothing to report, and no thread to wake. */
static void placed__offered__receive_completes_without_a_packet(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	atomic_store(&lab->peer->armed, 1);
	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_post_receive(lab, AT + SIZE, SIZE));
	assert_true(lab_sleep(lab, true));
	for (uint32_t i = 0; i < 2; i++) {
		struct shm_entry entry = placed_entry(SIZE - i);

		if (i)
			entry.flags |= SHM_FLAG_SOLICITED;
		ask(lab, entry, NULL);
		assert_int_equal(lab->received, i + 1);
		assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
		assert_int_equal(lab->receive_len, SIZE - i);
		assert_int_equal(lab->receive_solicited, i);
		assert_int_equal(has_offer(lab), !i); /* the next one */
	}
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_int_equal(lab->conn->done, 2);
	assert_int_equal(done(lab), 2);
	/* the end of a message through the ring wakes the peer */
	assert_true(lab_post_receive(lab, AT, SIZE));
	ask(lab, lab_send_entry(4), "ring");
	assert_int_equal(lab->received, 3);
	assert_int_equal(done(lab), 3);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* What was done before, and is not reported, is still reported. */
static void placed__earlier_message_not_reported__reported(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_post_receive(lab, AT, SIZE));
	shm_conn_disarm(lab->conn); /* a report may wait */
	ask(lab, lab_send_entry(4), "ring");
	assert_int_equal(done(lab), 0);
	lab->conn->offer = SHM_OFFER(lab->conn->done);
	ask(lab, placed_entry(SIZE), NULL);
	assert_int_equal(lab->received, 2);
	lab_library_pass(lab);
	assert_int_equal(done(lab), 2);
	assert_true(lab_sleep(lab, true));
}

static void placed__longer_than_receive__length_error(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, true));
	hold(lab);
	ask(lab, placed_entry(SIZE + 1), NULL);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_LENGTH);
	expect_broken(lab);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	shm_conn_put(lab->conn);
}

/* The Receive behind the one that was too short is not completed by the same entry. */
static void placed__longer_than_receive__next_one_is_left(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_post_receive(lab, AT, 2 * SIZE));
	assert_true(lab_sleep(lab, true));
	ask(lab, placed_entry(SIZE + 1), NULL);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_LENGTH);
	expect_broken(lab);
}

/* A thread that polls its EVD gets its messages by the ring again, which is faster for it. */
static void placed__many_polls_between__ring_takes_over(void **state)
{
	struct lab *lab = *state;
	uint32_t i;

	for (i = 0; i < 40; i++) {
		/* a poll now and then in the middle: it begins again */
		atomic_fetch_add(&lab->engine.driven.polls, i == 10 ? 1 : 50);
		if (!has_offer(lab)) {
			assert_true(lab_post_receive(lab, AT, SIZE));
			if (i == 0)
				assert_true(lab_sleep(lab, true));
		}
		if (!has_offer(lab))
			break;
		ask(lab, placed_entry(SIZE), NULL);
	}
	assert_int_equal(i, 11 + 16);
	/* the packet of the next message wakes the service thread, and it begins again */
	assert_true(lab_sleep(lab, true));
	assert_true(has_offer(lab));
}

/* An earlier poll came before the entry. */
static void post_recv__placed_message_waits__taken_and_next_offered(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = placed_entry(SIZE);

	for (unsigned i = 0; i < 2; i++) {
		if (i) {
			lab = reopen(state, true);
			lab_go_fast(lab);
		}
		assert_true(lab_post_receive(lab, AT, SIZE));
		assert_true(lab_sleep(lab, true));
		assert_true(lab_peer_entry(&lab->peer_out, &entry, NULL));
		assert_true(lab_post_receive(lab, AT + SIZE, SIZE));
		assert_int_equal(lab->received, 1);
		assert_true(has_offer(lab));
	}
}

/* A patient peer does not wait for space, and needs no packet for it. */
static void placed__space_given_back__packet_only_for_impatient_peer(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t before = atomic_load(&mine(lab)->request_consumed);

		atomic_store(&lab->peer->armed, 1 + 2 * i);
		atomic_store(&lab->peer->is_patient, !i);
		while (atomic_load(&mine(lab)->request_consumed) == before) {
			assert_int_equal(lab_peer_packet(lab, &wire), 0);
			assert_true(lab_post_receive(lab, AT, SIZE));
			assert_true(lab_sleep(lab, true));
			ask(lab, placed_entry(SIZE), NULL);
		}
		assert_int_equal(lab_peer_packet(lab, &wire), i ? SHM_WIRE_WAKE : 0);
	}
}

/* A peer cannot complete a Receive that was not offered to it, nor one by a strange entry. */
static void placed__not_offered_or_malformed__broken(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entries[] = {placed_entry(SIZE), placed_entry(SIZE), placed_entry(0),
				      placed_entry(SIZE), placed_entry(SIZE)};

	entries[1].payload = 8;
	entries[3].flags &= ~SHM_FLAG_LAST;
	entries[4].flags &= ~SHM_FLAG_FIRST;
	for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (i)
			lab = reopen(state, true);
		assert_true(lab_post_receive(lab, AT, SIZE));
		if (i)
			assert_true(lab_sleep(lab, true));
		ask(lab, entries[i], "8 bytes");
		assert_int_equal(lab->received, 0);
		expect_broken(lab);
	}
}

/* An offer is for one message. */
static void placed__offer_of_an_earlier_message__broken(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, true));
	ask(lab, placed_entry(SIZE), NULL);
	assert_int_equal(lab->received, 1);
	shm_conn_disarm(lab->conn);
	assert_true(lab_post_receive(lab, AT, SIZE));
	ask(lab, placed_entry(SIZE), NULL);
	assert_int_equal(lab->received, 1);
	expect_broken(lab);
}

static void placed__inside_another_message__broken(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(4);

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, true));
	entry.flags = SHM_FLAG_FIRST;
	entry.length = SIZE;
	ask(lab, entry, "part");
	assert_true(lab_is_open(lab));
	ask(lab, placed_entry(SIZE), NULL);
	assert_int_equal(lab->received, 0);
	expect_broken(lab);
}

/* --- the end of the connection --- */

/* DTO-52: the sender's Send has succeeded, and so does the Receive. */
static void disconnect__message_placed__receive_completes(void **state)
{
	struct lab *lab = *state;
	struct shm_entry read = {
		.type = SHM_ENTRY_READ,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.key = lab->rkey,
		.address = (uintptr_t)lab->memory,
		.length = 8,
	};
	struct shm_entry entry = placed_entry(SIZE);

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, true));
	assert_true(lab_peer_entry(&lab->peer_out, &read, NULL));
	/* the peer is in the middle of the copy: the end waits for it */
	atomic_store(&lab->peer->announce, lab->rkey);
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(lab->end, 0);
	assert_int_equal(atomic_load(&mine(lab)->revoked), 1);
	assert_true(lab_peer_entry(&lab->peer_out, &entry, NULL));
	atomic_store(&lab->peer->announce, 0);
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->receive_len, SIZE);
}

/* DTO-52: the answer to our Send, which it acknowledges, was placed before the disconnect or during
 * it. */
static void disconnect__answer_placed__our_send_succeeds(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = placed_entry(SIZE);

	entry.done = 1;
	for (unsigned i = 0; i < 2; i++) {
		if (i)
			lab = reopen(state, true);
		assert_true(lab_post_receive(lab, AT, SIZE));
		assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
		assert_true(lab_sleep(lab, true));
		if (i == 0)
			assert_true(lab_peer_entry(&lab->peer_out, &entry, NULL));
		atomic_store(&lab->peer->announce, lab->rkey);
		shm_ep_disconnect(&lab->ep, false);
		assert_int_equal(lab->end, 0);
		if (i == 1)
			assert_true(lab_peer_entry(&lab->peer_out, &entry, NULL));
		atomic_store(&lab->peer->announce, 0);
		shm_ep_disconnect(&lab->ep, false);
		assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
		assert_int_equal(lab->received, 1);
		assert_int_equal(lab->done, 1);
		assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	}
}

/* The ring holds what the stack may hold, too: a message of before. */
static void disconnect__nothing_arrived__receive_is_left(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, true));
	ask(lab, placed_entry(SIZE), NULL);
	assert_true(has_offer(lab));
	assert_int_equal(lab->received, 1);
	shm_conn_close(lab->conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	shm_place_take_last(lab->conn, &lab->ep);
	assert_int_equal(lab->received, 1);
	shm_conn_finish(lab->conn, &lab->ep);
}

/* More RDMA Reads than an honest peer has there. */
static void disconnect__ring_full_of_reads__ends(void **state)
{
	struct lab *lab = *state;
	struct shm_entry read = {.type = SHM_ENTRY_READ, .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST};
	uint32_t before;

	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, true));
	shm_conn_close(lab->conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	before = shm_consumer_index(&lab->conn->request_in);
	for (uint32_t at = 0; at < SHM_REQUEST_RING; at += SHM_ENTRY_ALIGN) {
		read.stamp = SHM_STAMP(before + at);
		memcpy(lab->peer_requests + ((before + at) & (SHM_REQUEST_RING - 1)), &read,
		       sizeof(read));
	}
	shm_place_take_last(lab->conn, &lab->ep);
	assert_int_equal(shm_consumer_index(&lab->conn->request_in) - before, SHM_REQUEST_RING);
	assert_int_equal(lab->received, 0);
	shm_conn_finish(lab->conn, &lab->ep);
}

/* Every other message was not acknowledged, and its Receive is flushed. */
static void disconnect__message_not_placed__receive_is_left(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entries[] = {lab_send_entry(4), placed_entry(SIZE + 1), placed_entry(0),
				      placed_entry(SIZE)};

	for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (i)
			lab = reopen(state, true);
		assert_true(lab_post_receive(lab, AT, SIZE));
		if (i < 3)
			assert_true(lab_sleep(lab, true));
		shm_conn_close(lab->conn, DAT_CONNECTION_EVENT_DISCONNECTED);
		assert_true(lab_peer_entry(&lab->peer_out, &entries[i], "ring"));
		shm_ep_disconnect(&lab->ep, false);
		assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
		assert_int_equal(lab->received, 0);
	}
}

/* --- our side sends --- */

/* The next entry that the peer finds. */
static struct shm_entry next_entry(struct lab *lab)
{
	struct shm_consumer ring;
	struct shm_entry entry = {0};
	const uint8_t *payload;

	shm_consumer_init(&ring, lab->conn->segment->request[SHM_PASSIVE], SHM_REQUEST_RING,
			  SHM_REQUEST_PAYLOAD, &lab->peer->request_consumed);
	assert_int_equal(shm_consumer_peek(&ring, &entry, &payload), 1);
	shm_consumer_pop(&ring);
	shm_consumer_give_back(&ring);
	return entry;
}

static void expect_not_placed(struct lab *lab)
{
	union shm_wire wire;

	assert_int_equal(next_entry(lab).flags & SHM_FLAG_PLACED, 0);
	assert_int_equal(placed(lab), 0);
	assert_int_equal(lab->done, 0);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* The Send is complete at once: its bytes are in the Receive. No packet follows. */
static void send__offered__placed_and_complete(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry;
	union shm_wire wire;

	if (!ability_vm_calls())
		skip();
	fill(lab);
	for (uint32_t i = 0; i < 3; i++) {
		memset(lab->peer_memory + AT, 0, SIZE);
		peer_offers(lab, i, AT, SIZE);
		lab->next_flags = i == 1 ? DAT_COMPLETION_SOLICITED_WAIT_FLAG : 0;
		assert_true(lab_post(lab, CORE_OP_SEND, i, SIZE - i, 0, 0));
		assert_memory_equal(lab->peer_memory + AT, lab->memory + i, SIZE - i);
		entry = next_entry(lab);
		assert_int_equal(entry.type, SHM_ENTRY_SEND);
		assert_int_equal(entry.flags, SHM_FLAG_FIRST | SHM_FLAG_LAST | SHM_FLAG_PLACED |
						      (i == 1 ? SHM_FLAG_SOLICITED : 0));
		assert_int_equal(entry.payload, 0);
		assert_int_equal(entry.length, SIZE - i);
		assert_int_equal(lab->done, i + 1);
		assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
		assert_int_equal(atomic_load(&mine(lab)->announce), 0);
	}
	assert_int_equal(placed(lab), 3);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	/* the peer's report comes later, and changes nothing */
	atomic_store(&lab->peer->done, 3);
	lab_pass(lab);
	assert_true(lab_is_open(lab));
	assert_int_equal(lab->done, 3);
}

/* The peer offers a Receive after all messages before it: those are done. */
static void send__earlier_ones_not_reported__all_complete(void **state)
{
	struct lab *lab = *state;

	if (!ability_vm_calls())
		skip();
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab->done, 0);
	peer_offers(lab, 2, AT, SIZE);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
	assert_int_equal(lab->done, 3);
	assert_int_equal(placed(lab), 1);
}

/* The fast path has a reason against it while the peer is patient. */
static void send_fast__peer_patient__placed(void **state)
{
	struct lab *lab = *state;

	if (!ability_vm_calls())
		skip();
	lab_go_fast(lab);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
	assert_int_equal(lab->fast_posts, 1);
	peer_offers(lab, 1, AT, SIZE);
	shm_conn_update_reasons(lab->conn, &lab->ep);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
	assert_int_equal(lab->fast_posts, 1);
	assert_int_equal(placed(lab), 1);
	atomic_store(&lab->peer->is_patient, 0);
	shm_conn_update_reasons(lab->conn, &lab->ep);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
	assert_int_equal(lab->fast_posts, 2);
}

/* A post of ours on the fast path notices that the peer is patient, if we are so, too. */
static void send_fast__both_patient__next_one_placed(void **state)
{
	struct lab *lab = *state;

	if (!ability_vm_calls())
		skip();
	lab_go_fast(lab);
	assert_true(lab_sleep(lab, true));
	peer_offers(lab, 1, AT, SIZE);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
	assert_int_equal(lab->fast_posts, 1);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
	assert_int_equal(placed(lab), 1);
}

static void send__no_offer_for_it__ring(void **state)
{
	struct lab *lab = *state;

	/* not offered, the number of another message, too short, not patient */
	for (unsigned i = 0; i < 6; i++) {
		if (i)
			lab = reopen(state, i != 5);
		if (i == 0)
			atomic_store(&lab->peer->is_patient, 1);
		else
			peer_offers(lab, i == 1, AT, i == 2 ? SIZE - 1 : SIZE);
		if (i == 3)
			atomic_store(&lab->peer->is_patient, 0);
		atomic_store(&lab->peer->armed, 1);
		/* an empty message has nothing to place */
		assert_true(lab_post(lab, CORE_OP_SEND, 0, i == 4 ? 0 : SIZE, 0, 0));
		expect_not_placed(lab);
	}
}

/* Its number would be that of no offer. */
static void send__number_wraps__ring(void **state)
{
	struct lab *lab = *state;

	lab->conn->sent = UINT32_MAX;
	shm_conn_set_acked(lab->conn, UINT32_MAX);
	peer_offers(lab, UINT32_MAX, AT, SIZE);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
	expect_not_placed(lab);
	lab->conn->done = UINT32_MAX;
	assert_false(shm_place_has_offer(lab->conn));
	lab->conn->done = 0;
}

static void drop(struct lab *lab, uint32_t key)
{
	soft_keys_invalidate(lab->peer_keys, key);
	soft_keys_release(lab->peer_keys, key);
}

/* The key is checked as for RDMA: nothing outside its region changes (LMR-FREE, DTO-94). */
static void send__key_refused__ring_and_no_byte_changes(void **state)
{
	struct lab *lab = *state;
	uint32_t key;

	for (unsigned i = 0; i < 5; i++) {
		if (i)
			lab = reopen(state, true);
		fill(lab);
		memset(lab->peer_memory + AT, 0, 2 * SIZE);
		peer_offers(lab, 0, AT, SIZE);
		assert_int_equal(soft_keys_add(lab->peer_keys, (uintptr_t)lab->peer_memory, 4096,
					       SOFT_RIGHT_REMOTE_WRITE | SOFT_RIGHT_PULL,
					       lab->conn->remote.pz, &key),
				 0);
		if (i == 0)
			lab->peer->offer_key = 0;
		else if (i == 1)
			lab->peer->offer_key = key; /* may not be written locally */
		else if (i == 2)
			lab->peer->offer_address = (uintptr_t)lab->peer_memory + LAB_MEMORY - 1;
		else if (i == 3)
			lab->conn->remote.pz++;
		else
			atomic_store(&lab->peer->revoked, 1);
		assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
		expect_not_placed(lab);
		assert_int_equal(atomic_load(&mine(lab)->announce), 0);
		for (uint32_t k = 0; k < 2 * SIZE; k++)
			assert_int_equal(lab->peer_memory[AT + k], 0);
		drop(lab, key);
	}
}

/* The peer has unmapped it, or the kernel forbids the copy. */
static void send__copy_fails__ring(void **state)
{
	struct lab *lab = *state;

	if (!ability_vm_calls())
		skip();
	peer_offers(lab, 0, AT, SIZE);
	lab->conn->remote.pid = 0;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
	expect_not_placed(lab);
}

/* One announcement covers a limited number of bytes, because dat_lmr_free waits for it. */
static void send__too_long__ring(void **state)
{
	struct lab *lab = *state;

	if (!ability_vm_calls())
		skip();
	assert_true(LAB_MEMORY > 2 * SHM_PIECE);
	peer_offers(lab, 0, 0, UINT64_MAX);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 2 * SHM_PIECE, 0, 0));
	assert_int_equal(placed(lab), 1);
}

/* A key of ours for a word of the peer: the message changes it in the middle of the post. */
static uint32_t key_of_word(struct lab *lab, _Atomic uint32_t *word)
{
	uint32_t key;

	assert_int_equal(soft_keys_add(lab->peer_keys, (uintptr_t)word, sizeof(*word),
				       SOFT_RIGHT_PLACE, lab->conn->remote.pz, &key),
			 0);
	peer_offers(lab, 0, 0, sizeof(*word));
	lab->peer->offer_key = key;
	lab->peer->offer_address = (uintptr_t)word;
	return key;
}

/* A thread of the peer begins to wait. */
static void send__patience_ends_meanwhile__packet(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;
	uint32_t key;

	if (!ability_vm_calls())
		skip();
	key = key_of_word(lab, &lab->peer->is_patient);
	memset(lab->memory, 0, 4);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(atomic_load(&lab->peer->is_patient), 0);
	assert_int_equal(placed(lab), 1);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
	drop(lab, key);
}

/* Others that the same pass has put into the ring need the packet, too. */
static void send__behind_an_unpublished_entry__packet(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_READ};
	union shm_wire wire;
	uint8_t *payload;

	if (!ability_vm_calls())
		skip();
	peer_offers(lab, 0, AT, SIZE);
	assert_int_equal(shm_producer_reserve(&lab->conn->request_out, 0, &payload), 1);
	shm_producer_commit(&lab->conn->request_out, &entry);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
	assert_int_equal(placed(lab), 1);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* The peer may have flushed the Receive already: its `done` decides. */
static void send__peer_ends_the_connection_meanwhile__waits_for_done(void **state)
{
	struct lab *lab = *state;
	const uint32_t one = 1;
	uint32_t key;

	if (!ability_vm_calls())
		skip();
	key = key_of_word(lab, &lab->peer->revoked);
	memcpy(lab->memory, &one, sizeof(one));
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(atomic_load(&lab->peer->revoked), 1);
	assert_int_equal(placed(lab), 1);
	assert_int_equal(lab->done, 0);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	drop(lab, key);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(arm__receive_posted__offered_and_on_the_list),
		T(arm__receive_not_suitable__no_offer),
		T(arm__by_consumer__no_offer),
		T(post_recv__patient__offered),
		T(post_recv__thread_waits__patience_ends),
		T(pass__thread_waits__patience_ends),
		T(post_recv__many_on_the_list__no_offer),
		T(arm__no_request_queue__offered),
		T(offer__messages_by_another_way__forgotten),
		T(placed__very_many__word_does_not_lag),
		T(placed__offered__receive_completes_without_a_packet),
		T(placed__earlier_message_not_reported__reported),
		T(placed__longer_than_receive__length_error),
		T(placed__longer_than_receive__next_one_is_left),
		T(placed__many_polls_between__ring_takes_over),
		T(post_recv__placed_message_waits__taken_and_next_offered),
		T(placed__space_given_back__packet_only_for_impatient_peer),
		T(placed__not_offered_or_malformed__broken),
		T(placed__offer_of_an_earlier_message__broken),
		T(placed__inside_another_message__broken),
		T(disconnect__message_placed__receive_completes),
		T(disconnect__answer_placed__our_send_succeeds),
		T(disconnect__nothing_arrived__receive_is_left),
		T(disconnect__ring_full_of_reads__ends),
		T(disconnect__message_not_placed__receive_is_left),
		T(send__offered__placed_and_complete),
		T(send__earlier_ones_not_reported__all_complete),
		T(send_fast__peer_patient__placed),
		T(send_fast__both_patient__next_one_placed),
		T(send__no_offer_for_it__ring),
		T(send__number_wraps__ring),
		T(send__key_refused__ring_and_no_byte_changes),
		T(send__copy_fails__ring),
		T(send__too_long__ring),
		T(send__patience_ends_meanwhile__packet),
		T(send__behind_an_unpublished_entry__packet),
		T(send__peer_ends_the_connection_meanwhile__waits_for_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
