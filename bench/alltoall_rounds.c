// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rounds of alltoall. A round ends for a process when all messages of its peers have arrived
 * and all its own requests have completed.
 *
 * Small messages are RDMA Writes into slots of the peer, which polls the last byte of each. There
 * are slots for two rounds, and no credits are needed: when a peer's message of round n - 1 has
 * arrived, the peer has taken ours of round n - 2, whose slots round n uses again.
 *
 * A large message is sent in fragments, as MPI libraries do. The receiver registers a fragment and
 * grants it by a note. The sender registers its buffer and writes. When the Write has completed
 * (COMPAT-03), it frees its registration and reports that by a note, and the receiver frees its
 * own. Each pair has one fragment under way in each direction.
 */
#include "alltoall.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "common.h"
#include "perf_pattern.h"

#define ALL_IDLE_PASSES 64u /* before it yields to others that share the processor */

enum all_request {
	ALL_GRANT, /* the notes, in their order in the box */
	ALL_REPORT,
	ALL_SMALL,
	ALL_WRITE,
};

static struct all_peer *all_peer_at(struct all *all, unsigned distance)
{
	return &all->peers[(all->rank + distance) % all->processes];
}

static unsigned all_rank_of(const struct all *all, const struct all_peer *peer)
{
	return (unsigned)(peer - all->peers);
}

/* A number that differs between all messages; their data are derived from it. */
static uint64_t all_pattern(const struct all *all, uint64_t number, unsigned from, unsigned to)
{
	return (number * all->processes + from) * all->processes + to;
}

static unsigned char all_flag(uint64_t number)
{
	return (unsigned char)(number % 255 + 1);
}

/* --- posting and completions --- */

static int all_post(struct all *all, struct all_peer *peer, DAT_LMR_TRIPLET from,
		    DAT_RMR_TRIPLET to, enum all_request request, bool is_signalled)
{
	DAT_DTO_COOKIE cookie = {.as_64 = (uint64_t)request << 8 | all_rank_of(all, peer)};
	DAT_RETURN code;

	to.segment_length = from.segment_length;
	code = dat_ep_post_rdma_write(peer->endpoint, 1, &from, cookie, &to,
				      is_signalled ? DAT_COMPLETION_DEFAULT_FLAG
						   : DAT_COMPLETION_SUPPRESS_FLAG);
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_ep_post_rdma_write", code);
	peer->busy += is_signalled;
	return 0;
}

/* Writes from our box for the peer to the same offset of its box for us. */
static int all_post_box(struct all *all, struct all_peer *peer, uint64_t offset, uint64_t len,
			enum all_request request, bool is_signalled)
{
	DAT_LMR_TRIPLET from = {.lmr_context = all->out.lmr_context,
				.virtual_address = (uintptr_t)(peer->out + offset),
				.segment_length = len};
	DAT_RMR_TRIPLET to = peer->remote;

	to.target_address += offset;
	return all_post(all, peer, from, to, request, is_signalled);
}

static int all_post_note(struct all *all, struct all_peer *peer, enum all_request request,
			 const struct all_note *note)
{
	uint64_t offset = request * ALL_NOTE_ROOM;

	memcpy(peer->out + offset, note, sizeof(*note));
	peer->is_note_busy[request] = true;
	return all_post_box(all, peer, offset, sizeof(*note), request, true);
}

static int all_register(struct all *all, unsigned char *data, uint64_t len, DAT_LMR_HANDLE *lmr_out,
			DAT_LMR_CONTEXT *local_out, DAT_RMR_CONTEXT *remote_out)
{
	DAT_REGION_DESCRIPTION region = {.for_va = data};
	DAT_RETURN code =
		dat_lmr_create(all->session.ia, DAT_MEM_TYPE_VIRTUAL, region, len, all->session.pz,
			       DAT_MEM_PRIV_ALL_FLAG, lmr_out, local_out, remote_out, NULL, NULL);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_lmr_create", code);
}

static int all_free(DAT_LMR_HANDLE *lmr)
{
	DAT_RETURN code = dat_lmr_free(*lmr);

	*lmr = DAT_HANDLE_NULL;
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_lmr_free", code);
}

/* The fragment was placed: frees our registration and reports that to the peer. */
static int all_report(struct all *all, struct all_peer *peer)
{
	struct all_note note = {.flag = all_flag(peer->reported++)};
	int rc = all_free(&peer->source);

	return rc == 0 ? all_post_note(all, peer, ALL_REPORT, &note) : rc;
}

