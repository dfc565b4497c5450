// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tests of dat_perf that transfer no data: idle connections, cycles of connecting and
 * disconnecting, and the memory, address space and processor time of a process.
 */
#ifndef TOOLS_PERF_IDLE_H
#define TOOLS_PERF_IDLE_H

#include <stdint.h>

struct perf_peer;
struct perf_server_address;
struct stats;

/* The memory of one side. */
struct perf_usage {
	uint64_t pss_bytes;   /* proportional set size without the pages of files */
	uint64_t shmem_bytes; /* the part of it in shared memory */
	uint64_t space_bytes; /* address space */
};

int perf_idle_prepare(struct perf_peer *peer);
void perf_idle_release(struct perf_peer *peer);
int perf_idle_accept(struct perf_peer *peer, uint32_t count);
int perf_idle_connect(struct perf_peer *peer, const struct perf_server_address *server,
		      uint32_t count);
void perf_idle_close(struct perf_peer *peer);
/* Server: accepts connections until the one that the client marks as the last. */
int perf_cycles_accept(struct perf_peer *peer);
/*
 * Client: connects `count` times, or without a count until the clock has passed `end_ticks`. Adds
 * the times to `stats`.
 */
int perf_cycles_connect(struct perf_peer *peer, const struct perf_server_address *server,
			uint64_t count, uint64_t end_ticks, struct stats *stats);
int perf_usage_memory(struct perf_usage *usage_out);
int perf_usage_space(uint64_t *bytes_out);
/* Address space added since the adapter was opened, without the arena of handles. */
int perf_usage_adapter(const struct perf_peer *peer, uint64_t *bytes_out);
/* Makes mappings that the library does not use. They exist until the process ends. */
int perf_mappings_make(uint32_t count);

/* The processor time (user and system) of this process during a part of its life. */
struct perf_cpu {
	uint64_t used_us;
	uint64_t elapsed_ns;
};

void perf_cpu_start(struct perf_cpu *cpu_out);
void perf_cpu_stop(struct perf_cpu *cpu);
/* In hundredths of a percent of one processor. */
uint64_t perf_cpu_permyriad(const struct perf_cpu *cpu);

/* Sleeps, and returns the processor time that the process used meanwhile. */
uint64_t perf_usage_sleep(uint64_t sleep_us);

#endif
