// SPDX-License-Identifier: BSD-2-Clause
/* Receivers that make no call while a message arrives; see the header. */
#include "placing.h"

#include "bind_util.h"
#include "copy_path.h"

#define WARM_MAX 30u /* messages; usually the third one is placed */
#define SEGMENTS_MAX 4
#define SENDER_LEN 8192u
#define COOKIE 7u

/* Has no message been placed in very many? */
static bool is_hopeless;

uint64_t placing_count(DAT_HANDLE handle)
{
	struct copy_path_counts counts;

	return copy_path_read(handle, &counts) ? counts.placed : 0;
}

/* --- the other process --- */

static void sender_post(struct far_end *far, const struct placing_order *order, size_t len,
			DAT_COMPLETION_FLAGS flags)
{
	const size_t count = order->segments ? (size_t)order->segments : 1;
	DAT_LMR_TRIPLET segments[SEGMENTS_MAX];

	assert_true(count <= SEGMENTS_MAX);
	for (size_t i = 0, at = 0; i < count; i++) {
		const size_t end = len * (i + 1) / count;

		segments[i] = dt_seg(&far->buf, at, end - at);
		at = end;
	}
	dt_ok(dat_ep_post_send(far->ep.ep, (DAT_COUNT)count, segments, dt_cookie(COOKIE), flags));
}

static DAT_DTO_COMPLETION_STATUS sender_status(struct far_end *far)
{
	const DAT_EVENT event = dt_event(far->ep.request);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(dto->user_cookie.as_64, COOKIE);
	return dto->status;
}

static DAT_DTO_COMPLETION_STATUS sender_sends(struct far_end *far,
					      const struct placing_order *order)
{
	memset(far->buf.p, order->value, order->len);
	sender_post(far, order, order->len, order->flags);
	if (order->flags & DAT_COMPLETION_SUPPRESS_FLAG)
		return DAT_DTO_SUCCESS;
	return sender_status(far);
}

