// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes from the peer of a connection over TCP (IWCM-38). The first byte chooses the role, the
 * CRC, the state in which the bytes arrive, and what is posted. Then come pieces: a byte that says
 * how to send it, a length of two bytes, and the bytes. A piece is sent as it is or as a ULPDU, in
 * an FPDU with a good CRC, with the STag of the region and an offset in it or a little outside, or
 * with the MSN that is expected. A peer of ours takes what RFC 7306 has. A Read Response may be the one that the library waits for. A piece
 * may also tell counts, be large, arrive in two parts, so that the second is read straight into its
 * target, or go on where the one before it ended. Whatever comes: no byte outside of the region
 * changes, all that was posted completes, and the connection ends when the peer ends it.
 */
#include <assert.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "../../unit/soft_iwarp/flow_stage.h"

#include "core/ep/dto.h"
#include "soft/iwarp/connect/ep.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/tx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum choice {
	CRC = 1,
	OWN_PEER = 2,
	CALLING = 4, /* the library is the initiator; the peer is a foreign one */
	RECEIVES = 8,
	READS = 16,
	SENDS = 32,
	ACCEPTED = 64,	/* the bytes come in place of the ready-to-receive message */
	DRAINING = 128, /* the library has begun a graceful disconnect */
};
enum piece {
	FPDU = 1,
	GOOD_KEY = 2,
	GOOD_MSN = 4, /* a thread of the consumer polls, too */
	READ_THERE = 8,
	POST = 16,  /* a Receive is posted before it */
	PARTS = 32, /* an FPDU in two parts; else the length is that of no bytes, but counts */
	LARGE = 64,
	GO_ON = 128, /* with the length and the header of the FPDU before it, further on */
};

#define LARGE_MORE 40000u
#define POSTED 3u
#define MORE_POSTED 16u

static unsigned posted; /* completions to expect */

/* A foreign initiator with the peer-to-peer model, which has not sent its RTR. */
static void be_called_in_accepted(uint8_t flags)
{
	struct frame frame =
		make_enhanced(REQUEST, flags, WORDS(WORD_A | WORD_B | WORD_C, 4, 4), NULL, 0);
	int fd = dial(stage.qual);

	put_frame(fd, &frame);
	take_request();
	accept_with(NULL, 0);
	frame = get_frame(fd, REPLY);
	begin_flow(fd, stage.b, flags & FLAG_C);
}

static void connect_as(unsigned choice)
{
	uint8_t flags = choice & CRC ? FLAG_C : 0;

	if (choice & CALLING) {
		be_calling_with(flags, 4, 4);
	} else if (choice & ACCEPTED) {
		be_called_in_accepted(flags);
	} else if (choice & OWN_PEER) {
		be_called_by_own(flags);
		peer_write(1, 0, NULL, 0);
		expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	} else {
		be_called(flags);
	}
}

/* An atomic operation, which a peer of ours takes. */
static void post_add(void)
{
	DAT_LMR_TRIPLET segment = segment_at(200000, 8);
	DAT_RMR_TRIPLET remote = {.rmr_context = 7, .segment_length = 8};

	ok(core_ep_post_fetch_add(flow.ep, 1, &segment, (DAT_DTO_COOKIE){.as_64 = 0}, &remote, 0));
	posted++;
}

static void post_some(unsigned choice)
{
	bool is_accepted = state_of(flow.ep) != DAT_EP_STATE_CONNECTED;

	for (size_t i = 0; i < POSTED; i++) {
		if (choice & RECEIVES)
			post_recv_at(i * 30000, i * 12000 + 5);
		posted += !!(choice & RECEIVES);
		if (is_accepted)
			continue; /* no requests yet */
		if (choice & READS)
			post_read_at(100000 + i * 30000, i * 12000 + 5, 7, 0, 0);
		if (choice & SENDS)
			post_write_at(0, i * 12000, 7, 0, 0);
		posted += !!(choice & READS) + !!(choice & SENDS);
	}
	if (!is_accepted && (choice & READS) && (choice & OWN_PEER) && !(choice & CALLING))
		post_add();
	if ((choice & DRAINING) && !is_accepted)
		ok(core_ep_disconnect(flow.ep, DAT_CLOSE_GRACEFUL_FLAG));
}

