// SPDX-License-Identifier: BSD-2-Clause
/* dat_info lists the interface adapters, with the source and the attributes of each. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "info.h"
#include "options.h"

enum info_format {
	INFO_SHORT,
	INFO_VERBOSE,
	INFO_NAMES,
	INFO_JSON,
};

struct info_list {
	struct info_adapter *adapters;
	size_t count;
};

/* Gets the whole list of the registry. Returns the number of entries or -1. */
static DAT_COUNT info_providers_get(DAT_PROVIDER_INFO **infos_out)
{
	DAT_PROVIDER_INFO *infos = NULL;
	DAT_PROVIDER_INFO **pointers = NULL;
	DAT_COUNT room = 8;
	DAT_COUNT count = 0;
	DAT_RETURN code;

	do {
		free(infos);
		free(pointers);
		infos = calloc((size_t)room, sizeof(*infos));
		pointers = calloc((size_t)room, sizeof(*pointers));
		if (!infos || !pointers)
			abort();
		for (DAT_COUNT i = 0; i < room; i++)
			pointers[i] = &infos[i];
		code = dat_registry_list_providers(room, &count, pointers);
		/* the list may have grown since the last call */
		if (code == DAT_SUCCESS || count <= room)
			break;
		room = count;
	} while (room < 1 << 20);
	free(pointers);
	if (code != DAT_SUCCESS) {
		tool_call_failed("dat_registry_list_providers", code);
		free(infos);
		return -1;
	}
	*infos_out = infos;
	return count;
}

static struct info_adapter *info_list_add(struct info_list *list, const char *name)
{
	struct info_adapter *adapter;

	for (size_t i = 0; i < list->count; i++) {
		if (strcmp(list->adapters[i].name, name) == 0)
			return &list->adapters[i];
	}
	adapter = reallocarray(list->adapters, list->count + 1, sizeof(*adapter));
	if (!adapter)
		abort();
	list->adapters = adapter;
	adapter += list->count++;
	*adapter = (struct info_adapter){.line = NULL};
	snprintf(adapter->name, sizeof(adapter->name), "%s", name);
	return adapter;
}

/* Lists each name once, even if the registry has it with both thread safeties. */
static int info_list_make(struct info_list *list, const char *only)
{
	DAT_PROVIDER_INFO *infos = NULL;
	DAT_COUNT count = info_providers_get(&infos);

	if (count < 0 && !only)
		return -1;
	for (DAT_COUNT i = 0; i < count; i++) {
		struct info_adapter *adapter;

		if (only && strcmp(only, infos[i].ia_name) != 0)
			continue;
		adapter = info_list_add(list, infos[i].ia_name);
		if (infos[i].is_thread_safe)
			adapter->is_thread_safe_listed = true;
		else
			adapter->is_unsafe_listed = true;
	}
	free(infos);
	/* a built-in adapter can be opened by name even if a file hides it from the list */
	if (only)
		info_list_add(list, only);
	return 0;
}

/* The library of an adapter that does not open. */
static void info_library_find(struct info_adapter *adapter)
{
	const char *name = "?";

	if (adapter->line)
		name = adapter->line->library;
	else if (strncmp(adapter->name, "soft-", 5) == 0)
		name = "libdat-soft.so.1";
	else if (strncmp(adapter->name, "verbs-", 6) == 0)
		name = "libdat-verbs.so.1";
	snprintf(adapter->library, sizeof(adapter->library), "%s", name);
}

static bool info_is_loaded(const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle;
}

/* Can the line be the one that was opened? libdat tries lines that agree in order (CONF-31). */
static bool info_line_is_open(const struct info_line *line, const struct info_adapter *adapter)
{
	return adapter->provider_attr &&
	       !line->is_thread_safe == !adapter->provider_attr->is_thread_safe &&
	       line->version_minor >= DAT_VERSION_MINOR && info_is_loaded(line->library);
}

