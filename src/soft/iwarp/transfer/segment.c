// SPDX-License-Identifier: BSD-2-Clause
/* Placing the payload of one segment, and messages that wait for a Receive (segment.h). */
#include "soft/iwarp/transfer/segment.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/mem/pz.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/iwarp/transfer/access.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/extended.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/key.h"
#include "soft/soft.h"

#define LAST_WORD 8u
/* Behind a segment that others of its message follow, only its trailer and the header of the next
 * one are read: the payload of that can then be read to its target, too. */
#define NEXT_HEADER 32u

static bool is_solicited(const struct iw_ddp *ddp)
{
	return ddp->opcode == IW_OP_SEND_SOLICITED || ddp->opcode == IW_OP_SEND_BOTH;
}

void iw_segment_fail_receive(struct iw_conn *conn, struct core_ep *ep,
			     DAT_DTO_COMPLETION_STATUS status)
{
	struct iw_filling *filling = &conn->stream.rx.filling;

	if (filling->is_begun) {
		filling->is_begun = false;
		core_recv_done(ep, status, 0, false);
	}
}

void iw_segment_fail_filling(struct iw_conn *conn, struct core_ep *ep,
			     DAT_DTO_COMPLETION_STATUS status)
{
	const struct iw_read *read = iw_oldest_read(conn);

	iw_segment_fail_receive(conn, ep, status);
	if (read && read->kind == IW_READ_CONSUMER && read->taken)
		core_req_done(ep, core_req_at(&ep->req, read->sequence), status, 0);
}

/* Refuses a segment: the status for what it fills here, and a Terminate. */
static enum iw_take refuse(struct iw_conn *conn, struct core_ep *ep,
			   const struct iw_segment *segment, iw_error error,
			   DAT_DTO_COMPLETION_STATUS status)
{
	const struct iw_read *read = iw_oldest_read(conn);

	if (iw_segment_is_send(segment))
		iw_segment_fail_receive(conn, ep, status);
	if (segment->ddp.opcode == IW_OP_READ_RESPONSE && read && read->kind == IW_READ_CONSUMER)
		core_req_done(ep, core_req_at(&ep->req, read->sequence), status, 0);
	iw_answer_error(conn, error, &segment->offender);
	return IW_ENDED;
}

/* --- begin --- */

/* TERM-25, RDMAP-24: a Response continues the oldest Read exactly where it stands. */
static iw_error check_response(struct iw_conn *conn, const struct iw_segment *segment)
{
	const struct iw_read *read = iw_oldest_read(conn);

	if (!read || read->kind == IW_READ_ATOMIC || segment->ddp.stag != read->stag)
		return IW_ERROR(1, 1, 0);
	if (segment->ddp.offset != read->taken || segment->size > read->size - read->taken ||
	    segment->ddp.is_last != (segment->size == read->size - read->taken))
		return IW_ERROR(1, 1, 1);
	return IW_NO_ERROR;
}

static enum iw_take begin_send(struct iw_conn *conn, struct core_ep *ep,
			       const struct iw_segment *segment)
{
	struct iw_filling *filling = &conn->stream.rx.filling;
	const struct core_wqe *receive = core_recv_next(ep);

	if (!receive)
		return IW_WAIT;
	if (!filling->is_begun)
		*filling = (struct iw_filling){.is_begun = true};
	/* DTO-79; neither value can wrap */
	if (segment->size > receive->len - filling->offset)
		return refuse(conn, ep, segment, IW_ERROR(1, 2, 5), DAT_DTO_ERR_LOCAL_LENGTH);
	return IW_TAKEN;
}

enum iw_take iw_segment_begin(struct iw_conn *conn, struct core_ep *ep,
			      const struct iw_segment *segment)
{
	iw_error error = IW_NO_ERROR;

	if (iw_segment_is_send(segment))
		return begin_send(conn, ep, segment);
	if (segment->ddp.opcode == IW_OP_READ_RESPONSE) {
		error = check_response(conn, segment);
	} else if (segment->size) {
		error = iw_key_begin(conn, ep, segment->ddp.stag, SOFT_RIGHT_REMOTE_WRITE,
				     segment->ddp.offset, segment->size);
		iw_key_end(conn);
	}
	if (error == IW_NO_ERROR)
		return IW_TAKEN;
	return refuse(conn, ep, segment, error, DAT_DTO_ERR_BAD_RESPONSE);
}

/* --- bytes --- */

