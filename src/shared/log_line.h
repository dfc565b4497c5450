// SPDX-License-Identifier: BSD-2-Clause
/*
 * One line of the log, as libdat and the provider libraries write it: the time in UTC, the name of
 * the library with the process, and the text. A line is one write, so that the lines of several
 * threads do not mix.
 */
#ifndef SHARED_LOG_LINE_H
#define SHARED_LOG_LINE_H

#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { OPENDAT_LOG_STDERR = 1, OPENDAT_LOG_SYSLOG = 2 };

/* The number in an environment variable; a program with raised privileges ignores it. */
static inline unsigned long opendat_log_variable(const char *name, unsigned long fallback)
{
	const char *text = secure_getenv(name);
	unsigned long value;
	char *end;

	if (!text)
		return fallback;
	value = strtoul(text, &end, 0);
	return end == text ? fallback : value;
}

/* `destinations`: a sum of the values above. The system log stamps its lines itself. */
static inline void opendat_log_line(const char *library, unsigned long destinations,
				    const char *text)
{
	int pid = (int)getpid();
	struct timespec now;
	struct tm utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc); /* UTC: needs no file, and compares between hosts */
	if (destinations & OPENDAT_LOG_STDERR)
		dprintf(STDERR_FILENO, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ %s[%d]: %s\n",
			utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
			utc.tm_sec, now.tv_nsec / 1000, library, pid, text);
	if (destinations & OPENDAT_LOG_SYSLOG)
		syslog(LOG_USER | LOG_INFO, "%s[%d]: %s", library, pid, text);
}

#endif
