// SPDX-License-Identifier: BSD-2-Clause
/* Diagnostics, selected by DAT_DBG_TYPE and DAT_DBG_DEST. */
#include "core/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/base/cancel.h"
#include "shared/log_line.h"

_Static_assert((int)CORE_LOG_ERROR == (int)OPENDAT_LOG_ERROR, "one value");
_Static_assert((int)CORE_LOG_WARNING == (int)OPENDAT_LOG_WARNING, "one value");

static pthread_once_t log_once = PTHREAD_ONCE_INIT;

static struct opendat_log log_settings; /* set once, by log_init */

static void log_init(void)
{
	opendat_log_read(&log_settings); /* libdat reports what is wrong with them */
}

bool core_log_has(unsigned int kinds)
{
	pthread_once(&log_once, log_init);
	return log_settings.kinds & kinds;
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
	opendat_log_line(&log_settings, "opendat", kinds, text);
	core_cancel_restore(state);
}
