// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes diagnostics as DAT_DBG_TYPE and DAT_DBG_DEST select. A line is written by one call, so
 * that the lines of several threads do not mix.
 */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

enum { DEST_STDERR = 1, DEST_SYSLOG = 2 };

/* Set once, by settings_read. */
static unsigned long log_kinds;
static unsigned long log_dest;

static unsigned long variable_read(const char *name, unsigned long fallback)
{
	const char *text = secure_getenv(name);
	unsigned long value;
	char *end;

	if (!text)
		return fallback;
	value = strtoul(text, &end, 0);
	return end == text ? fallback : value;
}

static void settings_read(void)
{
	log_kinds = variable_read("DAT_DBG_TYPE", 0);
	log_dest = variable_read("DAT_DBG_DEST", DEST_STDERR);
}

void registry_log(enum registry_log_kind kind, const char *format, ...)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[1024];
	va_list list;
	int len;

	pthread_once(&once, settings_read);
	if (!(log_kinds & kind))
		return;
	va_start(list, format);
	len = vsnprintf(text, sizeof(text) - 1, format, list);
	va_end(list);
	if (len < 0)
		return;
	if ((log_dest & DEST_STDERR) != 0)
		dprintf(STDERR_FILENO, "libdat[%d]: %s\n", (int)getpid(), text);
	if ((log_dest & DEST_SYSLOG) != 0)
		syslog(LOG_USER | LOG_INFO, "libdat[%d]: %s", (int)getpid(), text);
}
