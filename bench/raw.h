// SPDX-License-Identifier: BSD-2-Clause
/* What the tests of bench/raw share. */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "stats.h"

#define RAW_LINE 64
#define RAW_SIDES 2

/* One word per side, which the other side writes. */
struct raw_word {
	_Alignas(2 * RAW_LINE) _Atomic uint32_t value;
	char pad[2 * RAW_LINE - sizeof(uint32_t)];
};

struct raw {
	unsigned side; /* 0 leads */
	uint64_t size;
	uint64_t count;
	struct raw_word *shared; /* those of the test, then those of the start */
	struct raw_word *own;	 /* private memory, at the same address in both processes */
	char *bytes;		 /* `size` of them */
	int events[RAW_SIDES];
	int sockets[RAW_SIDES]; /* the two ends of a TCP connection, non-blocking */
	pid_t peer;
	struct stats stats;
};

/* Prints a message with the text of errno, and exits. */
_Noreturn void raw_fail(const char *what);

/* Connects two sockets over the loopback interface. */
void raw_tcp_connect(struct raw *raw);

/* A ping-pong of `size` bytes; both sides poll. */
void raw_tcp_signal(struct raw *raw, uint32_t value);
void raw_tcp_wait(struct raw *raw, uint32_t value);

/*
 * One direction: this side sends `count` times `size` bytes, or receives them and returns the
 * nanoseconds from the first to the last byte.
 */
void raw_tcp_send_stream(struct raw *raw, uint64_t count);
uint64_t raw_tcp_receive_stream(struct raw *raw, uint64_t count);

#endif
