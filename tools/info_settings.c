// SPDX-License-Identifier: BSD-2-Clause
/* The settings of an open adapter, and where each comes from. */
#include <string.h>

#include "common.h"
#include "core/base/settings.h"
#include "info.h"

/* What the report of one setting needs. */
struct settings_output {
	const char *source; /* of the instance data */
	bool is_json;
	bool is_first;
};

static bool has_settings(const struct info_adapter *adapter)
{
	return strcmp(adapter->provider_attr->provider_name, "OpenDAT") == 0;
}

static void print_setting(void *context, const struct core_setting_shown *setting)
{
	struct settings_output *output = context;
	const char *origin = setting->variable		    ? setting->variable
			     : setting->is_in_instance_data ? output->source
							    : "default";

	if (!output->is_json) {
		printf("    %-36s %s%s%s (%s)\n", setting->key, setting->value,
		       setting->unit ? " " : "", setting->unit ? setting->unit : "", origin);
		return;
	}
	printf("%s{\"name\": \"%s\", \"value\": ", output->is_first ? "" : ", ", setting->key);
	tool_json_string(stdout, setting->value);
	printf(", \"origin\": ");
	tool_json_string(stdout, origin);
	printf("}");
	output->is_first = false;
}

/* A built-in adapter has no instance data but its interface. */
static const char *data_of(const struct info_adapter *adapter)
{
	return adapter->line ? adapter->line->instance_data : "";
}

void info_settings_print(const struct info_adapter *adapter, const struct info_sources *sources)
{
	char source[512];
	struct settings_output output = {
		.source = info_source_text(sources, adapter, source, sizeof(source))};

	if (!has_settings(adapter))
		return;
	printf("  settings, and where each comes from\n");
	core_settings_list(data_of(adapter), print_setting, &output);
}

void info_settings_print_json(const struct info_adapter *adapter,
			      const struct info_sources *sources)
{
	char source[512];
	struct settings_output output = {
		.source = info_source_text(sources, adapter, source, sizeof(source)),
		.is_json = true,
		.is_first = true};

	if (!has_settings(adapter))
		return;
	printf("\"settings\": [");
	core_settings_list(data_of(adapter), print_setting, &output);
	printf("], ");
}
