// SPDX-License-Identifier: BSD-2-Clause
/* Diagnostics, selected by DAT_DBG_TYPE and DAT_DBG_DEST. */
#include "log.h"
#include "api.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "shared/log_line.h"

_Static_assert((int)REGISTRY_LOG_ERROR == (int)OPENDAT_LOG_ERROR, "one value");
_Static_assert((int)REGISTRY_LOG_WARNING == (int)OPENDAT_LOG_WARNING, "one value");

static struct opendat_log log_settings; /* set once, by settings_read */

/* A value that means nothing must not silence a log that somebody asks for. */
static void report_value(const char *name, const char *value, const char *meaning)
{
	char text[512];

	snprintf(text, sizeof(text), "environment: %s=%.200s: not %s", name, value, meaning);
	opendat_log_line(&log_settings, "libdat", REGISTRY_LOG_ERROR | REGISTRY_LOG_WARNING, text);
}

static void settings_read(void)
{
	opendat_log_read(&log_settings);
	if (log_settings.bad_kinds)
		report_value("DAT_DBG_TYPE", log_settings.bad_kinds,
			     "a sum of 1, 2, 4, 8, 16 and 32");
	if (log_settings.bad_destination)
		report_value("DAT_DBG_DEST", log_settings.bad_destination,
			     "1, 2, 3 or an absolute path; 1 is used");
}

bool registry_log_has(unsigned int kinds)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, settings_read);
	return log_settings.kinds & kinds;
}

void registry_log(unsigned int kinds, const char *format, ...)
{
	char text[1024];
	va_list list;

	if (!registry_log_has(kinds))
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	opendat_log_line(&log_settings, REGISTRY_NAME, kinds, text);
}

void registry_log_warning(const char *text)
{
	(void)registry_log_has(0); /* reads the settings */
	opendat_log_line(&log_settings, REGISTRY_NAME, REGISTRY_LOG_WARNING, text);
}
