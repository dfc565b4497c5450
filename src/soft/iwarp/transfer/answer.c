// SPDX-License-Identifier: BSD-2-Clause
/* What the peer is owed (answer.h). */
#include "soft/iwarp/transfer/answer.h"

#include <errno.h>

#include "core/base/log.h"
#include "core/mem/pz.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/segment.h"
#include "soft/iwarp/transfer/tx.h"
#include "soft/key.h"
#include "soft/soft.h"

#define RESPONSE_MAX (16u * 1024u) /* payload of one segment, which is copied */

/* --- keys --- */

/* What is wrong with an access; soft_key_check() has refused it. */
static iw_error explain(const struct soft_key_entry *entries, const struct core_ep *ep,
			uint32_t key, bool is_write, uint64_t address, uint64_t length)
{
	static const struct {
		iw_error write, read;
	} codes[] = {
		{IW_ERROR(1, 1, 0), IW_ERROR(0, 1, 0)}, /* no such STag */
		{IW_ERROR(1, 1, 2), IW_ERROR(0, 1, 3)}, /* another zone */
		{IW_ERROR(1, 1, 3), IW_ERROR(0, 1, 4)}, /* the range wraps */
		{IW_ERROR(1, 1, 1), IW_ERROR(0, 1, 1)}, /* out of range */
		{IW_ERROR(0, 1, 2), IW_ERROR(0, 1, 2)}, /* no such right */
	};
	/* cast, because atomic loads of older compilers refuse const */
	struct soft_key_entry *entry =
		(struct soft_key_entry *)(uintptr_t)&entries[soft_key_index(key)];
	unsigned which;

	/* the entry may change meanwhile, which at worst names another cause */
	if (!key || atomic_load(&entry->key) != key || !soft_key_is_remote(entry))
		which = 0;
	else if (entry->pz != ep->pz->id)
		which = 1;
	else if (address + (length - 1) < address) /* the end may be 2^64 itself */
		which = 2;
	else if (address < entry->address || length > entry->length ||
		 address - entry->address > entry->length - length)
		which = 3;
	else
		which = 4;
	return is_write ? codes[which].write : codes[which].read;
}

void iw_key_announce(struct iw_conn *conn, uint32_t key)
{
	atomic_store_explicit(&conn->announced, key, memory_order_relaxed);
	/* full fence: pairs with the one in soft_keys_invalidate */
	atomic_thread_fence(memory_order_seq_cst);
}

iw_error iw_key_begin(struct iw_conn *conn, struct core_ep *ep, uint32_t key, bool is_write,
		      uint64_t address, uint64_t length)
{
	const struct soft_key_entry *entries = soft_keys_entries(conn->engine->adapter->keys);
	uint32_t right = is_write ? SOFT_RIGHT_REMOTE_WRITE : SOFT_RIGHT_REMOTE_READ;

	iw_key_announce(conn, key);
	if (!soft_key_check(entries, key, right, ep->pz->id, address, length))
		return IW_NO_ERROR;
	return explain(entries, ep, key, is_write, address, length);
}

void iw_key_end(struct iw_conn *conn)
{
	/* release: the bytes are placed before dat_lmr_free continues */
	atomic_store_explicit(&conn->announced, 0, memory_order_release);
}

/* --- errors --- */

void iw_answer_error(struct iw_conn *conn, iw_error error, const struct iw_offender *offender)
{
	static const struct iw_offender none = {.ulpdu = 0};
	struct iw_tx *tx = &conn->stream.tx;

	if (iw_conn_state(conn) >= IW_CLOSING)
		return;
	core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
		 "TCP connection on descriptor %d ends with a Terminate: %s (0x%04x)", conn->fd,
		 iw_error_text(error), (unsigned int)error);
	tx->error = error;
	tx->offender = offender ? *offender : none;
	tx->is_over = true;
	iw_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
}

/* --- RDMA Reads of the peer --- */

