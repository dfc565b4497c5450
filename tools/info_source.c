// SPDX-License-Identifier: BSD-2-Clause
/*
 * The sources of adapters. The registry file is read with the registry's own parser, so that
 * dat_info reports lines as the registry understands them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "info.h"

static int info_line_add(void *context, const struct registry_conf_entry *entry)
{
	struct info_sources *sources = context;
	struct info_line **end = &sources->lines;
	struct info_line *line;

	if (entry->version_major != DAT_VERSION_MAJOR) {
		sources->other_version_count++;
		return 0;
	}
	if (!entry->is_default) {
		sources->nondefault_count++;
		return 0;
	}
	line = calloc(1, sizeof(*line));
	if (!line)
		return -ENOMEM;
	line->number = entry->line;
	line->version_minor = entry->version_minor;
	line->is_thread_safe = entry->is_thread_safe;
	line->name = strdup(entry->name);
	line->library = strdup(entry->library);
	line->instance_data = strdup(entry->instance_data);
	while (*end)
		end = &(*end)->next;
	*end = line;
	return line->name && line->library && line->instance_data ? 0 : -ENOMEM;
}

static void info_skipped_add(void *context, unsigned number, const char *reason)
{
	struct info_sources *sources = context;
	struct info_skipped **end = &sources->skipped;
	struct info_skipped *skipped = calloc(1, sizeof(*skipped));

	if (!skipped)
		return;
	skipped->number = number;
	skipped->reason = reason;
	while (*end)
		end = &(*end)->next;
	*end = skipped;
}

int info_sources_read(struct info_sources *sources_out)
{
	static const struct registry_conf_ops ops = {.entry = info_line_add,
						     .skipped = info_skipped_add};
	struct registry_conf_file *file = &sources_out->file;
	int rc;

	*sources_out = (struct info_sources){.lines = NULL};
	rc = registry_conf_load(file);
	if (rc != 0) {
		tool_complain("%s: %s%s", file->path ? file->path : "registry file", strerror(-rc),
			      file->is_override ? " (named by DAT_OVERRIDE)" : "");
		return rc;
	}
	if (!file->text)
		return 0;
	return registry_conf_parse(file->text, file->len, &ops, sources_out);
}

void info_sources_free(struct info_sources *sources)
{
	while (sources->lines) {
		struct info_line *line = sources->lines;

		sources->lines = line->next;
		free(line->name);
		free(line->library);
		free(line->instance_data);
		free(line);
	}
	while (sources->skipped) {
		struct info_skipped *skipped = sources->skipped;

		sources->skipped = skipped->next;
		free(skipped);
	}
	registry_conf_unload(&sources->file);
}

const char *info_source_text(const struct info_sources *sources, const struct info_adapter *adapter,
			     char *text, size_t size)
{
	if (adapter->is_default)
		snprintf(text, size, "DAT_OPENDAT_DEFAULT=%s", adapter->ia_attr.adapter_name);
	else if (!adapter->line)
		snprintf(text, size, "built-in");
	else
		snprintf(text, size, "%s:%u", sources->file.path, adapter->line->number);
	return text;
}
