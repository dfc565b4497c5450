// SPDX-License-Identifier: BSD-2-Clause
/* Diagnostics, selected by DAT_DBG_TYPE and DAT_DBG_DEST. */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "shared/log_line.h"

/* Set once, by settings_read. */
static unsigned long log_kinds;
static unsigned long log_destinations;

static void settings_read(void)
{
	log_kinds = opendat_log_variable("DAT_DBG_TYPE", 0);
	log_destinations = opendat_log_variable("DAT_DBG_DEST", OPENDAT_LOG_STDERR);
}

bool registry_log_has(unsigned int kinds)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, settings_read);
	return log_kinds & kinds;
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
	opendat_log_line("libdat", log_destinations, text);
}
