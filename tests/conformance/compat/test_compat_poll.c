// SPDX-License-Identifier: BSD-2-Clause
/*
 * Consumers that poll their memory for a message: the receiver polls the last byte of its posted
 * Receive, makes no call meanwhile, and then dequeues once. When the last byte has arrived, so has
 * the rest of the message.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "dto_peer.h"

#define POLL_MAX 100000u
#define POLL_GAP 64u /* the buffers start at different offsets in a cache line */
#define POLL_MEMORY (POLL_MAX + POLL_GAP)
#define POLL_ROUNDS 8u
#define POLL_RARELY 8u /* messages above 4000 bytes are sent only every POLL_RARELY rounds */

static const size_t poll_sizes[] = {1, 7, 8, 9, 64, 4000, 500, 4000, 1000, 4000, POLL_MAX};

/* The memory that the messages go to. */
enum poll_memory {
	POLL_PRIVATE, /* from malloc */
	POLL_SHARED,  /* shared and anonymous: the provider has no file to map */
	POLL_OF_PATH, /* the memory that the copy path maps: a sealed file, or private pages */
	POLL_MEMORIES,
};

/*
 * The time for each kind, and at least POLL_ROUNDS rounds. The last kind needs many attempts to
 * fail.
 */
static const uint64_t poll_us[POLL_MEMORIES] = {400000, 400000, 1000000};

static unsigned char *poll_alloc(enum poll_memory kind)
{
	void *p;

	if (kind == POLL_PRIVATE)
		p = malloc(POLL_MEMORY);
	else if (kind == POLL_SHARED)
		p = mmap(NULL, POLL_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			 0);
	else
		p = dt_mem_alloc(POLL_MEMORY);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_non_null(p);
	memset(p, 0, POLL_MEMORY);
	return p;
}

static void poll_free(enum poll_memory kind, unsigned char *p)
{
	if (kind == POLL_PRIVATE)
		free(p);
	else if (kind == POLL_SHARED)
		munmap(p, POLL_MEMORY);
	else
		dt_mem_free(p, POLL_MEMORY);
}

/* The receiver's request to the sender: len bytes of that value. A length of zero ends the test. */
struct poll_order {
	size_t len;
	unsigned char value;
};

struct poll_receiver {
	struct far_end far;
	struct dt_buf buf;
	unsigned char *seen;
	size_t len[256]; /* lengths of the latest messages: as many as the EVD has events */
	uint64_t posted, taken;
};

/* Takes the event of the oldest message. With `must_come` it waits for the event. */
static void poll_take(struct poll_receiver *receiver, bool must_come)
{
	const struct dt_ep *ep = &receiver->far.ep;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_EVENT event;

	if (must_come)
		event = dt_event(ep->recv);
	else
		ret = dat_evd_dequeue(ep->recv, &event);
	if (ret == (DAT_RETURN)DAT_QUEUE_EMPTY)
		return; /* the event may arrive after the bytes: the next call takes it */
	dt_ok(ret);
	dto = &event.event_data.dto_completion_event_data;
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(dto->ep_handle, ep->ep);
	assert_int_equal(dto->status, DAT_DTO_SUCCESS);
	assert_true(dto->user_cookie.as_64 == receiver->taken);
	assert_true(dto->transfered_length ==
		    receiver->len[receiver->taken % COUNT_OF(receiver->len)]);
	receiver->taken++;
}

/*
 * Spins until the last byte has that value. Each time it then reads the first byte at once, because
 * a copy may store the first byte last. It copies the message before late bytes can arrive.
 */
static DT_UNORDERED void poll_spin(struct poll_receiver *receiver, const unsigned char *start,
				   size_t len, unsigned char value)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	unsigned char last, first;

	for (unsigned i = 1;; i++) {
		last = __atomic_load_n(start + len - 1, __ATOMIC_ACQUIRE);
		first = __atomic_load_n(start, __ATOMIC_RELAXED);
		if (last == value)
			break;
		if (i % 256)
			continue;
		assert_true(dt_now_us() < end);
		sched_yield(); /* there may be fewer processors than spinners */
	}
	far_order(&receiver->far);
	memcpy(receiver->seen, start, len);
	receiver->seen[0] = first;
}