/* Dequeues one completion: 1, 0 when there is none, or a negative errno. */
static int all_complete(struct all *all)
{
	DAT_DTO_COMPLETION_EVENT_DATA *data;
	struct all_peer *peer;
	DAT_EVENT event;
	DAT_RETURN code = dat_evd_dequeue(all->session.request_evd, &event);
	int rc = 0;

	if (DAT_GET_TYPE(code) == DAT_QUEUE_EMPTY)
		return 0;
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_evd_dequeue", code);
	data = &event.event_data.dto_completion_event_data;
	if (event.event_number != DAT_DTO_COMPLETION_EVENT || data->status != DAT_DTO_SUCCESS) {
		tool_complain("transfer failed: %s", tool_dto_status_text(data->status));
		return -ECONNRESET;
	}
	peer = &all->peers[data->user_cookie.as_64 & 0xff];
	peer->busy--;
	switch ((enum all_request)(data->user_cookie.as_64 >> 8)) {
	case ALL_GRANT:
	case ALL_REPORT:
		peer->is_note_busy[data->user_cookie.as_64 >> 8] = false;
		break;
	case ALL_WRITE:
		rc = all_report(all, peer);
		break;
	case ALL_SMALL:
		break;
	}
	return rc == 0 ? 1 : rc;
}

/* --- small messages --- */

static uint64_t all_slot(const struct all *all, uint64_t number, unsigned index)
{
	return ALL_NOTES + (number % 2 * ALL_BURST + index) * all->slot_len;
}

static int all_send_small(struct all *all, struct all_peer *peer, uint64_t number)
{
	int rc = 0;

	for (unsigned i = 0; i < ALL_BURST && rc == 0; i++) {
		uint64_t slot = all_slot(all, number, i);
		unsigned char *data = peer->out + slot;

		if (all->is_checked)
			perf_pattern_fill(data, all->size - 1,
					  all_pattern(all, number * ALL_BURST + i, all->rank,
						      all_rank_of(all, peer)));
		data[all->size - 1] = all_flag(number);
		rc = all_post_box(all, peer, slot, all->size, ALL_SMALL, i + 1 == ALL_BURST);
	}
	return rc;
}

/* Returns whether a message has arrived. */
static bool all_take_small(struct all *all, struct all_peer *peer, uint64_t number)
{
	unsigned before = peer->received;

	while (peer->received < ALL_BURST) {
		const unsigned char *data = peer->in + all_slot(all, number, peer->received);

		if (!perf_last_is(data + all->size - 1, all_flag(number)))
			break;
		if (all->is_checked &&
		    !perf_pattern_is(data, all->size - 1,
				     all_pattern(all, number * ALL_BURST + peer->received,
						 all_rank_of(all, peer), all->rank)))
			all->wrong++;
		peer->received++;
	}
	return peer->received > before;
}

/* --- large messages --- */

static uint32_t all_fragments(const struct all *all)
{
	return (uint32_t)((all->size + ALL_FRAGMENT - 1) / ALL_FRAGMENT);
}

/* The offset of fragment number `count` in its message, and its length. */
static uint64_t all_fragment(const struct all *all, uint32_t count, uint64_t *len_out)
{
	uint64_t offset = (uint64_t)(count % all_fragments(all)) * ALL_FRAGMENT;
	uint64_t left = all->size - offset;

	*len_out = left < ALL_FRAGMENT ? left : ALL_FRAGMENT;
	return offset;
}

static int all_grant(struct all *all, struct all_peer *peer)
{
	struct all_note note = {.flag = all_flag(peer->granted)};
	DAT_LMR_CONTEXT unused;
	uint64_t len;
	unsigned char *data = peer->large_in + all_fragment(all, peer->granted, &len);
	int rc = all_register(all, data, len, &peer->target, &unused, &note.rmr_context);

	if (rc != 0)
		return rc;
	note.address = (uintptr_t)data;
	peer->granted++;
	return all_post_note(all, peer, ALL_GRANT, &note);
}

PERF_NO_TSAN static struct all_note all_granted(const struct all_peer *peer)
{
	return *(const struct all_note *)(peer->in + ALL_GRANT * ALL_NOTE_ROOM);
}

