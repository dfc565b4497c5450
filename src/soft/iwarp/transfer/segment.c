// SPDX-License-Identifier: BSD-2-Clause
/* Placing the payload of one segment (segment.h). */
#include "soft/iwarp/transfer/segment.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/mem/pz.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/iwarp/transfer/answer.h"
#include "soft/iwarp/transfer/checksum.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/key.h"
#include "soft/soft.h"

#define LAST_WORD 8u

/* Where the next bytes of a segment go. */
struct target {
	struct soft_pins pins; /* Send, Read Response */
	bool has_key;	       /* RDMA Write: a key of ours is announced */
};

static bool is_send(const struct iw_segment *segment)
{
	return !segment->ddp.is_tagged;
}

static bool is_solicited(const struct iw_ddp *ddp)
{
	return ddp->opcode == IW_OP_SEND_SOLICITED || ddp->opcode == IW_OP_SEND_BOTH;
}

static struct iw_read *oldest_read(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;

	return tx->read_count ? &tx->read[tx->read_first] : NULL;
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
	const struct iw_read *read = oldest_read(conn);

	iw_segment_fail_receive(conn, ep, status);
	if (read && read->kind == IW_READ_CONSUMER && read->taken)
		core_req_done(ep, core_req_at(&ep->req, read->sequence), status, 0);
}

/* Refuses a segment: the status for what it fills here, and a Terminate. */
static enum iw_take refuse(struct iw_conn *conn, struct core_ep *ep,
			   const struct iw_segment *segment, iw_error error,
			   DAT_DTO_COMPLETION_STATUS status)
{
	const struct iw_read *read = oldest_read(conn);

	if (is_send(segment))
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
	const struct iw_read *read = oldest_read(conn);

	if (!read || segment->ddp.stag != read->stag)
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

	if (is_send(segment))
		return begin_send(conn, ep, segment);
	if (segment->ddp.opcode == IW_OP_READ_RESPONSE) {
		error = check_response(conn, segment);
	} else if (segment->size) {
		error = iw_key_begin(conn, ep, segment->ddp.stag, true, segment->ddp.offset,
				     segment->size);
		iw_key_end(conn);
	}
	if (error == IW_NO_ERROR)
		return IW_TAKEN;
	return refuse(conn, ep, segment, error, DAT_DTO_ERR_BAD_RESPONSE);
}

/* --- bytes --- */

/* Finds and pins the memory of the next `count` bytes: IW_NO_ERROR, or the error. */
static iw_error target_begin(struct iw_conn *conn, struct core_ep *ep,
			     const struct iw_segment *segment, uint32_t count,
			     struct target *target)
{
	const struct iw_read *read;
	const struct core_req *req;
	uint64_t address;

	target->has_key = segment->ddp.opcode == IW_OP_WRITE;
	target->pins.count = 0;
	if (target->has_key) {
		address = segment->ddp.offset + segment->placed;
		target->pins.iov[0] = (struct iovec){(void *)(uintptr_t)address, count};
		return iw_key_begin(conn, ep, segment->ddp.stag, true, address, count);
	}
	if (is_send(segment))
		return soft_pin_receive(ep, core_recv_next(ep), conn->stream.rx.filling.offset,
					count, &target->pins) < 0
			       ? IW_ERROR(1, 0, 0)
			       : IW_NO_ERROR;
	read = oldest_read(conn);
	req = core_req_at(&ep->req, read->sequence);
	return soft_pin(ep, req->iov, req->segments, read->offset + read->taken, count,
			CORE_MEM_TARGET, &target->pins) < 0
		       ? IW_ERROR(1, 1, 0)
		       : IW_NO_ERROR;
}

static void target_end(struct iw_conn *conn, struct target *target)
{
	if (target->has_key)
		iw_key_end(conn);
	else
		soft_unpin(&target->pins);
}