iw_error iw_answer_take_request(struct iw_conn *conn, struct core_ep *ep,
				const struct iw_read_request *request,
				const struct iw_offender *offender)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_served *served;
	iw_error error;

	if (tx->served_count >= conn->ird || tx->served_count == IW_READS)
		return IW_ERROR(1, 2, 2);
	if (request->size) {
		error = iw_key_begin(conn, ep, request->source_stag, false, request->source_offset,
				     request->size);
		iw_key_end(conn);
		if (error != IW_NO_ERROR)
			return error;
	}
	served = &tx->served[(tx->served_first + tx->served_count++) % IW_READS];
	*served = (struct iw_served){.request = *request, .offender = *offender};
	return IW_NO_ERROR;
}

/* Copies the bytes of a segment of a Response. */
static iw_error fetch(struct iw_conn *conn, struct core_ep *ep,
		      const struct iw_read_request *request, uint32_t offset, uint8_t *to,
		      uint32_t len)
{
	uint64_t address = request->source_offset + offset;
	iw_error error = iw_key_begin(conn, ep, request->source_stag, false, address, len);

	if (error == IW_NO_ERROR &&
	    soft_copy_from_consumer(to, (const void *)(uintptr_t)address, len, NULL) < 0)
		error = IW_ERROR(0, 0, 0);
	iw_key_end(conn);
	return error;
}

static int put_response(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_served *served = &tx->served[tx->served_first];
	uint32_t left = served->request.size - served->offset;
	uint32_t len = iw_frame_most(conn, IW_TAGGED_HEAD);
	struct iw_ddp ddp = {.is_tagged = true,
			     .opcode = IW_OP_READ_RESPONSE,
			     .stag = served->request.sink_stag,
			     .offset = served->request.sink_offset + served->offset};
	iw_error error;
	uint8_t *to;

	if (len > RESPONSE_MAX)
		len = RESPONSE_MAX;
	if (len > left)
		len = left;
	if (!iw_frame_has_room(conn, len))
		return -EAGAIN;
	ddp.is_last = len == left;
	to = iw_frame_begin(conn, &ddp, len);
	error = len ? fetch(conn, ep, &served->request, served->offset, to, len) : IW_NO_ERROR;
	if (error != IW_NO_ERROR) {
		iw_answer_error(conn, error, &served->offender);
		return -EACCES;
	}
	iw_frame_end(conn, &ddp, len);
	served->offset += len;
	*budget -= len < *budget ? len : *budget;
	tx->is_in_response = !ddp.is_last;
	if (ddp.is_last) {
		tx->served_first = (tx->served_first + 1) % IW_READS;
		tx->served_count--;
	}
	return 1;
}

/* --- all of it --- */

static bool are_told(const struct iw_rx *rx)
{
	return rx->done.sends == rx->told.sends && rx->done.writes == rx->told.writes;
}

/* Once for each message that waits. */
static bool is_drain_due(const struct iw_conn *conn)
{
	const struct iw_rx *rx = &conn->stream.rx;

	return conn->is_draining && iw_message_is_waiting(conn) &&
	       !(rx->has_told_drain && rx->drain_told == rx->done.sends);
}

bool iw_counts_are_due(const struct iw_conn *conn)
{
	return conn->is_own_peer && (!are_told(&conn->stream.rx) || is_drain_due(conn));
}

static void put_counts(struct iw_conn *conn)
{
	struct iw_rx *rx = &conn->stream.rx;

	iw_frame_put_word(conn, IW_STAG_COUNTS, (uint64_t)rx->done.sends << 32 | rx->done.writes);
	rx->told = rx->done;
}

void iw_counts_put(struct iw_conn *conn)
{
	struct iw_rx *rx = &conn->stream.rx;

	if (!are_told(rx))
		put_counts(conn);
	if (is_drain_due(conn)) {
		iw_frame_put_word(conn, IW_STAG_DRAINS, 0);
		rx->has_told_drain = true;
		rx->drain_told = rx->done.sends;
	}
}

int iw_answer_put(struct iw_conn *conn, struct core_ep *ep, uint64_t *budget)
{
	return conn->stream.tx.served_count ? put_response(conn, ep, budget) : 0;
}