/* Is it the byte that proves a Write (RDMAP-36)? Nobody wants its value. */
static bool is_proof(struct iw_conn *conn, const struct iw_segment *segment)
{
	return segment->ddp.opcode == IW_OP_READ_RESPONSE &&
	       iw_oldest_read(conn)->kind != IW_READ_CONSUMER;
}

static enum iw_take refuse_target(struct iw_conn *conn, struct core_ep *ep,
				  const struct iw_segment *segment, iw_error error)
{
	return refuse(conn, ep, segment, error, DAT_DTO_ERR_LOCAL_PROTECTION);
}

enum iw_take iw_segment_put(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			    const uint8_t *bytes, uint32_t count)
{
	struct iw_target target;
	iw_error error;
	int rc = 0;

	if (!count)
		return IW_TAKEN;
	if (is_proof(conn, segment)) {
		iw_target_advance(conn, segment, count);
		return IW_TAKEN;
	}
	error = iw_target_begin(conn, ep, segment, count, &target);
	if (error == IW_NO_ERROR && target.has_key)
		rc = soft_copy_to_consumer(target.pins.iov[0].iov_base, bytes, count);
	else if (error == IW_NO_ERROR)
		rc = soft_scatter(&target.pins, bytes);
	iw_target_end(conn, &target);
	if (rc < 0)
		error = IW_ERROR(1, 0, 0);
	if (error != IW_NO_ERROR)
		return refuse_target(conn, ep, segment, error);
	iw_target_advance(conn, segment, count);
	return IW_TAKEN;
}

/* --- straight from the socket --- */

uint32_t iw_receive_direct(const struct iw_segment *segment)
{
	uint32_t left = segment->size - segment->placed;

	if (!segment->ddp.is_last)
		return left;
	return left > LAST_WORD ? left - LAST_WORD : 0;
}

/* The memory that one system call fills; returns the number of entries. */
static size_t list_parts(const struct iw_rx *rx, const struct iw_target *target, struct iovec *iov)
{
	uint32_t ahead = rx->segment.ddp.is_last ? rx->in.size : rx->tail + NEXT_HEADER;
	size_t count = 0;
	uint32_t i;

	for (i = 0; i < (target->has_key ? 1 : target->pins.count); i++)
		iov[count++] = target->pins.iov[i];
	iov[count++] = (struct iovec){rx->in.data, ahead};
	return count;
}

ssize_t iw_receive(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	const uint32_t most = iw_receive_direct(&rx->segment);
	struct iovec iov[SOFT_IOV_MAX + 1];
	struct msghdr message = {.msg_iov = iov};
	struct iw_target target;
	iw_error error = iw_target_begin(conn, ep, &rx->segment, most, &target);
	ssize_t count = 0;
	uint32_t part;

	if (error == IW_NO_ERROR) {
		message.msg_iovlen = list_parts(rx, &target, iov);
		rx->in.start = rx->in.end = 0;
		count = iw_socket_recvmsg(conn->fd, &message, MSG_DONTWAIT);
		if (count < 0)
			count = -errno;
		rx->is_dry = count < (ssize_t)(most + iov[message.msg_iovlen - 1].iov_len);
	}
	if (count > 0) {
		part = count < (ssize_t)most ? (uint32_t)count : most;
		iw_target_advance(conn, &rx->segment, part);
		rx->in.end = (uint32_t)count - part;
	}
	iw_target_end(conn, &target);
	if (count == -EFAULT)
		error = IW_ERROR(1, 0, 0);
	if (error == IW_NO_ERROR)
		return count;
	(void)refuse_target(conn, ep, &rx->segment, error);
	return -EPROTO;
}

/* --- end --- */

/*
 * RDMAP-13: ends remote access by a key of ours on behalf of the peer. A window is unbound. A region
 * stays, and so does its use for our own messages.
 */
static bool invalidate(struct iw_conn *conn, struct core_ep *ep, uint32_t key)
{
	bool is_found;

	if (core_bind_kill(ep, key) != CORE_KILL_NONE)
		return true;
	iw_key_announce(conn, key);
	is_found = soft_keys_kill(conn->engine->adapter->keys, key, ep->pz->id);
	iw_key_end(conn);
	return is_found;
}

static bool has_invalidate(const struct iw_ddp *ddp)
{
	return ddp->opcode == IW_OP_SEND_INVALIDATE || ddp->opcode == IW_OP_SEND_BOTH;
}

