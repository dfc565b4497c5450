// SPDX-License-Identifier: BSD-2-Clause
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>

struct row {
	const char *name;
	uint64_t count, failed, ns;
};

static int by_time(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

static void print_row(FILE *out, const struct row *row, uint64_t all_ns)
{
	fprintf(out, "%6.2f %11.6f %11.3f %9" PRIu64 " %9" PRIu64 " %s\n",
		all_ns ? 100.0 * (double)row->ns / (double)all_ns : 0, (double)row->ns / 1e9,
		row->count ? (double)row->ns / 1e3 / (double)row->count : 0, row->count,
		row->failed, row->name);
}

void trace_print_calls(FILE *out, const struct opendat_trace_counts *counts)
{
	struct row rows[OPENDAT_TRACE_CALLS], all = {.name = "total"};
	unsigned count = 0;

	for (unsigned i = 0; trace_call_names[i]; i++) {
		const struct opendat_trace_call *call = &counts->calls[i];
		struct row row = {trace_call_names[i], call->count, call->failed, call->ns};

		if (!row.count)
			continue;
		rows[count++] = row;
		all.count += row.count;
		all.failed += row.failed;
		all.ns += row.ns;
	}
	qsort(rows, count, sizeof(*rows), by_time);
	fprintf(out, "%6s %11s %11s %9s %9s %s\n", "% time", "seconds", "us/call", "calls",
		"failed", "call");
	for (unsigned i = 0; i < count; i++)
		print_row(out, &rows[i], all.ns);
	print_row(out, &all, all.ns);
}

static int by_key(const void *left, const void *right)
{
	uint64_t a = (*(const struct opendat_trace_ep *const *)left)->key;
	uint64_t b = (*(const struct opendat_trace_ep *const *)right)->key;

	return (a > b) - (a < b);
}

void trace_print_eps(FILE *out, const struct opendat_trace_counts *counts)
{
	const struct opendat_trace_ep *eps[OPENDAT_TRACE_EPS];
	unsigned count = 0;

	for (unsigned i = 0; i < OPENDAT_TRACE_EPS; i++)
		if (counts->eps[i].key)
			eps[count++] = &counts->eps[i];
	if (!count)
		return;
	qsort(eps, count, sizeof(const struct opendat_trace_ep *), by_key);
	fprintf(out, "\n%9s %-8s %9s %9s %9s %7s %9s %13s %13s %7s\n", "process", "endpoint",
		"sends", "writes", "reads", "binds", "receives", "bytes out", "bytes in", "failed");
	for (unsigned i = 0; i < count; i++)
		fprintf(out,
			"%9" PRIu64 " ep %-5u %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %7" PRIu64
			" %9" PRIu64 " %13" PRIu64 " %13" PRIu64 " %7" PRIu64 "\n",
			eps[i]->key >> 32, (unsigned)eps[i]->key, eps[i]->sends, eps[i]->writes,
			eps[i]->reads, eps[i]->binds, eps[i]->receives, eps[i]->bytes_out,
			eps[i]->bytes_in, eps[i]->failed);
}
