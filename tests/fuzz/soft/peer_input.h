// SPDX-License-Identifier: BSD-2-Clause
/*
 * An input as a list of actions of a connected peer and of our own consumer, run in the lab of the
 * unit tests (tests/unit/soft_shm/lab.h), which checks that nothing outside of the registered
 * memory changes and nothing completes twice.
 */
#ifndef FUZZ_PEER_INPUT_H
#define FUZZ_PEER_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "lab.h"

struct peer_input {
	const uint8_t *data;
	size_t left;
};

/* The next bytes of the input; 0 behind its end. */
static inline uint8_t peer_byte(struct peer_input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->data++;
}

static inline uint32_t peer_word(struct peer_input *in)
{
	uint32_t value = peer_byte(in);

	value |= (uint32_t)peer_byte(in) << 8;
	value |= (uint32_t)peer_byte(in) << 16;
	return value | (uint32_t)peer_byte(in) << 24;
}

/* An address in or near the memory, or anywhere. */
uint64_t peer_address(struct peer_input *in, const uint8_t *memory);
uint64_t peer_length(struct peer_input *in);

/*
 * `path` chooses the copy path, whether the service thread takes part, whether small transfers take
 * the fast path, whether memory of the peer can be mapped, whether one EVD gets all completions,
 * whether a thread polls, so that acknowledgements may wait, whether the rings grow when they are
 * full next, and whether a thread of the peer polls.
 */
struct lab *peer_open_lab(uint8_t path);
/* Runs the actions until the input or the connection ends. */
void peer_run(struct lab *lab, struct peer_input *in, uint8_t path);
void peer_close_lab(struct lab *lab);

#endif
