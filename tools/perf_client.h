// SPDX-License-Identifier: BSD-2-Clause
/* The client of dat_perf, which runs the tests of one set of options. */
#ifndef TOOLS_PERF_CLIENT_H
#define TOOLS_PERF_CLIENT_H

#include "perf_options.h"

struct perf_client {
	const struct perf_options *options;
	struct perf_peer peer;
	struct perf_server_address server;
	struct stats stats; /* of all workers */
	uint64_t wrong;
};

/* perf_client.c. Returns the exit status. */
int perf_client_run(const struct perf_options *options);
/* Opens (count > 0) or closes all idle connections on both sides. */
int perf_client_idle(struct perf_client *client, uint32_t count);

/* perf_transfer.c: a test of latency or bandwidth with all sizes. */
int perf_client_transfers(struct perf_client *client, enum perf_test test);

/* perf_progress.c: what a run has done so far, once a second. */
struct perf_progress;
struct perf_progress *perf_progress_start(struct perf_peer *peer, const struct perf_run *run,
					  const struct perf_options *options);
void perf_progress_stop(struct perf_progress *progress);

/* perf_batch.c: runs each line of options->batch. Returns the exit status. */
int perf_batch_run(const struct perf_options *options);

#endif
