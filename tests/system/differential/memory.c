// SPDX-License-Identifier: BSD-2-Clause
/* The regions of a side, and where a step has its part. */
#include "side.h"

#define FIRST_HASH UINT64_C(14695981039346656037)

static size_t region_len(enum region region)
{
	switch (region) {
	case REGION_SOURCE:
		return (size_t)EPS * SLOTS * SLOT;
	case REGION_SINK: /* of Reads, of Receives, of shared Receives */
		return ((size_t)2 * EPS * SLOTS + SRQ_QUEUE + 1) * SLOT;
	default:
		return (size_t)EPS * AREA;
	}
}

void memory_create(struct side *side, enum region region, DAT_RMR_CONTEXT *rkey_out)
{
	static const unsigned privileges[REGIONS] = {
		[REGION_SOURCE] = DAT_MEM_PRIV_LOCAL_READ_FLAG,
		[REGION_SINK] = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		[REGION_TARGET] = DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
		[REGION_WINDOW] = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
	};
	struct memory *memory = &side->region[region];
	struct dt_buf buf;

	dt_lmr_create(&side->ia, side->ia.pz, memory->p, memory->len,
		      (DAT_MEM_PRIV_FLAGS)privileges[region], &buf);
	memory->lmr = buf.lmr;
	memory->lkey = buf.lkey;
	*rkey_out = buf.rkey;
}

void memory_start(struct side *side)
{
	struct shared *shared = side->shared;
	DAT_RMR_CONTEXT rkey;

	for (int i = 0; i < REGIONS; i++) {
		struct memory *memory = &side->region[i];

		memory->len = region_len((enum region)i);
		if (!memory->p)
			memory->p = dt_mem_alloc(memory->len);
		if (i == REGION_TARGET || i == REGION_WINDOW)
			memory_fill(memory->p, (size_t)side->sequence->eps * AREA,
				    (uint64_t)(side->me * REGIONS + i));
		memory_create(side, (enum region)i, &rkey);
		if (i == REGION_TARGET)
			shared->first_key[side->me] = rkey;
	}
	shared->area[side->me][AREA_TARGET] = (uintptr_t)side->region[REGION_TARGET].p;
	shared->area[side->me][AREA_WINDOW] = (uintptr_t)side->region[REGION_WINDOW].p;
}

static enum region step_region(const struct step *step)
{
	return step->op == OP_SEND || step->op == OP_WRITE ? REGION_SOURCE : REGION_SINK;
}

unsigned char *memory_srq_slot(const struct side *side, int slot)
{
	return side->region[REGION_SINK].p + ((size_t)2 * EPS * SLOTS + (size_t)slot) * SLOT;
}

/* Where the segments of a step begin. Those of a step with a source are in the sink of a Read. */
unsigned char *memory_slot(const struct side *side, const struct step *step)
{
	size_t slot;

	if (step->source >= 0)
		step = &side->sequence->step[step->source];
	slot = (size_t)(step->ep * SLOTS + step->slot);
	if (step->op == OP_RECV)
		slot += (size_t)EPS * SLOTS;
	return side->region[step_region(step)].p + slot * SLOT;
}

/* Segments are not aligned, and lie in memory in the reverse order. */
static unsigned char *segment_at(const struct side *side, const struct step *step, int i)
{
	const struct step *owner = step->source >= 0 ? &side->sequence->step[step->source] : step;
	const size_t shift = (size_t)(owner - side->sequence->step) % 7;

	if (step->segments == 1)
		return memory_slot(side, step) + shift;
	return memory_slot(side, step) + (size_t)(step->segments - 1 - i) * SEGMENT;
}

DAT_COUNT memory_segments(const struct side *side, const struct step *step,
			  DAT_LMR_TRIPLET iov[BAD_SEGMENTS])
{
	const enum region region = step->source >= 0 ? REGION_SINK : step_region(step);
	const struct memory *memory = &side->region[region];

	memset(iov, 0, sizeof(*iov) * BAD_SEGMENTS);
	for (int i = 0; i < step->segments; i++) {
		iov[i] = (DAT_LMR_TRIPLET){
			.lmr_context = step->len[i] ? memory->lkey : 0xdeadbeef,
			.virtual_address = (uintptr_t)segment_at(side, step, i),
			.segment_length = step->len[i],
		};
	}
	if (step->mistake == MISTAKE_BOUNDS)
		iov[0].virtual_address = (uintptr_t)memory->p + memory->len - step->len[0] + 1;
	return step->mistake == MISTAKE_SEGMENTS ? BAD_SEGMENTS : step->segments;
}

/* Different at each place and for each seed. */
void memory_fill(void *p, size_t len, uint64_t seed)
{
	unsigned char *bytes = p;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
				(seed + 1) * UINT64_C(0xd6e8feb86659fd93);

		word ^= word >> 29;
		memcpy(bytes + i, &word, len - i < 8 ? len - i : 8);
	}
}

DT_UNORDERED uint64_t memory_hash(const void *p, size_t len, uint64_t hash)
{
	const unsigned char *bytes = p;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = 0;

		if (len - i >= 8)
			memcpy(&word, bytes + i, 8);
		for (size_t at = i; len - i < 8 && at < len; at++)
			word = word << 8 | bytes[at];
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

uint64_t memory_hash_step(const struct side *side, const struct step *step)
{
	uint64_t hash = FIRST_HASH;

	for (int i = 0; i < step->segments; i++)
		hash = memory_hash(segment_at(side, step, i), step->len[i], hash);
	return hash;
}

/* The pattern of that seed; 0: bytes 0xee. */
void memory_fill_step(const struct side *side, const struct step *step, uint64_t seed)
{
	for (int i = 0; i < step->segments; i++) {
		if (seed)
			memory_fill(segment_at(side, step, i), step->len[i],
				    seed * SEGMENTS + (uint64_t)i);
		else
			memset(segment_at(side, step, i), 0xee, step->len[i]);
	}
}