static enum iw_take end_send(struct iw_conn *conn, struct core_ep *ep,
			     const struct iw_segment *segment)
{
	struct iw_filling *filling = &conn->stream.rx.filling;
	const struct iw_ddp *ddp = &segment->ddp;

	if (!ddp->is_last)
		return IW_TAKEN;
	if (has_invalidate(ddp) && !invalidate(conn, ep, ddp->invalidate))
		return refuse(conn, ep, segment, IW_ERROR(0, 2, 9), DAT_DTO_ERR_LOCAL_PROTECTION);
	filling->is_begun = false;
	if (has_invalidate(ddp))
		core_recv_done_invalidate(ep, ddp->invalidate, filling->offset, is_solicited(ddp));
	else
		core_recv_done(ep, DAT_DTO_SUCCESS, filling->offset, is_solicited(ddp));
	conn->stream.rx.done.sends++;
	return IW_TAKEN;
}

enum iw_take iw_segment_end(struct iw_conn *conn, struct core_ep *ep,
			    const struct iw_segment *segment)
{
	if (iw_segment_is_send(segment))
		return end_send(conn, ep, segment);
	if (segment->ddp.opcode == IW_OP_WRITE)
		conn->stream.rx.done.writes += segment->ddp.is_last;
	else if (segment->ddp.is_last)
		iw_complete_read(conn, ep);
	return IW_TAKEN;
}

enum iw_take iw_segment_take(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			     const uint8_t *payload)
{
	enum iw_take take;

	if (iw_is_immediate(&segment->ddp))
		return iw_immediate_take(conn, ep, segment, payload);
	take = iw_segment_begin(conn, ep, segment);
	if (take == IW_TAKEN)
		take = iw_segment_put(conn, ep, segment, payload, segment->size);
	if (take == IW_TAKEN)
		take = iw_segment_end(conn, ep, segment);
	return take;
}

/*
 * ==== messages of queue 0, and those that wait for a Receive ====
 *
 * Their segments are kept in the spill space, so that what follows them in the stream (RDMA Writes,
 * Read Responses, Terminate) is not held up (DTO-117). When the space is full the socket is not
 * read, and the TCP window closes (DDP-17).
 */

/* --- the space that they are kept in --- */