/* Receives one message, from the posted Receive to the event. */
static void poll_one(struct dt_peer *peer, struct poll_receiver *receiver, size_t offset,
		     size_t len)
{
	const unsigned char value = (unsigned char)(1 + receiver->posted % 200);
	const struct poll_order order = {.len = len, .value = value};
	unsigned char *start = receiver->buf.p + offset;

	memset(start, 0, len);
	receiver->len[receiver->posted % COUNT_OF(receiver->len)] = len;
	post_recv(&receiver->far.ep, dt_seg(&receiver->buf, offset, len), receiver->posted);
	receiver->posted++;
	far_order(&receiver->far);
	dt_peer_send(peer, &order, sizeof(order));
	/* no call into the library from here on */
	poll_spin(receiver, start, len, value);
	dt_check_bytes(receiver->seen, len, value);
	dt_check_bytes(start, len, value);
	poll_take(receiver, false);
}

static void poll_rounds(struct dt_peer *peer, struct poll_receiver *receiver, uint64_t us)
{
	static const size_t offsets[] = {0, 1, 8, 60};
	const uint64_t end = dt_now_us() + us;

	for (unsigned round = 0; round < POLL_ROUNDS || dt_now_us() < end; round++) {
		for (size_t i = 0; i < COUNT_OF(poll_sizes); i++) {
			if (poll_sizes[i] > 4000 && round % POLL_RARELY)
				continue;
			poll_one(peer, receiver, offsets[round % COUNT_OF(offsets)], poll_sizes[i]);
		}
	}
}

/* In the child. */
static void receiver_open(struct dt_peer *peer, struct poll_receiver *receiver)
{
	far_end_open(peer, &receiver->far, 4096);
	receiver->seen = malloc(POLL_MAX);
	assert_non_null(receiver->seen);
}

static void polling_child(struct dt_peer *peer, void *arg)
{
	static struct poll_receiver receiver;
	const struct poll_order no_more = {0};

	(void)arg;
	receiver_open(peer, &receiver);
	for (enum poll_memory kind = 0; kind < POLL_MEMORIES; kind++) {
		unsigned char *p = poll_alloc(kind);

		dt_lmr_create(&receiver.far.ia, receiver.far.ia.pz, p, POLL_MEMORY,
			      DAT_MEM_PRIV_ALL_FLAG, &receiver.buf);
		poll_rounds(peer, &receiver, poll_us[kind]);
		while (receiver.taken < receiver.posted)
			poll_take(&receiver, true);
		dt_no_event(receiver.far.ep.recv);
		dt_ok(dat_lmr_free(receiver.buf.lmr));
		poll_free(kind, p);
	}
	dt_no_event(receiver.far.ia.async);
	free(receiver.seen);
	dt_peer_send(peer, &no_more, sizeof(no_more));
	dt_peer_sync(peer);
	dt_ia_abort(&receiver.far.ia);
}

/* The sender does what the child has ordered. */
static void poll_answer(struct rig *rig, const struct dt_buf *from, uint64_t number, size_t len,
			unsigned char value)
{
	memset(from->p, value, len);
	post_send(&rig->a, dt_seg(from, 0, len), number, 0);
	expect_sent(&rig->a, number, len);
}

/* Connects to that child, and creates the memory for messages to it. */
static void sender_open(struct rig *rig, struct dt_peer *peer,
			void (*child)(struct dt_peer *peer, void *arg), struct dt_buf *from,
			size_t len)
{
	dt_peer_start(peer, child, NULL);
	rig_begin(rig);
	far_connect(rig, peer);
	dt_buf_create(&rig->ia, rig->ia.pz, from, len, DAT_MEM_PRIV_LOCAL_READ_FLAG);
}