static int all_write(struct all *all, struct all_peer *peer)
{
	DAT_RMR_CONTEXT unused;
	DAT_LMR_TRIPLET from = {.lmr_context = 0};
	DAT_RMR_TRIPLET to;
	struct all_note note = all_granted(peer);
	unsigned char *data =
		peer->large_out + all_fragment(all, peer->written, &from.segment_length);
	int rc;

	to = (DAT_RMR_TRIPLET){.rmr_context = note.rmr_context, .target_address = note.address};
	rc = all_register(all, data, from.segment_length, &peer->source, &from.lmr_context,
			  &unused);
	if (rc != 0)
		return rc;
	from.virtual_address = (uintptr_t)data;
	peer->written++;
	return all_post(all, peer, from, to, ALL_WRITE, true);
}

static bool all_has_note(const struct all_peer *peer, enum all_request note, uint32_t number)
{
	const unsigned char *data = peer->in + note * ALL_NOTE_ROOM;

	return perf_last_is(data + sizeof(struct all_note) - 1, all_flag(number));
}

/* One step in each direction; the round ends after `last` fragments. 1: something was done. */
static int all_step_large(struct all *all, struct all_peer *peer, uint32_t last)
{
	bool has_moved = false;
	int rc = 0;

	if (peer->arrived < peer->granted && all_has_note(peer, ALL_REPORT, peer->arrived)) {
		rc = all_free(&peer->target);
		peer->arrived++;
		has_moved = true;
	}
	if (rc == 0 && peer->arrived == peer->granted && peer->granted < last &&
	    !peer->is_note_busy[ALL_GRANT]) {
		rc = all_grant(all, peer);
		has_moved = true;
	}
	if (rc == 0 && peer->written == peer->reported && peer->written < last &&
	    !peer->is_note_busy[ALL_REPORT] && all_has_note(peer, ALL_GRANT, peer->written)) {
		rc = all_write(all, peer);
		has_moved = true;
	}
	return rc == 0 ? has_moved : rc;
}

/* --- a round --- */

static bool all_is_large(const struct all *all)
{
	return all->size > ALL_EAGER_MAX;
}

static int all_begin(struct all *all, struct all_peer *peer, uint64_t number)
{
	peer->received = 0;
	if (!all_is_large(all))
		return all_send_small(all, peer, number);
	if (all->is_checked)
		perf_pattern_fill(peer->large_out, all->size,
				  all_pattern(all, number, all->rank, all_rank_of(all, peer)));
	return 0;
}

static bool all_is_over(const struct all *all, const struct all_peer *peer, uint32_t last)
{
	if (peer->busy > 0)
		return false;
	if (!all_is_large(all))
		return peer->received == ALL_BURST;
	return peer->arrived == last && peer->reported == last;
}

/* Serves each peer once: 1 when something was done, 0 when not, or a negative errno. */
static int all_pass(struct all *all, uint64_t number, uint32_t last, bool *is_over_out)
{
	int has_moved = all_complete(all);

	*is_over_out = true;
	for (unsigned i = 1; i < all->processes && has_moved >= 0; i++) {
		struct all_peer *peer = all_peer_at(all, i);
		int rc = all_is_large(all) ? all_step_large(all, peer, last)
					   : all_take_small(all, peer, number);

		has_moved = rc < 0 ? rc : has_moved | rc;
		*is_over_out &= all_is_over(all, peer, last);
	}
	return has_moved;
}

int all_round(struct all *all, uint64_t number)
{
	uint32_t last = (uint32_t)(number + 1) * all_fragments(all);
	unsigned idle = 0;
	bool is_over = false;
	int rc = 0;

	for (unsigned i = 1; i < all->processes && rc == 0; i++)
		rc = all_begin(all, all_peer_at(all, i), number);
	while (rc == 0 && !is_over) {
		int moved = all_pass(all, number, last, &is_over);

		rc = moved < 0 ? moved : 0;
		idle = moved ? 0 : idle + 1;
		if (idle % ALL_IDLE_PASSES == ALL_IDLE_PASSES - 1)
			sched_yield();
	}
	for (unsigned i = 1; i < all->processes && rc == 0; i++) {
		const struct all_peer *peer = all_peer_at(all, i);

		if (all->is_checked && all_is_large(all) &&
		    !perf_pattern_is(peer->large_in, all->size,
				     all_pattern(all, number, all_rank_of(all, peer), all->rank)))
			all->wrong++;
	}
	return rc;
}