/* Maps the space, unless it is; false: there is no memory. */
static bool open_spill(struct iw_spill *spill)
{
	void *data;

	if (spill->data)
		return true;
	data = mmap(NULL, IW_SPILL_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (data == MAP_FAILED)
		return false;
	*spill = (struct iw_spill){.data = data, .size = IW_SPILL_SIZE};
	return true;
}

void iw_spill_close(struct iw_spill *spill)
{
	if (spill->data)
		(void)munmap(spill->data, spill->size);
	spill->data = NULL;
}

uint8_t *iw_spill_add(struct iw_spill *spill, uint32_t size)
{
	uint8_t *at;

	if (size > spill->size - spill->end) {
		/* to move them for each small record would take too long */
		if (spill->first < spill->size / IW_SPILL_MOVES ||
		    size > spill->size - (spill->end - spill->first))
			return NULL;
		memmove(spill->data, spill->data + spill->first, spill->end - spill->first);
		spill->end -= spill->first;
		spill->first = 0;
	}
	at = spill->data + spill->end;
	spill->end += size;
	if (spill->end > spill->peak)
		spill->peak = spill->end;
	return at;
}

void iw_spill_remove(struct iw_spill *spill, uint32_t size)
{
	spill->first += size;
	if (spill->first < spill->end)
		return;
	spill->first = spill->end = 0;
	if (spill->peak > IW_SPILL_KEPT)
		iw_spill_close(spill);
}

/* --- messages --- */

iw_error iw_message_check(const struct iw_conn *conn, const struct iw_segment *segment)
{
	const struct iw_rx *rx = &conn->stream.rx;
	const struct iw_ddp *ddp = &segment->ddp;

	if (ddp->msn != rx->msn[IW_QUEUE_SEND])
		return IW_ERROR(1, 2, 3);
	if (rx->arrival.is_begun && ddp->opcode != rx->arrival.opcode)
		return IW_ERROR(0, 2, 6);
	if (ddp->mo != (rx->arrival.is_begun ? rx->arrival.offset : 0))
		return IW_ERROR(1, 2, 4);
	if (segment->size > UINT32_MAX - ddp->mo)
		return IW_ERROR(1, 2, 5);
	if (iw_is_immediate(ddp))
		return iw_whole_check(ddp, segment->size, IW_IMMEDIATE_SIZE);
	return IW_NO_ERROR;
}

void iw_message_advance(struct iw_conn *conn, const struct iw_segment *segment)
{
	struct iw_rx *rx = &conn->stream.rx;
	struct iw_arrival *arrival = &rx->arrival;

	if (segment->ddp.is_last) {
		arrival->is_begun = false;
		rx->msn[IW_QUEUE_SEND]++;
		return;
	}
	arrival->is_begun = true;
	arrival->opcode = segment->ddp.opcode;
	arrival->offset = segment->ddp.mo + segment->size;
}

/* What a segment takes in the spill space: its description, then its payload. */
static uint32_t record_size(const struct iw_segment *segment)
{
	return ((uint32_t)sizeof(*segment) + segment->size + 7u) & ~7u;
}

/* Room for a record; NULL: the space is full, or there is no memory for it. */
static uint8_t *add_record(struct iw_conn *conn, uint32_t size)
{
	struct iw_spill *spill = &conn->stream.rx.spill;

	return open_spill(spill) ? iw_spill_add(spill, size) : NULL;
}

/* Starts the limit of DTO-106, if there is one. */
static void start_waiting(struct iw_conn *conn)
{
	uint64_t limit_ns = conn->engine->settings.rnr_timeout_ms * UINT64_C(1000000);
	struct iw_rx *rx = &conn->stream.rx;

	if (rx->waiting_ns)
		return;
	rx->waiting_ns = UINT64_MAX;
	if (!limit_ns)
		return;
	rx->waiting_ns = core_now_ns() + limit_ns;
	iw_conn_lower_deadline(conn, rx->waiting_ns);
}

void iw_message_end_waiting(struct iw_conn *conn)
{
	conn->stream.rx.waiting_ns = 0;
}

enum iw_take iw_message_keep(struct iw_conn *conn, const struct iw_segment *segment,
			     const uint8_t *payload)
{
	uint8_t *at;

	start_waiting(conn);
	at = add_record(conn, record_size(segment));
	if (!at) {
		conn->stream.rx.is_blocked = true;
		return IW_WAIT;
	}
	memcpy(at, segment, sizeof(*segment));
	memcpy(at + sizeof(*segment), payload, segment->size);
	return IW_TAKEN;
}

void iw_message_end_of_stream(struct iw_conn *conn)
{
	struct iw_rx *rx = &conn->stream.rx;

	if (conn->is_own_peer || (!iw_message_is_waiting(conn) && !rx->is_blocked)) {
		iw_conn_close(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	} else if (!rx->end_ns) {
		rx->end_ns =
			core_now_ns() + conn->engine->settings.peer_timeout_ms * UINT64_C(1000000);
		iw_conn_lower_deadline(conn, rx->end_ns);
	}
}

/* Is the time over that a message may wait? */
static bool is_too_late(struct iw_conn *conn)
{
	const struct iw_rx *rx = &conn->stream.rx;

	if (rx->waiting_ns == UINT64_MAX)
		return false;
	if (core_now_ns() >= rx->waiting_ns)
		return true;
	iw_conn_lower_deadline(conn, rx->waiting_ns);
	return false;
}

static enum iw_take deliver_one(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_spill *spill = &conn->stream.rx.spill;
	const uint8_t *at = iw_spill_first(spill);
	struct iw_segment segment;
	enum iw_take take;

	memcpy(&segment, at, sizeof(segment));
	take = iw_segment_take(conn, ep, &segment, at + sizeof(segment));
	if (take == IW_WAIT)
		start_waiting(conn);
	if (take == IW_WAIT && is_too_late(conn)) {
		iw_answer_error(conn, IW_ERROR(1, 2, 2), &segment.offender);
		return IW_ENDED;
	}
	if (take == IW_TAKEN)
		iw_spill_remove(spill, record_size(&segment));
	return take;
}

int iw_message_deliver(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_rx *rx = &conn->stream.rx;
	int handled = 0;

	if (!iw_message_is_waiting(conn))
		rx->is_blocked = false; /* there was no memory for the spill space */
	while (iw_message_is_waiting(conn) && iw_conn_state(conn) == IW_ESTABLISHED) {
		if (deliver_one(conn, ep) != IW_TAKEN)
			return handled;
		handled++;
		iw_message_end_waiting(conn);
		rx->is_blocked = false;
	}
	return handled;
}
