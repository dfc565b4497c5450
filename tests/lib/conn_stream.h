// SPDX-License-Identifier: BSD-2-Clause
/* Transfers over one endpoint, with several always posted, until one of them fails. */
#ifndef TESTS_CONN_STREAM_H
#define TESTS_CONN_STREAM_H

#include "dt.h"

enum conn_stream_kind { CONN_STREAM_SEND, CONN_STREAM_WRITE, CONN_STREAM_READ, CONN_STREAM_KINDS };

struct conn_stream {
	enum conn_stream_kind kind;
	struct dt_ep *ep;
	const struct dt_buf *local; /* whole */
	DAT_RMR_TRIPLET remote;
	uint64_t posted, completed; /* cookies count from 0 */
	bool has_failed;
};

/* Dequeues completions, which must be in posting order, with no success after a failure. */
void conn_stream_reap(struct conn_stream *stream);
/* Keeps CONN_STREAM_DEPTH transfers under way, until one has failed. */
void conn_stream_step(struct conn_stream *stream);

#endif