/* Finds the line that was opened, or else the first one that defines the adapter. */
static void info_line_find(struct info_adapter *adapter, const struct info_sources *sources)
{
	const char *name = adapter->is_default ? adapter->ia_attr.adapter_name : adapter->name;
	const struct info_line *line;

	for (line = sources->lines; line; line = line->next) {
		if (strcmp(line->name, name) != 0)
			continue;
		if (!adapter->line)
			adapter->line = line;
		if (info_line_is_open(line, adapter)) {
			adapter->line = line;
			return;
		}
	}
}

static void info_adapter_fill(struct info_adapter *adapter, const struct info_sources *sources)
{
	info_log_begin();
	info_adapter_open(adapter);
	info_log_end(adapter);
	info_line_find(adapter, sources);
	if (!adapter->provider_attr)
		info_library_find(adapter);
	else if (adapter->line && registry_conf_is_reference(adapter->line->library) &&
		 !info_is_loaded(adapter->line->library))
		adapter->missing = adapter->line->library;
	info_why(adapter, sources);
}

static void info_adapter_end(struct info_adapter *adapter)
{
	info_adapter_close(adapter);
	info_texts_free(&adapter->reasons);
	info_texts_free(&adapter->advice);
}

static const char *info_safety_text(const struct info_adapter *adapter)
{
	if (adapter->is_thread_safe_listed)
		return adapter->is_unsafe_listed ? "both" : "yes";
	if (adapter->is_unsafe_listed)
		return "no";
	/* not listed, opened by name */
	return adapter->provider_attr && adapter->provider_attr->is_thread_safe ? "yes" : "no";
}

/* One row of the list, without the name of the library. */
#define INFO_COLUMNS 4u
struct info_row {
	char cells[INFO_COLUMNS][512];
};

static void info_row_fill(const struct info_adapter *adapter, const struct info_sources *sources,
			  struct info_row *row)
{
	size_t size = sizeof(row->cells[0]);

	snprintf(row->cells[0], size, "%s", adapter->name);
	if (adapter->provider_attr)
		tool_address_text(adapter->ia_attr.ia_address_ptr, row->cells[1], size);
	else
		snprintf(row->cells[1], size, "cannot be opened");
	snprintf(row->cells[2], size, "%s", info_safety_text(adapter));
	info_source_text(sources, adapter, row->cells[3], size);
}

static void info_row_print(const struct info_row *row, const int widths[INFO_COLUMNS],
			   const char *library, const char *missing)
{
	for (unsigned i = 0; i < INFO_COLUMNS; i++)
		printf("%-*s  ", widths[i], row->cells[i]);
	printf("%s%s%s\n", library, missing ? " instead of " : "", missing ? missing : "");
}

static void info_print_short(const struct info_list *list, const struct info_sources *sources)
{
	static const struct info_row head = {{"name", "address", "thread safe", "source"}};
	struct info_row *rows = calloc(list->count, sizeof(*rows));
	int widths[INFO_COLUMNS];

	if (!rows)
		abort();
	for (unsigned i = 0; i < INFO_COLUMNS; i++)
		widths[i] = (int)strlen(head.cells[i]);
	for (size_t n = 0; n < list->count; n++) {
		info_row_fill(&list->adapters[n], sources, &rows[n]);
		for (unsigned i = 0; i < INFO_COLUMNS; i++) {
			int len = (int)strlen(rows[n].cells[i]);

			widths[i] = len > widths[i] ? len : widths[i];
		}
	}
	info_row_print(&head, widths, "library", NULL);
	for (size_t n = 0; n < list->count; n++)
		info_row_print(&rows[n], widths, list->adapters[n].library,
			       list->adapters[n].missing);
	free(rows);
}