/* The part of the ULPDU that a peer could not guess. */
static void correct(uint8_t *ulpdu, size_t size, unsigned how)
{
	static const size_t near = REGION + 64;
	bool is_tagged = ulpdu[0] & 0x80;
	uint64_t base = address_of(flow.region) - 32;

	if ((how & GOOD_KEY) && is_tagged && size >= IW_TAGGED_HEAD) {
		be_put32(ulpdu + 2, flow.rkey);
		be_put64(ulpdu + 6, base + be_get64(ulpdu + 6) % near);
	}
	if ((how & GOOD_MSN) && !is_tagged && size >= IW_UNTAGGED_HEAD) {
		uint32_t queue = be_get32(ulpdu + 6) % IW_QUEUES;

		be_put32(ulpdu + 6, queue);
		be_put32(ulpdu + 10, flow.msn[queue]);
		flow.msn[queue] += ulpdu[0] >> 6 & 1;
	}
	if ((how & READ_THERE) && size == IW_UNTAGGED_HEAD + IW_ATOMIC_REQUEST_SIZE) {
		be_put32(ulpdu + 18 + 8, flow.rkey);
		be_put64(ulpdu + 18 + 12, base + be_get64(ulpdu + 18 + 12) % near);
	} else if ((how & READ_THERE) && !is_tagged &&
		   size >= IW_UNTAGGED_HEAD + IW_READ_REQUEST_SIZE) {
		be_put32(ulpdu + 18 + 12, be_get32(ulpdu + 18 + 12) % near);
		be_put32(ulpdu + 18 + 16, flow.rkey);
		be_put64(ulpdu + 18 + 20, base + be_get64(ulpdu + 18 + 20) % near);
	}
}

/* --- Read Responses --- */

static struct {
	uint8_t bytes[65536]; /* of the library, not parsed yet */
	size_t size;
	uint32_t stag, left, offset; /* of the oldest Read Request that is not answered */
} asked;

/* Takes what the library has sent up to the next Read Request. False: there is none. */
static bool find_request(void)
{
	ssize_t count = recv(flow.fd, asked.bytes + asked.size, sizeof(asked.bytes) - asked.size,
			     MSG_DONTWAIT);

	if (count > 0)
		asked.size += (size_t)count;
	while (!asked.left && asked.size >= 2) {
		const uint8_t *ulpdu = asked.bytes + 2;
		size_t size = iw_fpdu_size(be_get16(asked.bytes));

		if (size > asked.size)
			break;
		if (size >= IW_UNTAGGED_HEAD + IW_READ_REQUEST_SIZE && !(ulpdu[0] & 0x80) &&
		    (ulpdu[1] & 15) == IW_OP_READ_REQUEST) {
			asked.stag = be_get32(ulpdu + 18);
			asked.left = be_get32(ulpdu + 18 + 12);
			asked.offset = 0;
		}
		asked.size -= size;
		memmove(asked.bytes, asked.bytes + size, asked.size);
	}
	return asked.left;
}

/* Makes the ULPDU the next segment of the Response that the library waits for; its size. */
static size_t respond(uint8_t *ulpdu, size_t size)
{
	uint32_t part = (uint32_t)size - IW_TAGGED_HEAD;

	if (!asked.left && !find_request())
		return size;
	if (part > asked.left)
		part = asked.left;
	be_put32(ulpdu + 2, asked.stag);
	be_put64(ulpdu + 6, asked.offset);
	asked.offset += part;
	asked.left -= part;
	ulpdu[0] = (uint8_t)((ulpdu[0] & ~0x40) | (asked.left ? 0 : 0x40));
	return IW_TAGGED_HEAD + part;
}

/* --- pieces --- */

