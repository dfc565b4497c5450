// SPDX-License-Identifier: BSD-2-Clause
/* Actions of a peer and of our consumer, read from an input (peer_input.h). */
#include "peer_input.h"

#include <stdlib.h>
#include <string.h>

#include "peer_change.h"
#include "soft/copy.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/transfer/map.h"

uint64_t peer_address(struct peer_input *in, const uint8_t *memory)
{
	uint8_t kind = peer_byte(in);

	if (kind < 240)
		return (uintptr_t)memory + (uint64_t)(int64_t)(int16_t)peer_word(in);
	return (uint64_t)peer_word(in) << 32 | peer_word(in);
}

uint64_t peer_length(struct peer_input *in)
{
	uint8_t kind = peer_byte(in);

	return kind < 240 ? (kind & 3 ? kind : kind * 64u)
			  : (uint64_t)peer_word(in) << 32 | peer_word(in);
}

/* One of the peer's words. */
static void set_word(struct lab *lab, struct peer_input *in)
{
	_Atomic uint32_t *words[] = {
		&lab->peer->request_consumed,
		&lab->peer->response_consumed,
		&lab->peer->done,
		&lab->peer->failed,
		&lab->peer->waits,
		&lab->peer->armed,
		&lab->peer->revoked,
		&lab->peer->announce,
		&lab->peer->is_polled,
		&lab->peer->is_unfenced,
		&lab->peer->sleeps,
	};
	_Atomic uint32_t *target = words[peer_byte(in) % (sizeof(words) / sizeof(words[0]))];
	uint8_t kind = peer_byte(in);

	if (kind < 128)
		atomic_fetch_add(target, kind % 64 * (kind < 64 ? 1u : SHM_ENTRY_ALIGN));
	else
		atomic_store(target, peer_word(in));
}

static void take_entries(struct shm_consumer *ring)
{
	const uint8_t *payload;
	struct shm_entry entry;

	while (lab_peer_takes(ring, &entry, &payload))
		continue;
}

