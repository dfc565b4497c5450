// SPDX-License-Identifier: BSD-2-Clause
/* Where, when and with what dat_perf measured. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "perf_output.h"

static void about_member(const char *name, const char *value)
{
	printf("\"%s\": ", name);
	tool_json_string(stdout, value);
	printf(", ");
}

/* The model of the processor, as the kernel names it. */
static void about_processor(char *text, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(text, size, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		char *value = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !value)
			continue;
		value[strcspn(value, "\n")] = '\0';
		snprintf(text, size, "%s", value + 2);
		break;
	}
	if (file)
		fclose(file);
}

/* The file of libdat that this process uses; its name ends with its version. */
static void about_library(char *text, size_t size)
{
	Dl_info info;
	char *path = NULL;

	if (dladdr((void *)(uintptr_t)dat_strerror, &info) != 0 && info.dli_fname)
		path = realpath(info.dli_fname, NULL);
	snprintf(text, size, "%s", path ? path : "unknown");
	free(path);
}

static void about_provider(const struct perf_peer *peer, char *text, size_t size)
{
	DAT_PROVIDER_ATTR *attr = calloc(1, sizeof(*attr));

	snprintf(text, size, "unknown");
	if (attr && dat_ia_query(peer->session.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, attr) ==
			    DAT_SUCCESS)
		snprintf(text, size, "%s %u.%u", attr->provider_name,
			 (unsigned)attr->provider_version_major,
			 (unsigned)attr->provider_version_minor);
	free(attr);
}

void perf_about_print_json(const struct perf_peer *peer)
{
	time_t now = time(NULL);
	struct utsname system;
	char text[4096];
	struct tm utc;

	uname(&system);
	about_member("host", system.nodename);
	snprintf(text, sizeof(text), "%s %s %s", system.sysname, system.release, system.machine);
	about_member("kernel", text);
	about_processor(text, sizeof(text));
	about_member("processor", text);
	printf("\"processors\": %ld, ", sysconf(_SC_NPROCESSORS_ONLN));
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	about_member("date", text);
	about_member("version", OPENDAT_VERSION);
	about_library(text, sizeof(text));
	about_member("library", text);
	about_provider(peer, text, sizeof(text));
	printf("\"provider\": ");
	tool_json_string(stdout, text);
}
