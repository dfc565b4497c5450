// SPDX-License-Identifier: BSD-2-Clause
/* The options of dat_perf, from its command line and from the lines of a batch file. */
#ifndef TOOLS_PERF_OPTIONS_H
#define TOOLS_PERF_OPTIONS_H

#include "perf.h"
#include "side.h"

#define PERF_SIZES_MAX 64u

enum perf_format {
	PERF_TEXT,
	PERF_JSON,
	PERF_CSV,
};

/* A unit of bandwidth. */
struct perf_unit {
	const char *name; /* without "/s" */
	double bytes;
};

struct perf_options {
	struct tool_side side;	      /* the first member, see tool_side_host() */
	uint32_t clients;	      /* server: at once */
	const char *cpus;	      /* NULL: not bound */
	bool is_infinite;	      /* until the user ends it */
	double interval_s;	      /* a line so often during a run; 0: none */
	bool is_stamped;	      /* each line has its time */
	const struct perf_unit *unit; /* of bandwidths that people read */
	bool is_histogram;
	const char *batch;   /* a file with options; NULL: none */
	const char *plot;    /* the file for the picture; NULL: none */
	const char *samples; /* the file for every time; NULL: none */
	enum perf_format format;
	bool is_test[PERF_TESTS];
	uint64_t sizes[PERF_SIZES_MAX];
	unsigned size_count;
	uint64_t count; /* per endpoint; 0: by the duration */
	double duration_s;
	uint64_t warm_up;
	bool has_warm_up;  /* given, not the default */
	double rate;	   /* requests per second of the bandwidth tests; 0: no limit */
	uint32_t idle;	   /* during transfers; plan.idle is the maximum over all tests */
	uint32_t mappings; /* additional ones in the client's process */
	struct perf_plan plan;
};

int perf_options_parse(int argc, char **argv, struct perf_options *options);
/*
 * The options of a line of a batch file, in addition to those of the command line. `where` begins
 * messages. The options point into `line`, which is changed. 1: a run; 0: an empty line; -1: wrong,
 * and a message was printed.
 */
int perf_options_parse_line(char *line, const char *where, const struct perf_options *command,
			    struct perf_options *options);

#endif
