// SPDX-License-Identifier: BSD-2-Clause
/* Diagnostics, selected by DAT_DBG_TYPE and DAT_DBG_DEST. */
#include "core/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/base/cancel.h"
#include "shared/log_line.h"

static pthread_once_t log_once = PTHREAD_ONCE_INIT;

/* Set once, by log_init. */
static unsigned long log_kinds;
static unsigned long log_destinations;

static void log_init(void)
{
	log_kinds = opendat_log_variable("DAT_DBG_TYPE", 0);
	log_destinations = opendat_log_variable("DAT_DBG_DEST", OPENDAT_LOG_STDERR);
}

bool core_log_has(unsigned int kinds)
{
	pthread_once(&log_once, log_init);
	return log_kinds & kinds;
}

void core_log(unsigned int kinds, const char *format, ...)
{
	char text[512];
	va_list list;
	int state;

	if (!core_log_has(kinds))
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	state = core_cancel_off();
	opendat_log_line("opendat", log_destinations, text);
	core_cancel_restore(state);
}
