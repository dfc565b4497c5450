// SPDX-License-Identifier: BSD-2-Clause
/* A receiver that makes no call while a message arrives; see the header. */
#include "away.h"

#include "bind_util.h"

#define SEGMENTS_MAX 4
#define SENDER_LEN 8192u
#define COOKIE 7u

/* --- the other process --- */

static void sender_post(struct far_end *far, const struct away_order *order, size_t len,
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

static DAT_DTO_COMPLETION_STATUS sender_sends(struct far_end *far, const struct away_order *order)
{
	memset(far->buf.p, order->value, order->len);
	sender_post(far, order, order->len, order->flags);
	if (order->flags & DAT_COMPLETION_SUPPRESS_FLAG)
		return DAT_DTO_SUCCESS;
	return sender_status(far);
}

static DAT_DTO_COMPLETION_STATUS sender_reads_and_sends(struct far_end *far,
							const struct away_order *order)
{
	post_read(&far->ep, dt_seg(&far->buf, 0, order->len), order->remote, COOKIE + 1, 0);
	sender_post(far, order, order->len, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	expect_sent(&far->ep, COOKIE + 1, order->len);
	return sender_status(far);
}

static DAT_DTO_COMPLETION_STATUS sender_binds_and_sends(struct far_end *far,
							const struct away_order *order)
{
	const size_t at = SENDER_LEN / 2;
	DAT_RMR_TRIPLET window;
	DAT_RMR_HANDLE rmr;

	memset(far->buf.p + at, order->value, AWAY_LEN);
	dt_ok(dat_rmr_create(far->ia.pz, &rmr));
	window = dt_rseg(&far->buf, at, AWAY_LEN);
	window.rmr_context = bind_post(&far->ep, rmr, dt_seg(&far->buf, at, AWAY_LEN),
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

static DAT_DTO_COMPLETION_STATUS sender_does(struct far_end *far, const struct away_order *order)
{
	switch (order->what) {
	case AWAY_SEND:
		return sender_sends(far, order);
	case AWAY_READ_AND_SEND:
		return sender_reads_and_sends(far, order);
	case AWAY_BIND_AND_SEND:
		return sender_binds_and_sends(far, order);
	case AWAY_DISCONNECT:
		dt_ok(dat_ep_disconnect(far->ep.ep, order->how));
		sender_expects_end(far, DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	case AWAY_FREE_EP:
		dt_ok(dat_ep_free(far->ep.ep));
		dt_no_event(far->ep.request);
		break;
	case AWAY_BROKEN:
		sender_expects_end(far, DAT_CONNECTION_EVENT_BROKEN);
		break;
	case AWAY_ENDED:
		sender_expects_end(far, DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	case AWAY_POST:
		post_recv(&far->ep, dt_seg(&far->buf, 0, order->len), COOKIE);
		break;
	case AWAY_EXIT:
		break;
	}
	return DAT_DTO_SUCCESS;
}

static void away_child(struct dt_peer *peer, void *arg)
{
	struct away_order order;
	struct far_end far;

	(void)arg;
	far_end_open(peer, &far, SENDER_LEN);
	do {
		DAT_DTO_COMPLETION_STATUS status;

		dt_peer_recv(peer, &order, sizeof(order));
		status = sender_does(&far, &order);
		dt_peer_send(peer, &status, sizeof(status));
	} while (order.what != AWAY_EXIT);
	dt_ia_abort(&far.ia);
}

/* --- the receiver --- */

/* Creates an endpoint; its Receives complete on the EVD of the first one. */
static void create_ep(struct away *away, unsigned conn)
{
	struct dt_ia *ia = &away->rig->ia;
	struct dt_ep *ep = &away->ep[conn];

	if (!conn) {
		dt_ep_create(ia, ia->pz, &away->rig->attr_a, ep);
		return;
	}
	ep->recv = away->ep[0].recv;
	ep->request = dt_evd_create(ia, 16, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	ep->conn = dt_evd_create(ia, 4, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(ia->ia, ia->pz, ep->recv, ep->request, ep->conn, NULL, &ep->ep));
}

void away_open_with(struct away *away, struct rig *rig, unsigned conns,
		    DAT_COMPLETION_FLAGS recv_flags)
{
	memset(away, 0, sizeof(*away));
	away->rig = rig;
	away->conns = conns;
	for (unsigned i = 0; i < conns; i++)
		dt_peer_start(&away->peer[i], away_child, NULL);
	rig_begin(rig);
	rig->attr_a.recv_completion_flags = recv_flags;
	for (unsigned i = 0; i < conns; i++) {
		create_ep(away, i);
		far_connect_ep(&rig->ia, &away->ep[i], &away->peer[i]);
	}
}

void away_open(struct away *away, struct rig *rig, unsigned conns)
{
	away_open_with(away, rig, conns, DAT_COMPLETION_DEFAULT_FLAG);
}

void away_close(struct away *away)
{
	for (unsigned i = 0; i < away->conns; i++) {
		if (!away->peer[i].pid)
			continue;
		(void)away_tell(away, i, &(struct away_order){.what = AWAY_EXIT});
		dt_peer_join(&away->peer[i]);
	}
	rig_end(away->rig);
}

static size_t offset_of(unsigned conn, uint64_t number)
{
	const size_t slots = RIG_LEN / AWAY_SLOT / AWAY_CONNS;

	return (conn * slots + number % slots) * AWAY_SLOT;
}

unsigned char *away_at(const struct away *away, unsigned conn, uint64_t number)
{
	return away->rig->x.p + offset_of(conn, number);
}

static unsigned char value_of(uint64_t number)
{
	return (unsigned char)(1 + number % 200);
}

uint64_t away_cookie(unsigned conn, uint64_t number)
{
	return (uint64_t)conn << 32 | number;
}

uint64_t away_post(struct away *away, unsigned conn, size_t len)
{
	const uint64_t number = away->posted[conn]++;

	assert_true(len <= AWAY_SLOT);
	memset(away_at(away, conn, number), AWAY_FILL, AWAY_SLOT);
	post_recv(&away->ep[conn], dt_seg(&away->rig->x, offset_of(conn, number), len),
		  away_cookie(conn, number));
	return number;
}

DAT_DTO_COMPLETION_STATUS away_tell(const struct away *away, unsigned conn,
				    const struct away_order *order)
{
	struct dt_peer peer = away->peer[conn];
	DAT_DTO_COMPLETION_STATUS status;

	dt_peer_send(&peer, order, sizeof(*order));
	dt_peer_recv(&peer, &status, sizeof(status));
	return status;
}

DAT_DTO_COMPLETION_STATUS away_send_as(struct away *away, unsigned conn, struct away_order order)
{
	order.value = value_of(away->sent[conn]++);
	return away_tell(away, conn, &order);
}

void away_send(struct away *away, unsigned conn, size_t len, DAT_COMPLETION_FLAGS flags)
{
	const DAT_DTO_COMPLETION_STATUS status =
		away_send_as(away, conn, (struct away_order){.len = len, .flags = flags});

	assert_int_equal(status, DAT_DTO_SUCCESS);
}

void away_spin(const struct away *away, unsigned conn, uint64_t number, size_t len)
{
	far_spin(away_at(away, conn, number) + len - 1, value_of(number));
}

void away_check(const struct away *away, unsigned conn, uint64_t number, size_t len)
{
	const unsigned char *at = away_at(away, conn, number);

	dt_check_bytes(at, len, value_of(number));
	dt_check_bytes(at + len, AWAY_SLOT - len, AWAY_FILL);
}

/* By polls: a message that does not notify wakes nobody. */
void away_take(struct away *away, unsigned conn, size_t len)
{
	const uint64_t number = away->taken[conn]++;
	const DAT_EVENT event = dt_event_poll(away->ep[conn].recv);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(dto->ep_handle, away->ep[conn].ep);
	assert_true(dto->user_cookie.as_64 == away_cookie(conn, number));
	assert_int_equal(dto->status, DAT_DTO_SUCCESS);
	assert_true(dto->transfered_length == len);
	away_check(away, conn, number, len);
}
