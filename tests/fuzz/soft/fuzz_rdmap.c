// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes from the peer of a connection over TCP (IWCM-38). The first byte chooses the role, the
 * CRC, the state in which the bytes arrive, and what is posted. Then come pieces: a byte that says
 * how to send it, a length of two bytes, and the bytes. A piece is sent as it is or as a ULPDU, in
 * an FPDU with a good CRC, with the STag of the region and an offset in it or a little outside, or
 * with the MSN that is expected. It may also announce a long message, be large enough to be read
 * straight into its target, or go on where the one before it ended. Whatever comes: no byte outside
 * of the region changes, all that was posted completes, and the connection ends when the peer ends
 * it.
 */
#include <assert.h>

#include "../../unit/soft_iwarp/flow_stage.h"

#include "soft/iwarp/transfer/fast.h"
#include "soft/iwarp/transfer/pass.h"

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
	GOOD_MSN = 4, /* and a thread of the consumer polls */
	READ_THERE = 8,
	POST = 16, /* a Receive is posted before it */
	LONG = 32, /* its length is the number of segments that an announcement names */
	LARGE = 64,
	GO_ON = 128, /* with the length and the header of the FPDU before it, further on */
};

#define LARGE_MORE 4096u
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
		uint32_t queue = be_get32(ulpdu + 6) % 3;

		be_put32(ulpdu + 6, queue);
		be_put32(ulpdu + 10, flow.msn[queue]);
		flow.msn[queue] += ulpdu[0] >> 6 & 1;
	}
	if ((how & READ_THERE) && !is_tagged && size >= IW_UNTAGGED_HEAD + IW_READ_REQUEST_SIZE) {
		be_put32(ulpdu + 18 + 12, be_get32(ulpdu + 18 + 12) % near);
		be_put32(ulpdu + 18 + 16, flow.rkey);
		be_put64(ulpdu + 18 + 20, base + be_get64(ulpdu + 18 + 20) % near);
	}
}

static void send_announcement(uint64_t count)
{
	const struct iw_ddp ddp = {.is_tagged = true,
				   .is_last = true,
				   .opcode = IW_OP_WRITE,
				   .stag = 4,
				   .offset = count};
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

static void send_fpdu(const uint8_t *bytes, size_t size, unsigned how)
{
	static struct fpdu fpdu;
	static size_t ulpdu;

	if (how & GO_ON) {
		ulpdu = go_on(fpdu.bytes + 2, ulpdu);
	} else {
		memcpy(fpdu.bytes + 2, bytes, size);
		ulpdu = size + (how & LARGE ? LARGE_MORE : 0);
		memset(fpdu.bytes + 2 + size, 0, ulpdu - size);
		if (size)
			correct(fpdu.bytes + 2, ulpdu, how);
	}
	close_fpdu(&fpdu, ulpdu);
	(void)send(flow.fd, fpdu.bytes, fpdu.size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_piece(const uint8_t *bytes, size_t size, unsigned how)
{
	if (size > 60000 - LARGE_MORE)
		size = 60000 - LARGE_MORE;
	if (how & LONG)
		send_announcement(size);
	else if (how & FPDU)
		send_fpdu(bytes, size, how);
	else
		(void)send(flow.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* It is flushed if the connection has ended already. */
static void post_late(void)
{
	DAT_LMR_TRIPLET segment = segment_at(posted * 1000, 900);
	DAT_DTO_COOKIE cookie = {.as_64 = 0};

	if (core_ep_post_recv(flow.ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG) ==
	    DAT_SUCCESS)
		posted++;
}

/* A thread of the consumer takes what has come, as in engine/poll.c, before the service thread. */
static void send_and_poll(const uint8_t *bytes, size_t size, unsigned how)
{
	struct core_ep *ep = core_handle_lock_inline(flow.ep, DAT_HANDLE_TYPE_EP);
	struct iw_conn *conn = iw_conn_of(ep);
	int handled = 0;

	send_piece(bytes, size, how);
	if (conn && iw_conn_state(conn) == IW_ESTABLISHED && !iw_poll_fast(conn, ep, &handled))
		(void)iw_pass_behind(conn, ep, handled);
	core_ep_leave(ep);
}

static void send_all(const uint8_t *data, size_t size)
{
	while (size >= 3) {
		size_t part = be_get16(data + 1);
		unsigned how = data[0];

		data += 3;
		size -= 3;
		if (part > size)
			part = size;
		if ((how & POST) && posted < MORE_POSTED)
			post_late();
		if (how & GOOD_MSN)
			send_and_poll(data, part, how);
		else
			send_piece(data, part, how);
		data += part;
		size -= part;
	}
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
	static bool is_provided;

	if (!size)
		return 0;
	if (!is_provided)
		(void)provide(NULL);
	is_provided = true;
	(void)open_flow(NULL);
	posted = 0;
	connect_as(data[0]);
	post_some(data[0]);
	send_all(data + 1, size - 1);
	(void)shutdown(flow.fd, SHUT_WR);
	expect_the_end();
	end_flow();
	(void)close_stage(NULL);
	return 0;
}
