// SPDX-License-Identifier: BSD-2-Clause
/* Beginning and end of the streams of a connection. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/socket.h"
#include "soft/iwarp/transfer/tx.h"

#define EMSS_LEAST 536u
#define FIRST_WAIT_NS UINT64_C(1000000000)

/* MPA-55 to -58 */
static uint32_t mulpdu_of(const struct iw_conn *conn)
{
	uint32_t emss;

	if (conn->is_own_peer)
		return IW_ULPDU_MAX;
	emss = iw_socket_mss(conn->fd);
	return iw_fpdu_mulpdu(emss < EMSS_LEAST ? EMSS_LEAST : emss);
}

void iw_stream_update_mulpdu(struct iw_conn *conn)
{
	if (!conn->is_own_peer)
		conn->stream.tx.mulpdu = mulpdu_of(conn);
}

int iw_stream_begin(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_rx *rx = &conn->stream.rx;
	uint8_t *data = rx->in.data ? rx->in.data : iw_buffer_get(conn->engine);
	struct iw_lists *lists;
	unsigned queue;

	if (!data)
		return -ENOMEM;
	rx->in = (struct iw_buffer){.data = data, .size = IW_RX_SIZE};
	tx->out = (struct iw_buffer){.data = data + IW_RX_SIZE, .size = IW_TX_SIZE};
	lists = (struct iw_lists *)(void *)(data + IW_RX_SIZE + IW_TX_SIZE);
	tx->read = lists->read;
	tx->served = lists->served;
	tx->direct.frame = lists->frame;
	for (queue = 0; queue < IW_QUEUES; queue++)
		tx->msn[queue] = rx->msn[queue] = 1;
	tx->mulpdu = mulpdu_of(conn);
	tx->error = IW_NO_ERROR;
	tx->may_send = conn->is_active;
	/* any value will do: a Response is compared with what is in flight */
	if (getrandom(&tx->stag, sizeof(tx->stag), GRND_NONBLOCK) < 0)
		tx->stag = (uint32_t)core_now_ns();
	return 0;
}

void iw_stream_start(struct iw_conn *conn, const struct core_ep *ep)
{
	struct iw_tx *tx = &conn->stream.tx;

	/* the sequence goes on from one connection of the endpoint to the next */
	tx->next = tx->unsent = ep->req.tail;
	tx->wants_proof = tx->asked = tx->proven = ep->req.tail;
}

void iw_stream_free(struct iw_conn *conn)
{
	struct iw_stream *stream = &conn->stream;

	iw_buffer_put(conn->engine, stream->rx.in.data);
	stream->rx.in.data = NULL;
	iw_spill_close(&stream->rx.spill);
}

void iw_stream_send_rtr(struct iw_conn *conn, enum iw_rtr form)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_ddp ddp = {.is_last = true, .opcode = IW_OP_SEND, .queue = IW_QUEUE_SEND};

	switch (form) {
	case IW_RTR_NONE:
		return;
	case IW_RTR_READ:
		iw_tx_put_empty_read(conn, iw_tx_add_read(tx, IW_READ_RTR, 0));
		return;
	case IW_RTR_WRITE:
		iw_frame_put_word(conn, IW_STAG_RTR, 0);
		return;
	case IW_RTR_SEND:
		ddp.msn = tx->msn[IW_QUEUE_SEND]++;
		iw_frame_put_empty(conn, &ddp);
		return;
	}
}

/* --- the RTR again --- */

static const uint64_t repeat_ms[] = {10, 100, 1000}; /* after the RTR */
#define REPEATS (sizeof(repeat_ms) / sizeof(repeat_ms[0]))

static void set_repeat(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;

	tx->repeat_ns = tx->repeats < REPEATS ? tx->rtr_ns + repeat_ms[tx->repeats] * 1000000u : 0;
	if (tx->repeat_ns)
		iw_conn_lower_deadline(conn, tx->repeat_ns);
}

void iw_stream_begin_repeats(struct iw_conn *conn)
{
	conn->stream.tx.rtr_ns = core_now_ns();
	set_repeat(conn);
}

void iw_stream_repeat_rtr(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;

	if (!tx->repeat_ns)
		return;
	if (conn->stream.rx.is_any) {
		tx->repeat_ns = 0;
		return;
	}
	if (core_now_ns() >= tx->repeat_ns) {
		/* bytes that still have to be sent do the same */
		if (!tx->is_in_request && !tx->is_in_response && iw_frame_has_room(conn, 0))
			iw_stream_send_rtr(conn, IW_RTR_WRITE);
		tx->repeats++;
	}
	set_repeat(conn);
}

/* --- the first FPDU of the initiator --- */

void iw_stream_wait_for_first(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;
	uint64_t now;

	if (tx->has_told_wait)
		return;
	now = core_now_ns();
	if (!tx->wait_ns)
		tx->wait_ns = now + FIRST_WAIT_NS;
	if (now < tx->wait_ns) {
		iw_conn_lower_deadline(conn, tx->wait_ns);
		return;
	}
	tx->has_told_wait = true;
	core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
		 "TCP connection on descriptor %d: requests wait for the first message of the "
		 "peer, which has connected without the peer-to-peer model and has to send first",
		 conn->fd);
}

void iw_stream_send_error(struct iw_conn *conn, iw_error error)
{
	struct iw_tx *tx = &conn->stream.tx;

	if (!tx->out.data && iw_stream_begin(conn) < 0)
		return;
	memset(&tx->offender, 0, sizeof(tx->offender));
	tx->error = error;
	tx->is_over = true;
}
