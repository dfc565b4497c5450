// SPDX-License-Identifier: BSD-2-Clause
/* Diagnostics, selected by DAT_DBG_TYPE and DAT_DBG_DEST. Each line is one write. */
#include "core/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

#include "core/base/cancel.h"

/* Set once, by log_init. */
static unsigned long log_kinds;
static unsigned long log_dest = 1;

static void log_init(void)
{
	const char *kinds = secure_getenv("DAT_DBG_TYPE");
	const char *dest = secure_getenv("DAT_DBG_DEST");

	if (kinds)
		log_kinds = strtoul(kinds, NULL, 0);
	if (dest)
		log_dest = strtoul(dest, NULL, 0);
}

void core_log(unsigned int kinds, const char *format, ...)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[512];
	va_list list;
	int state;

	pthread_once(&once, log_init);
	if (!(log_kinds & kinds))
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	state = core_cancel_off();
	if (log_dest & 1)
		dprintf(STDERR_FILENO, "opendat[%d]: %s\n", (int)getpid(), text);
	if (log_dest & 2)
		syslog(LOG_USER | LOG_INFO, "opendat[%d]: %s", (int)getpid(), text);
	core_cancel_restore(state);
}