static void info_print_verbose(const struct info_list *list, const struct info_sources *sources)
{
	char text[512];

	for (size_t i = 0; i < list->count; i++) {
		const struct info_adapter *adapter = &list->adapters[i];

		printf("%s%s\n", i ? "\n" : "", adapter->name);
		printf("  %-38s %s\n", "source",
		       info_source_text(sources, adapter, text, sizeof(text)));
		if (adapter->line)
			printf("  %-38s \"%s\"\n", "instance data", adapter->line->instance_data);
		printf("  %-38s %s\n", "library", adapter->library);
		if (adapter->missing)
			printf("  %-38s %s, which is missing\n", "instead of", adapter->missing);
		printf("  %-38s %s\n", "listed as thread safe", info_safety_text(adapter));
		if (adapter->provider_attr) {
			info_settings_print(adapter, sources);
			info_attr_print(adapter);
		} else
			printf("  cannot be opened: %s\n",
			       tool_return_text(adapter->open_code, text, sizeof(text)));
	}
	if (sources->other_version_count + sources->nondefault_count > 0)
		printf("\n%s: not listed: %u entries of another API version, %u entries that are "
		       "not default\n",
		       sources->file.path, sources->other_version_count, sources->nondefault_count);
}

static void info_print_texts_json(const char *name, const struct info_texts *texts)
{
	printf(", \"%s\": [", name);
	for (unsigned i = 0; i < texts->count; i++) {
		if (i > 0)
			printf(", ");
		tool_json_string(stdout, texts->texts[i]);
	}
	printf("]");
}

static void info_print_adapter_json(const struct info_adapter *adapter,
				    const struct info_sources *sources)
{
	char text[512];

	printf("{\"name\": ");
	tool_json_string(stdout, adapter->name);
	printf(", \"source\": ");
	tool_json_string(stdout, info_source_text(sources, adapter, text, sizeof(text)));
	printf(", \"library\": ");
	tool_json_string(stdout, adapter->library);
	if (adapter->missing) {
		printf(", \"instead_of\": ");
		tool_json_string(stdout, adapter->missing);
	}
	printf(", \"thread_safe\": \"%s\", ", info_safety_text(adapter));
	if (adapter->line) {
		printf("\"instance_data\": ");
		tool_json_string(stdout, adapter->line->instance_data);
		printf(", ");
	}
	if (adapter->provider_attr) {
		info_settings_print_json(adapter, sources);
		info_attr_print_json(adapter);
	} else {
		printf("\"error\": ");
		tool_json_string(stdout, tool_return_text(adapter->open_code, text, sizeof(text)));
		info_print_texts_json("reasons", &adapter->reasons);
		info_print_texts_json("advice", &adapter->advice);
	}
	printf("}");
}

static void info_print_json(const struct info_list *list, const struct info_sources *sources)
{
	printf("{\"file\": ");
	tool_json_string(stdout, sources->file.text ? sources->file.path : "");
	printf(", \"skipped\": [");
	for (const struct info_skipped *line = sources->skipped; line; line = line->next) {
		printf("%s{\"line\": %u, \"reason\": ", line == sources->skipped ? "" : ", ",
		       line->number);
		tool_json_string(stdout, line->reason);
		printf("}");
	}
	printf("],\n\"adapters\": [");
	for (size_t i = 0; i < list->count; i++) {
		printf("%s\n", i ? "," : "");
		info_print_adapter_json(&list->adapters[i], sources);
	}
	printf("\n]}\n");
}