/* The child has ended its part. */
static void sender_close(struct rig *rig, struct dt_peer *peer, const struct dt_buf *from)
{
	dt_peer_sync(peer);
	dt_peer_join(peer);
	rig_end(rig);
	dt_mem_free(from->p, from->mapped);
}

/* COMPAT-46 */
static void post_recv__last_byte_polled__rest_has_arrived(void **state)
{
	struct rig *rig = *state;
	struct poll_order order;
	struct dt_peer peer;
	struct dt_buf from;

	sender_open(rig, &peer, polling_child, &from, POLL_MAX);
	for (uint64_t i = 0;; i++) {
		dt_peer_recv(&peer, &order, sizeof(order));
		if (!order.len)
			break;
		poll_answer(rig, &from, i, order.len, order.value);
	}
	sender_close(rig, &peer, &from);
}

#define LEAVE_ROUNDS 4u
#define LEAVE_BEFORE 20u /* messages that are polled and dequeued first */
#define LEAVE_LEN 100u

static void take_all(struct poll_receiver *receiver)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;

	while (receiver->taken < receiver->posted) {
		assert_true(dt_now_us() < end);
		poll_take(receiver, false);
	}
}

/* Finds the last message in its memory, and disconnects before it dequeues the event. */
static void leaving_child(struct dt_peer *peer, void *arg)
{
	static struct poll_receiver receiver;
	struct dt_ep *ep = &receiver.far.ep;

	(void)arg;
	receiver_open(peer, &receiver);
	dt_buf_create(&receiver.far.ia, receiver.far.ia.pz, &receiver.buf, POLL_MEMORY,
		      DAT_MEM_PRIV_ALL_FLAG);
	for (unsigned i = 0; i < LEAVE_BEFORE; i++) {
		poll_one(peer, &receiver, 0, LEAVE_LEN);
		take_all(&receiver);
	}
	memset(receiver.buf.p, 0, LEAVE_LEN);
	post_recv(ep, dt_seg(&receiver.buf, 0, LEAVE_LEN), LEAVE_BEFORE);
	post_recv(ep, dt_seg(&receiver.buf, LEAVE_LEN, LEAVE_LEN), LEAVE_BEFORE + 1);
	dt_peer_sync(peer);					   /* the Receives are posted */
	dt_peer_sync(peer);					   /* the Send has succeeded */
	poll_spin(&receiver, receiver.buf.p, LEAVE_LEN, RIG_FILL); /* iWARP places it later */
	dt_ok(dat_ep_disconnect(ep->ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_dto(ep->recv, ep->ep, LEAVE_BEFORE, DAT_DTO_SUCCESS, LEAVE_LEN);
	dt_expect_dto(ep->recv, ep->ep, LEAVE_BEFORE + 1, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
	dt_check_bytes(receiver.buf.p, LEAVE_LEN, RIG_FILL);
	free(receiver.seen);
	dt_peer_sync(peer);
	dt_ia_abort(&receiver.far.ia);
}

/* DTO-52: a message that has arrived completes its Receive, although the receiver disconnects. */
static void disconnect__message_polled_and_not_dequeued__receive_succeeds(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < LEAVE_ROUNDS; round++) {
		struct poll_order order;
		struct dt_peer peer;
		struct dt_buf from;

		sender_open(rig, &peer, leaving_child, &from, LEAVE_LEN);
		for (uint64_t i = 0; i < LEAVE_BEFORE; i++) {
			dt_peer_recv(&peer, &order, sizeof(order));
			poll_answer(rig, &from, i, LEAVE_LEN, order.value);
		}
		dt_peer_sync(&peer);
		poll_answer(rig, &from, LEAVE_BEFORE, LEAVE_LEN, RIG_FILL);
		dt_peer_sync(&peer);
		dt_expect_conn(rig->a.conn, rig->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		sender_close(rig, &peer, &from);
	}
}

static int only_state(void **state)
{
	*state = &rig_of_test;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(post_recv__last_byte_polled__rest_has_arrived, only_state),
		cmocka_unit_test_setup(
			disconnect__message_polled_and_not_dequeued__receive_succeeds, only_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