/* The last byte of a Receive is not that of such a segment: a consumer may poll it (COMPAT-46). */
static bool continues_send(const struct iw_conn *conn, struct core_ep *ep,
			   const struct iw_segment *segment)
{
	const struct iw_filling *filling = &conn->stream.rx.filling;

	return filling->is_begun && segment->size < core_recv_next(ep)->len - filling->offset;
}

static bool continues_response(struct iw_conn *conn, const struct iw_segment *segment)
{
	return check_response(conn, segment) == IW_NO_ERROR && oldest_read(conn)->taken;
}

bool iw_segment_continues(struct iw_conn *conn, struct core_ep *ep,
			  const struct iw_segment *segment)
{
	struct target target;
	bool continues, is_one_piece;

	if (segment->ddp.opcode == IW_OP_READ_RESPONSE)
		continues = continues_response(conn, segment);
	else
		continues = is_send(segment) && continues_send(conn, ep, segment);
	if (!continues)
		return false;
	is_one_piece = target_begin(conn, ep, segment, segment->size, &target) == IW_NO_ERROR &&
		       target.pins.count == 1;
	target_end(conn, &target);
	return is_one_piece;
}

/* Is it the byte that proves a Write (RDMAP-36)? Nobody wants its value. */
static bool is_proof(struct iw_conn *conn, const struct iw_segment *segment)
{
	return segment->ddp.opcode == IW_OP_READ_RESPONSE &&
	       oldest_read(conn)->kind != IW_READ_CONSUMER;
}

static void advance(struct iw_conn *conn, struct iw_segment *segment, uint32_t count)
{
	segment->placed += count;
	if (is_send(segment))
		conn->stream.rx.filling.offset += count;
	else if (segment->ddp.opcode == IW_OP_READ_RESPONSE)
		oldest_read(conn)->taken += count;
}

/* Our own memory, or the region that the peer may write, is not valid any more. */
static enum iw_take refuse_target(struct iw_conn *conn, struct core_ep *ep,
				  const struct iw_segment *segment, iw_error error)
{
	return refuse(conn, ep, segment, error, DAT_DTO_ERR_LOCAL_PROTECTION);
}

enum iw_take iw_segment_put(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			    const uint8_t *bytes, uint32_t count)
{
	struct target target;
	iw_error error;
	int rc = 0;

	if (!count)
		return IW_TAKEN;
	if (is_proof(conn, segment)) {
		advance(conn, segment, count);
		return IW_TAKEN;
	}
	error = target_begin(conn, ep, segment, count, &target);
	if (error == IW_NO_ERROR && target.has_key)
		rc = soft_copy_to_consumer(target.pins.iov[0].iov_base, bytes, count);
	else if (error == IW_NO_ERROR)
		rc = soft_scatter(&target.pins, bytes);
	target_end(conn, &target);
	if (rc < 0)
		error = IW_ERROR(1, 0, 0);
	if (error != IW_NO_ERROR)
		return refuse_target(conn, ep, segment, error);
	advance(conn, segment, count);
	return IW_TAKEN;
}

/*
 * The consumer may look at the target of RDMA at any time (COMPAT-46), which the thread sanitizer
 * would call a race with recvmsg. It does not see a bare system call.
 */
static ssize_t receive_message(int fd, struct msghdr *message)
{
#ifdef __SANITIZE_THREAD__
	ssize_t count = syscall(SYS_recvmsg, fd, message, MSG_DONTWAIT);
#else
	ssize_t count = recvmsg(fd, message, MSG_DONTWAIT);
#endif

	return count < 0 ? -errno : count;
}

uint32_t iw_segment_direct(const struct iw_segment *segment)
{
	uint32_t left = segment->size - segment->placed;

	if (!segment->ddp.is_last)
		return left;
	return left > LAST_WORD ? left - LAST_WORD : 0;
}