/* What a peer of ours tells it has carried out, or that it drains. */
static void send_counts(size_t word)
{
	const struct iw_ddp ddp = {.is_tagged = true,
				   .is_last = true,
				   .opcode = IW_OP_WRITE,
				   .stag = word & 0x8000 ? IW_STAG_DRAINS : IW_STAG_COUNTS,
				   .offset = (uint64_t)(word >> 8 & 0x7f) << 32 | (word & 0xff)};
	struct fpdu fpdu;

	make_fpdu(&fpdu, &ddp, NULL, 0);
	(void)send(flow.fd, fpdu.bytes, fpdu.size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Makes the header of the ULPDU before this one that of the next segment; the size of the ULPDU. */
static size_t go_on(uint8_t *ulpdu, size_t before)
{
	uint32_t head = iw_ddp_head_size(ulpdu[0]);

	if (before <= head)
		return before;
	if (head == IW_TAGGED_HEAD)
		be_put64(ulpdu + 6, be_get64(ulpdu + 6) + before - head);
	else
		be_put32(ulpdu + 14, be_get32(ulpdu + 14) + (uint32_t)before - head);
	return before;
}

static const struct fpdu *next_fpdu(const uint8_t *bytes, size_t size, unsigned how)
{
	static struct fpdu fpdu;
	static size_t ulpdu;
	uint8_t *at = fpdu.bytes + 2;

	if (how & GO_ON) {
		ulpdu = go_on(at, ulpdu);
	} else {
		memcpy(at, bytes, size);
		ulpdu = size + (how & LARGE ? LARGE_MORE : 0);
		memset(at + size, 0, ulpdu - size);
		if (size)
			correct(at, ulpdu, how);
	}
	if ((how & GOOD_KEY) && ulpdu > IW_TAGGED_HEAD && (at[0] & 0x80) &&
	    (at[1] & 15) == IW_OP_READ_RESPONSE)
		ulpdu = respond(at, ulpdu);
	close_fpdu(&fpdu, ulpdu);
	return &fpdu;
}

/* A thread of the consumer takes what has come, as in engine/service.c. EP locked. */
static void poll_locked(struct core_ep *ep)
{
	struct iw_conn *conn = iw_conn_of(ep);
	int handled = 0;

	if (conn && iw_conn_state(conn) == IW_ESTABLISHED && !iw_poll_fast(conn, ep, &handled))
		(void)iw_conn_run(conn, ep, handled);
}

/* Sends bytes; with `is_polled` a thread of the consumer takes them before the service thread. */
static void send_bytes(const uint8_t *bytes, size_t size, bool is_polled)
{
	struct core_ep *ep =
		is_polled ? core_handle_lock_inline(flow.ep, DAT_HANDLE_TYPE_EP) : NULL;

	(void)send(flow.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (!ep)
		return;
	poll_locked(ep);
	core_ep_leave(ep);
}

static void send_piece(const uint8_t *bytes, size_t size, unsigned how)
{
	bool is_polled = how & GOOD_MSN;
	const struct fpdu *fpdu;
	size_t first;

	if (size > 60000 - LARGE_MORE)
		size = 60000 - LARGE_MORE;
	if (!(how & FPDU)) {
		send_bytes(bytes, size, is_polled);
		return;
	}
	fpdu = next_fpdu(bytes, size, how);
	first = how & PARTS ? fpdu->size / 2 : 0;
	if (first)
		send_bytes(fpdu->bytes, first, true);
	send_bytes(fpdu->bytes + first, fpdu->size - first, is_polled);
}

/* It is flushed if the connection has ended already. */
static void post_late(void)
{
	DAT_LMR_TRIPLET segment = segment_at(posted * 1000, posted % 8 == 7 ? 900 : 60000);
	DAT_DTO_COOKIE cookie = {.as_64 = 0};

	if (core_ep_post_recv(flow.ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG) ==
	    DAT_SUCCESS)
		posted++;
}

static void send_all(const uint8_t *data, size_t size)
{
	while (size >= 3) {
		size_t part = be_get16(data + 1);
		unsigned how = data[0];

		data += 3;
		size -= 3;
		if ((how & POST) && posted < MORE_POSTED)
			post_late();
		if ((how & (PARTS | FPDU)) == PARTS) {
			send_counts(part);
			continue;
		}
		if (part > size)
			part = size;
		send_piece(data, part, how);
		data += part;
		size -= part;
	}
}

/*
 * Ends the peer's direction. If messages wait for a Receive and fill the spill space and the
 * socket, the end does not get through, and the library waits (IWCM-35): then it disconnects.
 */
static void end_stream(void)
{
	bool is_open = true, is_blocked = false;
	int left = 0;

	(void)shutdown(flow.fd, SHUT_WR);
	while (is_open && !is_blocked && !ioctl(flow.fd, SIOCOUTQ, &left) && left) {
		struct core_ep *ep = core_handle_lock_inline(flow.ep, DAT_HANDLE_TYPE_EP);
		const struct iw_conn *conn;

		poll_locked(ep);
		conn = iw_conn_of(ep);
		is_open = conn && iw_conn_state(conn) == IW_ESTABLISHED;
		is_blocked = is_open && conn->stream.rx.is_blocked;
		core_ep_leave(ep);
	}
	if (is_blocked)
		(void)core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG);
}

static bool is_end(DAT_EVENT_NUMBER number)
{
	return number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	       number == DAT_CONNECTION_EVENT_BROKEN ||
	       number == DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
}

/* The connection ends, and everything with it. */
static void expect_the_end(void)
{
	unsigned ends = 0;

	while (!ends || posted) {
		DAT_EVENT event = next_of(stage.evd);

		if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
			assert(posted);
			posted--;
		} else if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
			assert(is_end(event.event_number));
			assert(!ends++);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	/* messages that wait for a Receive wait so long behind the end of the peer's stream */
	(void)open_flow_with("hostile", "127.0.0.1 transport=tcp peer_timeout_ms=20");
	posted = 0;
	asked.size = asked.left = 0;
	if (data[0] & OWN_PEER)
		take_all();
	connect_as(data[0]);
	post_some(data[0]);
	send_all(data + 1, size - 1);
	end_stream();
	expect_the_end();
	end_flow();
	take_no_more();
	(void)close_stage(NULL);
	return 0;
}