static DAT_DTO_COMPLETION_STATUS sender_reads_and_sends(struct far_end *far,
							const struct placing_order *order)
{
	post_read(&far->ep, dt_seg(&far->buf, 0, order->len), order->remote, COOKIE + 1, 0);
	sender_post(far, order, order->len, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	expect_sent(&far->ep, COOKIE + 1, order->len);
	return sender_status(far);
}

static DAT_DTO_COMPLETION_STATUS sender_binds_and_sends(struct far_end *far,
							const struct placing_order *order)
{
	const size_t at = SENDER_LEN / 2;
	DAT_RMR_TRIPLET window;
	DAT_RMR_HANDLE rmr;

	memset(far->buf.p + at, order->value, PLACING_LEN);
	dt_ok(dat_rmr_create(far->ia.pz, &rmr));
	window = dt_rseg(&far->buf, at, PLACING_LEN);
	window.rmr_context = bind_post(&far->ep, rmr, dt_seg(&far->buf, at, PLACING_LEN),
				       DAT_MEM_PRIV_REMOTE_READ_FLAG, 1, 0);
	memcpy(far->buf.p, &window, sizeof(window));
	sender_post(far, order, sizeof(window), 0);
	expect_bind(&far->ep, rmr, 1, DAT_DTO_SUCCESS);
	return sender_status(far);
}

/* The connection ends, and no completion comes twice. */
static void sender_expects_end(struct far_end *far, DAT_EVENT_NUMBER number)
{
	dt_expect_conn(far->ep.conn, far->ep.ep, number);
	expect_quiet(&far->ep);
}

static DAT_DTO_COMPLETION_STATUS sender_does(struct far_end *far, const struct placing_order *order)
{
	switch (order->what) {
	case PLACING_SEND:
		return sender_sends(far, order);
	case PLACING_READ_AND_SEND:
		return sender_reads_and_sends(far, order);
	case PLACING_BIND_AND_SEND:
		return sender_binds_and_sends(far, order);
	case PLACING_DISCONNECT:
		dt_ok(dat_ep_disconnect(far->ep.ep, order->how));
		sender_expects_end(far, DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	case PLACING_FREE_EP:
		dt_ok(dat_ep_free(far->ep.ep));
		dt_no_event(far->ep.request);
		break;
	case PLACING_BROKEN:
		sender_expects_end(far, DAT_CONNECTION_EVENT_BROKEN);
		break;
	case PLACING_ENDED:
		sender_expects_end(far, DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	case PLACING_POST:
		post_recv(&far->ep, dt_seg(&far->buf, 0, order->len), COOKIE);
		break;
	case PLACING_TAKE:
		expect_received(&far->ep, COOKIE, order->len);
		break;
	case PLACING_EXIT:
		break;
	}
	return DAT_DTO_SUCCESS;
}

static void placing_child(struct dt_peer *peer, void *arg)
{
	struct placing_order order;
	struct far_end far;

	(void)arg;
	far_end_open(peer, &far, SENDER_LEN);
	do {
		const uint64_t before = placing_count(far.ia.pz);
		struct placing_reply reply;

		dt_peer_recv(peer, &order, sizeof(order));
		memset(&reply, 0, sizeof(reply));
		reply.status = sender_does(&far, &order);
		reply.is_placed = placing_count(far.ia.pz) != before;
		dt_peer_send(peer, &reply, sizeof(reply));
	} while (order.what != PLACING_EXIT);
	dt_ia_abort(&far.ia);
}

/* --- the receiver --- */

/* Creates an endpoint; its Receives complete on the EVD of the first one. */
static void create_ep(struct placing *placing, unsigned conn)
{
	struct dt_ia *ia = &placing->rig->ia;
	struct dt_ep *ep = &placing->ep[conn];

	if (!conn) {
		dt_ep_create(ia, ia->pz, &placing->rig->attr_a, ep);
		return;
	}
	ep->recv = placing->ep[0].recv;
	ep->request = dt_evd_create(ia, 16, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	ep->conn = dt_evd_create(ia, 4, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(ia->ia, ia->pz, ep->recv, ep->request, ep->conn, NULL, &ep->ep));
}

void placing_open_with(struct placing *placing, struct rig *rig, unsigned conns,
		       DAT_COMPLETION_FLAGS recv_flags)
{
	memset(placing, 0, sizeof(*placing));
	placing->rig = rig;
	placing->conns = conns;
	for (unsigned i = 0; i < conns; i++)
		dt_peer_start(&placing->peer[i], placing_child, NULL);
	rig_begin(rig);
	rig->attr_a.recv_completion_flags = recv_flags;
	for (unsigned i = 0; i < conns; i++) {
		create_ep(placing, i);
		far_connect_ep(&rig->ia, &placing->ep[i], &placing->peer[i]);
	}
}

void placing_open(struct placing *placing, struct rig *rig, unsigned conns)
{
	placing_open_with(placing, rig, conns, DAT_COMPLETION_DEFAULT_FLAG);
}

void placing_close(struct placing *placing)
{
	for (unsigned i = 0; i < placing->conns; i++) {
		if (!placing->peer[i].pid)
			continue;
		(void)placing_tell(placing, i, &(struct placing_order){.what = PLACING_EXIT});
		dt_peer_join(&placing->peer[i]);
	}
	rig_end(placing->rig);
}

static size_t offset_of(unsigned conn, uint64_t number)
{
	const size_t slots = RIG_LEN / PLACING_SLOT / PLACING_CONNS;

	return (conn * slots + number % slots) * PLACING_SLOT;
}

unsigned char *placing_at(const struct placing *placing, unsigned conn, uint64_t number)
{
	return placing->rig->x.p + offset_of(conn, number);
}

static unsigned char value_of(uint64_t number)
{
	return (unsigned char)(1 + number % 200);
}

uint64_t placing_cookie(unsigned conn, uint64_t number)
{
	return (uint64_t)conn << 32 | number;
}

uint64_t placing_post(struct placing *placing, unsigned conn, size_t len)
{
	const uint64_t number = placing->posted[conn]++;

	assert_true(len <= PLACING_SLOT);
	memset(placing_at(placing, conn, number), PLACING_FILL, PLACING_SLOT);
	post_recv(&placing->ep[conn], dt_seg(&placing->rig->x, offset_of(conn, number), len),
		  placing_cookie(conn, number));
	return number;
}

struct placing_reply placing_tell(const struct placing *placing, unsigned conn,
				  const struct placing_order *order)
{
	struct dt_peer peer = placing->peer[conn];
	struct placing_reply reply;

	dt_peer_send(&peer, order, sizeof(*order));
	dt_peer_recv(&peer, &reply, sizeof(reply));
	return reply;
}

struct placing_reply placing_send_as(struct placing *placing, unsigned conn,
				     struct placing_order order)
{
	order.value = value_of(placing->sent[conn]++);
	return placing_tell(placing, conn, &order);
}

bool placing_send(struct placing *placing, unsigned conn, size_t len, DAT_COMPLETION_FLAGS flags)
{
	const struct placing_reply reply =
		placing_send_as(placing, conn, (struct placing_order){.len = len, .flags = flags});

	assert_int_equal(reply.status, DAT_DTO_SUCCESS);
	return reply.is_placed;
}

void placing_spin(const struct placing *placing, unsigned conn, uint64_t number, size_t len)
{
	far_spin(placing_at(placing, conn, number) + len - 1, value_of(number));
}

void placing_check(const struct placing *placing, unsigned conn, uint64_t number, size_t len)
{
	const unsigned char *at = placing_at(placing, conn, number);

	dt_check_bytes(at, len, value_of(number));
	dt_check_bytes(at + len, PLACING_SLOT - len, PLACING_FILL);
}

/* By polls: a message that does not notify wakes nobody. */
void placing_take(struct placing *placing, unsigned conn, size_t len)
{
	const uint64_t number = placing->taken[conn]++;
	const DAT_EVENT event = dt_event_poll(placing->ep[conn].recv);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(dto->ep_handle, placing->ep[conn].ep);
	assert_true(dto->user_cookie.as_64 == placing_cookie(conn, number));
	assert_int_equal(dto->status, DAT_DTO_SUCCESS);
	assert_true(dto->transfered_length == len);
	placing_check(placing, conn, number, len);
}

void placing_warm(struct placing *placing, unsigned conn)
{
	bool is_placed = is_hopeless;

	for (unsigned i = 0; i < WARM_MAX && !is_placed; i++) {
		(void)placing_post(placing, conn, PLACING_LEN);
		is_placed = placing_send(placing, conn, PLACING_LEN, 0);
		placing_take(placing, conn, PLACING_LEN);
	}
	is_hopeless |= !is_placed;
}

void placing_repeat(bool (*test)(struct rig *rig, const void *arg), const void *arg)
{
	unsigned i;

	for (i = 0; i < PLACING_ROUNDS_MAX; i++)
		if (test(&rig_of_test, arg) || is_hopeless)
			break;
}
