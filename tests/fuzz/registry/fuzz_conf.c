// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fuzz target: the reader of dat.conf. Besides not crashing, it must continue after any line: the
 * same text with a valid line appended has one entry more.
 */
#include "registry/conf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct tally {
	unsigned int entries;
	unsigned int skipped;
	unsigned int last_line;
};

static void line_check(struct tally *tally, unsigned int line)
{
	/* Each line is reported at most once, in order. */
	if (line <= tally->last_line)
		abort();
	tally->last_line = line;
}

static int entry_take(void *context, const struct registry_conf_entry *entry)
{
	struct tally *tally = context;

	line_check(tally, entry->line);
	tally->entries++;
	if (strlen(entry->name) > REGISTRY_CONF_NAME_MAX || entry->name[0] == '\0' ||
	    entry->library[0] == '\0' || entry->provider_version[0] == '\0')
		abort();
	/* Reads every byte of the other results. */
	if (strlen(entry->instance_data) + strlen(entry->platform_data) == SIZE_MAX)
		abort();
	return 0;
}

static void skipped_take(void *context, unsigned int line, const char *reason)
{
	struct tally *tally = context;

	line_check(tally, line);
	tally->skipped++;
	if (strlen(reason) == 0)
		abort();
}

static const struct registry_conf_ops ops = {.entry = entry_take, .skipped = skipped_take};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char good[] = "\ngood u1.2 threadsafe default lib.so v \"\" \"\"";
	struct tally alone = {0}, followed = {0};
	char *text;

	if (registry_conf_parse((const char *)data, size, &ops, &alone) != 0)
		abort();
	text = malloc(size + sizeof(good));
	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	memcpy(text + size, good, sizeof(good));
	if (registry_conf_parse(text, size + sizeof(good) - 1, &ops, &followed) != 0)
		abort();
	if (followed.entries != alone.entries + 1 || followed.skipped != alone.skipped)
		abort();
	free(text);
	return 0;
}
