// SPDX-License-Identifier: BSD-2-Clause
/* Batches of dat_perf: every line is parsed before the first one runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "perf_client.h"
#include "perf_output.h"

/* One run, with the line that its options point into. */
struct batch_run {
	char *line;
	struct perf_options options;
};

struct batch {
	struct batch_run *runs;
	size_t count;
};

static void batch_free(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		free(batch->runs[i].line);
	free(batch->runs);
}

/* Parses one line, and adds its run if it has one. */
static int batch_line(struct batch *batch, const struct perf_options *command, const char *text,
		      unsigned number)
{
	struct batch_run *runs = reallocarray(batch->runs, batch->count + 1, sizeof(*runs));
	char where[512];
	int rc;

	if (!runs)
		abort();
	batch->runs = runs;
	runs += batch->count;
	runs->line = strdup(text);
	if (!runs->line)
		abort();
	snprintf(where, sizeof(where), "%s: %s:%u", tool_name, command->batch, number);
	rc = perf_options_parse_line(runs->line, where, command, &runs->options);
	if (rc == 1)
		batch->count++;
	else
		free(runs->line);
	return rc < 0 ? -1 : 0;
}

/* All faults are reported. */
static int batch_read(struct batch *batch, const struct perf_options *command)
{
	FILE *file = fopen(command->batch, "r");
	unsigned number = 0;
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	if (!file) {
		tool_complain("%s: %s", command->batch, strerror(errno));
		return -1;
	}
	while (getline(&line, &room, file) >= 0)
		if (batch_line(batch, command, line, ++number) != 0)
			rc = -1;
	if (ferror(file)) {
		tool_complain("%s:%u: %s", command->batch, number + 1, strerror(errno));
		rc = -1;
	}
	free(line);
	fclose(file);
	if (rc == 0 && batch->count == 0) {
		tool_complain("%s: no line has options", command->batch);
		rc = -1;
	}
	return rc;
}

int perf_batch_run(const struct perf_options *options)
{
	struct batch batch = {.runs = NULL};
	int result = TOOL_EXIT_OK;

	if (batch_read(&batch, options) != 0) {
		batch_free(&batch);
		return TOOL_EXIT_USAGE;
	}
	perf_output_batch_begin(options);
	for (size_t i = 0; i < batch.count && result == TOOL_EXIT_OK; i++) {
		perf_output_batch_next(options, i == 0);
		result = perf_client_run(&batch.runs[i].options);
	}
	perf_output_batch_end(options);
	batch_free(&batch);
	return result;
}