ssize_t iw_segment_receive(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment)
{
	struct iw_buffer *in = &conn->stream.rx.in;
	uint32_t most = iw_segment_direct(segment);
	struct iovec iov[SOFT_IOV_MAX + 1];
	struct msghdr message = {.msg_iov = iov};
	struct target target;
	iw_error error = target_begin(conn, ep, segment, most, &target);
	ssize_t count;
	uint32_t i, direct;

	if (error != IW_NO_ERROR) {
		target_end(conn, &target);
		(void)refuse_target(conn, ep, segment, error);
		return -EPROTO;
	}
	message.msg_iovlen = target.has_key ? 1 : target.pins.count;
	for (i = 0; i < message.msg_iovlen; i++)
		iov[i] = target.pins.iov[i];
	in->start = in->end = 0;
	iov[message.msg_iovlen++] = (struct iovec){in->data, in->size};
	count = receive_message(conn->fd, &message);
	direct = count < (ssize_t)most ? (uint32_t)(count < 0 ? 0 : count) : most;
	if (conn->has_crc && iw_checksum_pins(&target.pins, direct, &conn->stream.rx.crc) < 0)
		count = -EFAULT;
	target_end(conn, &target);
	if (count == -EFAULT) {
		(void)refuse_target(conn, ep, segment, IW_ERROR(1, 0, 0));
		return -EPROTO;
	}
	if (count <= 0)
		return count;
	in->end = (uint32_t)count - direct;
	advance(conn, segment, direct);
	return count;
}

/* --- end --- */

/*
 * RDMAP-13: ends remote access by a key of ours on behalf of the peer. The region itself stays, and
 * so does its use for our own messages.
 */
static bool invalidate(struct iw_conn *conn, const struct core_ep *ep, uint32_t key)
{
	struct soft_keys *keys = conn->engine->adapter->keys;
	const struct soft_key_entry *entry = &soft_keys_entries(keys)[soft_key_index(key)];
	bool is_found;

	/* while the key is announced nobody else releases it */
	iw_key_announce(conn, key);
	is_found =
		!soft_key_check(soft_keys_entries(keys), key, 0, ep->pz->id, entry->address, 0) &&
		soft_key_is_remote(entry);
	if (is_found)
		soft_keys_end_remote(keys, key);
	iw_key_end(conn);
	return is_found;
}

static enum iw_take end_send(struct iw_conn *conn, struct core_ep *ep,
			     const struct iw_segment *segment)
{
	struct iw_filling *filling = &conn->stream.rx.filling;
	const struct iw_ddp *ddp = &segment->ddp;

	if (!ddp->is_last)
		return IW_TAKEN;
	if ((ddp->opcode == IW_OP_SEND_INVALIDATE || ddp->opcode == IW_OP_SEND_BOTH) &&
	    !invalidate(conn, ep, ddp->invalidate))
		return refuse(conn, ep, segment, IW_ERROR(0, 2, 9), DAT_DTO_ERR_LOCAL_PROTECTION);
	filling->is_begun = false;
	core_recv_done(ep, DAT_DTO_SUCCESS, filling->offset, is_solicited(ddp));
	return IW_TAKEN;
}

enum iw_take iw_segment_end(struct iw_conn *conn, struct core_ep *ep,
			    const struct iw_segment *segment)
{
	if (is_send(segment))
		return end_send(conn, ep, segment);
	if (segment->ddp.opcode == IW_OP_READ_RESPONSE && segment->ddp.is_last)
		iw_complete_read(conn, ep);
	return IW_TAKEN;
}

enum iw_take iw_segment_take(struct iw_conn *conn, struct core_ep *ep, struct iw_segment *segment,
			     const uint8_t *payload)
{
	enum iw_take take = iw_segment_begin(conn, ep, segment);

	if (take == IW_TAKEN)
		take = iw_segment_put(conn, ep, segment, payload, segment->size);
	if (take == IW_TAKEN)
		take = iw_segment_end(conn, ep, segment);
	return take;
}