static int info_result(const struct info_list *list, const struct info_sources *sources)
{
	char text[160];
	int result = TOOL_EXIT_OK;

	for (size_t i = 0; i < list->count; i++) {
		const struct info_adapter *adapter = &list->adapters[i];

		if (adapter->open_code == DAT_SUCCESS)
			continue;
		tool_complain("%s: dat_ia_open: %s", adapter->name,
			      tool_return_text(adapter->open_code, text, sizeof(text)));
		for (unsigned j = 0; j < adapter->reasons.count; j++)
			fprintf(stderr, "  why: %s\n", adapter->reasons.texts[j]);
		for (unsigned j = 0; j < adapter->advice.count; j++)
			fprintf(stderr, "  what to do: %s\n", adapter->advice.texts[j]);
		result = 1;
	}
	for (const struct info_skipped *line = sources->skipped; line; line = line->next)
		tool_complain("%s:%u: line skipped: %s", sources->file.path, line->number,
			      line->reason);
	if (list->count == 0) {
		tool_complain("no adapter%s%s", sources->file.text ? " in " : "",
			      sources->file.text ? sources->file.path : "");
		result = TOOL_EXIT_FAILED;
	}
	return result;
}

static void info_print(enum info_format format, const struct info_list *list,
		       const struct info_sources *sources)
{
	if (format == INFO_SHORT && list->count > 0)
		info_print_short(list, sources);
	else if (format == INFO_VERBOSE)
		info_print_verbose(list, sources);
	else if (format == INFO_JSON)
		info_print_json(list, sources);
	for (size_t i = 0; format == INFO_NAMES && i < list->count; i++)
		printf("%s\n", list->adapters[i].name);
	fflush(stdout);
}

static int info_run(enum info_format format, const char *only)
{
	struct info_list list = {.adapters = NULL};
	struct info_sources sources;
	int result = TOOL_EXIT_FAILED;

	if (info_sources_read(&sources) != 0 || info_list_make(&list, only) != 0)
		goto out;
	for (size_t i = 0; format != INFO_NAMES && i < list.count; i++)
		info_adapter_fill(&list.adapters[i], &sources);
	info_print(format, &list, &sources);
	result = info_result(&list, &sources);
	for (size_t i = 0; i < list.count; i++)
		info_adapter_end(&list.adapters[i]);
out:
	free(list.adapters);
	info_sources_free(&sources);
	return result;
}

/* --- the command line --- */

static const struct tool_option info_table[] = {
	{'v', "verbose", .help = "all attributes of each adapter and its provider"},
	{'l', "list", .help = "names only"},
	{'j', "json", .help = "everything, as JSON"},
	{'a', "adapter", "NAME", "@adapter", .help = "this adapter only, even if it is not listed"},
	{'c', "checks", .help = "the rules that DAT_CHECK=1 tests (docs/checking.md)"},
	TOOL_OPTIONS_COMMON,
};

struct info_options {
	bool is_checks;
	enum info_format format;
	const char *only;
};

static int info_parse_option(int letter, const char *value, void *context)
{
	struct info_options *options = context;

	switch (letter) {
	case 'v':
		options->format = INFO_VERBOSE;
		return 0;
	case 'l':
		options->format = INFO_NAMES;
		return 0;
	case 'j':
		options->format = INFO_JSON;
		return 0;
	case 'c':
		options->is_checks = true;
		return 0;
	default: /* 'a' */
		options->only = value;
		return 0;
	}
}

static const struct tool_command info_command = {
	.usage = "usage: dat_info [-v | -l | -j] [-q] [-a NAME]\n"
		 "       dat_info --checks\n"
		 "\n"
		 "Lists the interface adapters of this host.\n",
	.status = "Exit status: 0 all adapters can be opened, 1 at least one cannot, 2 usage "
		  "error,\n"
		  "3 there is no adapter, or the file that DAT_OVERRIDE names cannot be read.\n",
	.options = info_table,
	.option = info_parse_option,
};

int main(int argc, char **argv)
{
	struct info_options options = {.format = INFO_SHORT};

	tool_name = "dat_info";
	if (tool_options_parse(&info_command, argc, argv, &options) != 0) {
		tool_options_hint();
		return TOOL_EXIT_USAGE;
	}
	if (tool_is_quiet)
		tool_drop_output();
	if (options.is_checks)
		return info_checks_print();
	info_log_enable();
	return info_run(options.format, options.only);
}
