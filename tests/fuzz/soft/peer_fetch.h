// SPDX-License-Identifier: BSD-2-Clause
/*
 * Actions around messages that the receiver fetches from the memory of the sender: lists of
 * sources, and what keeps one side from fetching.
 */
#ifndef FUZZ_PEER_FETCH_H
#define FUZZ_PEER_FETCH_H

#include "peer_input.h"

/* A region of the peer that one pass cannot fetch, under a key of this lab. */
void peer_fetch_open(struct lab *lab);
void peer_fetch_close(struct lab *lab);
/* Fills the entry's payload with sources, whose length it mostly takes. */
void peer_sources(struct lab *lab, struct peer_input *in, struct shm_entry *entry,
		  uint8_t *payload);
/* The kernel refuses to copy, memory is mapped, a region is freed, or the peer dies. */
void peer_change_fetch(struct lab *lab, struct peer_input *in);
/* One side cannot fetch a message, and the other supplies its bytes, mostly as it should. */
void peer_supply(struct lab *lab, struct peer_input *in);

#endif
