// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes on an established connection over TCP. The first byte chooses the role, the CRC and
 * what is posted. Then come pieces: a byte that says how to send it, a length of two bytes, and the
 * bytes. A piece is sent as it is or as a ULPDU, in an FPDU with a good CRC, with the STag of the
 * region and an offset in it or a little outside, or with the MSN that is expected. Whatever comes:
 * no byte outside of the region changes, all that was posted completes, and the connection ends
 * when the peer ends it.
 */
#include <assert.h>

#include "../../unit/soft_iwarp/flow_stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum choice { CRC = 1, OWN_PEER = 2, CALLING = 4, RECEIVES = 8, READS = 16, SENDS = 32 };
enum piece { FPDU = 1, GOOD_KEY = 2, GOOD_MSN = 4, READ_THERE = 8 };

#define POSTED 3u

static void connect_as(unsigned choice)
{
	uint8_t flags = choice & CRC ? FLAG_C : 0;

	if (choice & CALLING) {
		be_calling_with(flags, 4, 4);
	} else if (choice & OWN_PEER) {
		be_called_by_own(0);
		put(flow.fd, rtr_write, sizeof(rtr_write));
		expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	} else {
		be_called(flags);
	}
}

/* Returns the number of completions to expect. */
static unsigned post_some(unsigned choice)
{
	unsigned posted = 0;

	for (size_t i = 0; i < POSTED; i++) {
		if (choice & RECEIVES)
			post_recv_at(i * 30000, i * 12000 + 5);
		if (choice & READS)
			post_read_at(100000 + i * 30000, i * 12000 + 5, 7, 0, 0);
		if (choice & SENDS)
			post_write_at(0, i * 12000, 7, 0, 0);
		posted += !!(choice & RECEIVES) + !!(choice & READS) + !!(choice & SENDS);
	}
	return posted;
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

static void send_piece(const uint8_t *bytes, size_t size, unsigned how)
{
	static struct fpdu fpdu;

	if (size > 60000)
		size = 60000;
	memcpy(fpdu.bytes + 2, bytes, size);
	if (!(how & FPDU)) {
		(void)send(flow.fd, fpdu.bytes + 2, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		return;
	}
	if (size)
		correct(fpdu.bytes + 2, size, how);
	close_fpdu(&fpdu, size);
	(void)send(flow.fd, fpdu.bytes, fpdu.size, MSG_NOSIGNAL | MSG_DONTWAIT);
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
		send_piece(data, part, how);
		data += part;
		size -= part;
	}
}

/* The connection ends, and everything with it. */
static void expect_the_end(unsigned posted)
{
	unsigned ends = 0;

	while (!ends || posted) {
		DAT_EVENT event = next_of(stage.evd);

		if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
			assert(posted);
			posted--;
		} else {
			assert(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			       event.event_number == DAT_CONNECTION_EVENT_BROKEN);
			assert(!ends++);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_provided;
	unsigned posted;

	if (!size)
		return 0;
	if (!is_provided)
		(void)provide(NULL);
	is_provided = true;
	(void)open_flow(NULL);
	connect_as(data[0]);
	posted = post_some(data[0]);
	send_all(data + 1, size - 1);
	(void)shutdown(flow.fd, SHUT_WR);
	expect_the_end(posted);
	end_flow();
	(void)close_stage(NULL);
	return 0;
}