/* Lets the peer's rings be full so often that they grow when they are full next. */
static void be_full_often(struct lab *lab, unsigned which)
{
	struct shm_producer *rings[] = {&lab->peer_out, &lab->peer_answers};

	for (unsigned i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		if (which >> i & 1 && rings[i]->full < SHM_GROW_AFTER)
			rings[i]->full = SHM_GROW_AFTER - 1;
}

/* The same for our rings: they are full, and no pass finds room. */
static void let_ours_be_full_often(struct lab *lab)
{
	struct shm_entry ask = {.type = SHM_ENTRY_READ,
				.key = lab->rkey,
				.address = (uintptr_t)lab->memory,
				.length = 2 * SHM_RESPONSE_RING};

	lab_peer_entry(&lab->peer_out, &ask, NULL);
	for (unsigned i = 0; i < 4; i++)
		lab_post(lab, CORE_OP_SEND, 0, SHM_REQUEST_PAYLOAD, 0, 0);
	for (unsigned i = 0; i < SHM_GROW_AFTER - 4; i++)
		lab_library_pass(lab);
}

/* The peer takes our entries and gives them back, or rings are about to grow. */
static void move_rings(struct lab *lab, struct peer_input *in)
{
	uint8_t what = peer_byte(in);

	if (what & 1)
		take_entries(&lab->peer_in);
	if (what & 2)
		take_entries(&lab->peer_answers_in);
	be_full_often(lab, what >> 4);
}

/* Bytes of the peer's rings, or one of the rarer actions. */
static void raw_bytes(struct lab *lab, struct peer_input *in)
{
	uint8_t which = peer_byte(in);
	uint32_t at = peer_word(in), count = peer_byte(in);
	struct shm_producer *ring = which & 1 ? &lab->peer_out : &lab->peer_answers;

	if (which >= 176)
		move_rings(lab, in);
	else if (which >= 160)
		peer_change(lab, in);
	else if (which >= 144)
		(void)shm_conn_arm(lab->conn);
	else
		while (count--)
			ring->bytes[at++ & ring->mask] = peer_byte(in);
}

/* An entry that the ring accepts, with any content. */
static void good_entry(struct lab *lab, struct peer_input *in)
{
	uint8_t bytes[SHM_LARGE_PAYLOAD];
	struct shm_entry entry = {.type = peer_byte(in) % (SHM_ENTRY_ATOMIC + 2)};
	bool is_data = entry.type == SHM_ENTRY_DATA;
	uint8_t flags = peer_byte(in), key = peer_byte(in);
	struct shm_producer *ring;

	entry.flags = flags & 7;
	if (flags & 8)
		entry.done = flags >> 4;

	ring = is_data ? &lab->peer_answers : &lab->peer_out;
	entry.payload = peer_word(in) % (shm_payload_max(ring->mask) + 1u);
	if (peer_byte(in) & 3)
		entry.payload %= 200;
	/* seldom, so that most entries are plain */
	if (key % 32 == 31)
		entry.flags |= key & 32 ? SHM_FLAG_INVALIDATE : SHM_FLAG_NOTICE;
	entry.key = key < 128 ? lab->rkey : key < 192 ? lab->read_only : peer_word(in);
	entry.address = peer_address(in, lab->memory);
	entry.length = peer_byte(in) & 1 ? entry.payload : peer_length(in);
	memset(bytes, 'p', sizeof(bytes));
	lab_peer_entry(ring, &entry, bytes);
}

static void post(struct lab *lab, struct peer_input *in)
{
	uint8_t what = peer_byte(in);
	uint32_t offset = peer_word(in);
	/* one by one: compilers evaluate arguments in different orders */
	uint32_t len = peer_word(in) % LAB_MEMORY;
	uint32_t key = what & 16 ? peer_word(in) : lab->peer_rkey;

	if (what & 8)
		lab->next_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	if (what & 32)
		lab->next_flags |= DAT_COMPLETION_SUPPRESS_FLAG;
	if (what & 64)
		lab->next_flags |= DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	lab_post(lab, (enum core_op)(what % 3), offset, len, key,
		 peer_address(in, lab->peer_memory));
}

static void post_receive(struct lab *lab, struct peer_input *in)
{
	uint32_t offset = peer_word(in);

	lab->next_segments = 1 + (offset >> 27); /* more room than one pass fills */
	lab_post_receive(lab, offset, peer_word(in) % LAB_MEMORY);
}

static void one_action(struct lab *lab, struct peer_input *in, bool has_service)
{
	switch (peer_byte(in) % 8) {
	case 0:
		set_word(lab, in);
		break;
	case 1:
		raw_bytes(lab, in);
		break;
	case 2:
	case 3:
		good_entry(lab, in);
		break;
	case 4:
		post(lab, in);
		break;
	case 5:
		post_receive(lab, in);
		break;
	case 6:
		lab_pass(lab);
		break;
	default:
		if (has_service)
			lab_library_pass(lab);
		else
			lab_pass(lab);
	}
}

struct lab *peer_open_lab(uint8_t path)
{
	const struct lab_form form = {
		.copy = path & 1   ? CORE_COPY_RING
			: path & 8 ? CORE_COPY_AUTO
				   : CORE_COPY_CMA,
		.has_cma = !(path & 1),
	};
	struct lab *lab = lab_open(&form);

	if (path & 4)
		lab_go_fast(lab);
	if ((path & 12) == 12 && form.copy == CORE_COPY_AUTO)
		lab_map_peer(lab);
	if (path & 16)
		lab->ep.request_evd = lab->ep.recv_evd;
	if (path & 32)
		shm_conn_disarm(lab->conn);
	if (path & 64)
		let_ours_be_full_often(lab);
	if (path & 128)
		lab_peer_polls(lab);
	return lab;
}

void peer_run(struct lab *lab, struct peer_input *in, uint8_t path)
{
	while (in->left && lab_is_open(lab))
		one_action(lab, in, path & 2);
}

void peer_close_lab(struct lab *lab)
{
	lab_pass(lab);
	peer_change_end(lab);
	/* no waiting for an announcement that is never withdrawn */
	if (lab->end == 0)
		atomic_store(&lab->peer->announce, 0);
	lab_close(lab);
}
