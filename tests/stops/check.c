// SPDX-License-Identifier: BSD-2-Clause
/* What the survivor has to find; see the header. */
#include "stops.h"

#include <string.h>
#include <time.h>

uint8_t stops_pattern(bool is_victim)
{
	return is_victim ? 'v' : 's';
}

void stops_fill(const struct stops_peer *peer)
{
	memset(peer->memory, STOPS_OLD, STOPS_MEMORY);
	memset(peer->memory + STOPS_SOURCE, stops_pattern(peer->is_victim), STOPS_LARGE);
}

static bool holds(const uint8_t *bytes, uint8_t value, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

void stops_check_completion(const struct stops_peer *peer, enum stops_cookie cookie, DAT_VLEN len)
{
	static const struct {
		uint64_t len;
		int place; /* of the bytes that came from the peer, or -1 */
	} expected[STOPS_COOKIES] = {
		[STOPS_SEND_SMALL] = {STOPS_SMALL, -1},
		[STOPS_SEND_LARGE] = {STOPS_LARGE, -1},
		[STOPS_WRITE_SMALL] = {STOPS_SMALL, -1},
		[STOPS_WRITE_LARGE] = {STOPS_LARGE, -1},
		[STOPS_READ_LARGE] = {STOPS_LARGE, STOPS_READ},
		[STOPS_GOT_SMALL] = {STOPS_SMALL, STOPS_RECV_SMALL},
		[STOPS_GOT_LARGE] = {STOPS_LARGE, STOPS_RECV_LARGE},
	};

	if (len != expected[cookie].len)
		stops_wrong(peer, "length of a completion", (long)len);
	if (expected[cookie].place >= 0 &&
	    !holds(peer->memory + expected[cookie].place, stops_pattern(!peer->is_victim), len))
		stops_wrong(peer, "bytes of a completion", cookie);
}

/* A place that the peer may have written, in part, with nothing behind it. */
static void check_place(const struct stops_peer *peer, enum stops_place place, uint32_t len)
{
	const uint8_t *bytes = peer->memory + place;

	for (uint32_t i = 0; i < len; i++)
		if (bytes[i] != STOPS_OLD && bytes[i] != stops_pattern(!peer->is_victim)) {
			stops_wrong(peer, "byte that nobody sent", place + (long)i);
			return;
		}
	if (!holds(bytes + len, STOPS_OLD, STOPS_LARGE - len))
		stops_wrong(peer, "write beyond the range", place);
}

void stops_check_memory(const struct stops_peer *peer)
{
	if (!holds(peer->memory + STOPS_SOURCE, stops_pattern(peer->is_victim), STOPS_LARGE))
		stops_wrong(peer, "source of a transfer changed", 0);
	check_place(peer, STOPS_RECV_SMALL, STOPS_SMALL);
	check_place(peer, STOPS_RECV_LARGE, STOPS_LARGE);
	check_place(peer, STOPS_TARGET_SMALL, STOPS_SMALL);
	check_place(peer, STOPS_TARGET_LARGE, STOPS_LARGE);
	check_place(peer, STOPS_READ, STOPS_LARGE);
	/* messages are ordered behind the RDMA Writes posted before them, and among themselves */
	if (peer->is_successful[STOPS_GOT_LARGE] && !peer->is_successful[STOPS_GOT_SMALL])
		stops_wrong(peer, "second message without the first", 0);
}

/* EP-STATE-44: a death is no disconnect, unless the victim had asked for one. */
void stops_check_end(const struct stops_peer *peer)
{
	for (unsigned i = 0; i < STOPS_COOKIES; i++) {
		if (peer->is_posted[i] && !peer->is_done[i])
			stops_wrong(peer, "request or Receive that never completes", i);
		if (stops->state == STOPS_RUNS && !peer->is_successful[i])
			stops_wrong(peer, "transfer that failed although both sides ran", i);
	}
	if (!peer->has_ended)
		return;
	switch (peer->end) {
	case DAT_CONNECTION_EVENT_DISCONNECTED:
	case DAT_CONNECTION_EVENT_BROKEN:
		if (!peer->is_established)
			stops_wrong(peer, "end before it was established", peer->end);
		break;
	case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
		if (peer->is_active)
			stops_wrong(peer, "event of the passive side", peer->end);
		break;
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
	case DAT_CONNECTION_EVENT_TIMED_OUT:
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		if (!peer->is_active || peer->is_established)
			stops_wrong(peer, "event of an attempt", peer->end);
		break;
	default:
		stops_wrong(peer, "connection event", peer->end);
	}
}

void stops_check_freed(const struct stops_peer *peer)
{
	const uint64_t limit = stops_now_ms() + 2 * STOPS_HANG_MS;
	const struct timespec pause = {.tv_nsec = 200000};

	memset(peer->memory, STOPS_OLD, STOPS_MEMORY);
	stops->is_over = true;
	while (!stops->is_finished && stops_now_ms() < limit)
		nanosleep(&pause, NULL);
	if (!holds(peer->memory, STOPS_OLD, STOPS_MEMORY))
		stops_wrong(peer, "write after dat_lmr_free", 0);
}
