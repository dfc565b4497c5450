// SPDX-License-Identifier: BSD-2-Clause
/* What the tests of placed messages share (soft/shm/transfer/place.h): either side of an offer. */
#ifndef TESTS_SOFT_SHM_PLACE_H
#define TESTS_SOFT_SHM_PLACE_H

#include <string.h>

#include "slow.h"
#include "soft/shm/transfer/place.h"

#define AT 100u	 /* where the Receive begins in the memory of the receiver */
#define SIZE 50u /* and how long it is */

static inline struct shm_side *mine(const struct lab *lab)
{
	return lab->conn->mine;
}

static inline void fill(struct lab *lab)
{
	for (uint32_t i = 0; i < SIZE; i++)
		lab->memory[i] = (uint8_t)(i + 1);
}

/* --- our side receives --- */

static inline bool has_offer(const struct lab *lab)
{
	return atomic_load(&mine(lab)->offer) == SHM_OFFER(lab->conn->done);
}

static inline struct shm_entry placed_entry(uint64_t length)
{
	return (struct shm_entry){
		.type = SHM_ENTRY_SEND,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST | SHM_FLAG_PLACED,
		.length = length,
	};
}

/* --- our side sends --- */

/* The peer offers `length` bytes at `offset` of its memory for our message of that number. */
static inline void peer_offers(struct lab *lab, uint32_t number, uint32_t offset, uint64_t length)
{
	lab->peer->offer_key = lab->peer_rkey;
	lab->peer->offer_address = (uintptr_t)lab->peer_memory + offset;
	lab->peer->offer_length = length;
	atomic_store(&lab->peer->offer, SHM_OFFER(number));
	atomic_store(&lab->peer->is_patient, 1);
	atomic_store(&lab->peer->armed, 1);
}

static inline uint64_t placed(const struct lab *lab)
{
	return atomic_load(&lab->conn->counters[SHM_COUNT_SEND_PLACED]);
}

#endif
