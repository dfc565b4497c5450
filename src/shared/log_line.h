// SPDX-License-Identifier: BSD-2-Clause
/*
 * The log of libdat and the provider libraries: which kinds of messages it has, and where they go.
 * A line has the time in UTC, the name of the library with the process, "error: " or "warning: ",
 * and the text. It is one write, so that the lines of several threads do not mix.
 */
#ifndef SHARED_LOG_LINE_H
#define SHARED_LOG_LINE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum {
	OPENDAT_LOG_ERROR = 0x1,	  /* a kind: what failed */
	OPENDAT_LOG_ALL = 0x3f,		  /* the sum of all kinds of either library */
	OPENDAT_LOG_WARNING = 0x40000000, /* with a kind: a warning, also among the errors */
};

enum { OPENDAT_LOG_STDERR = 1, OPENDAT_LOG_SYSLOG = 2 };

struct opendat_log {
	unsigned long kinds;
	unsigned long destinations; /* a sum */
	char *path;		    /* of a file, instead of the sum; NULL: none */
	/* the values of the variables that mean nothing; NULL: there is none */
	const char *bad_kinds, *bad_destination;
};

/* The number that a text is. False: it is none. */
static inline bool opendat_log_number(const char *text, unsigned long *number_out)
{
	char *end;

	*number_out = strtoul(text, &end, 0);
	return end != text && !*end;
}

/* Reads the variables of the environment; a program with raised privileges ignores them. */
static inline void opendat_log_read(struct opendat_log *log)
{
	const char *kinds = secure_getenv("DAT_DBG_TYPE");
	const char *destination = secure_getenv("DAT_DBG_DEST");
	unsigned long number;

	*log = (struct opendat_log){.destinations = OPENDAT_LOG_STDERR};
	if (kinds && *kinds) {
		bool is_number = opendat_log_number(kinds, &number);

		log->kinds = is_number ? number & OPENDAT_LOG_ALL : 0;
		if (!is_number || number != log->kinds)
			log->bad_kinds = kinds;
	}
	if (!destination || !*destination)
		return;
	if (*destination == '/')
		log->path = strdup(destination);
	else if (opendat_log_number(destination, &number) && number && number <= 3)
		log->destinations = number;
	else
		log->bad_destination = destination;
}

static inline int opendat_log_severity(unsigned int kinds)
{
	if (kinds & OPENDAT_LOG_WARNING)
		return LOG_WARNING;
	return kinds & OPENDAT_LOG_ERROR ? LOG_ERR : LOG_INFO;
}

/*
 * Opens the file for one line, so that a file that was renamed or deleted gets no more of them, and
 * no descriptor is held that the program might close. A line that cannot go there goes to standard
 * error: the reason may be a lack of descriptors, which it may be about.
 */
static inline void opendat_log_put(const struct opendat_log *log, const char *line, size_t len)
{
	int fd = log->path ? open(log->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY,
				  S_IRUSR | S_IWUSR | S_IRGRP)
			   : -1;
	ssize_t count = write(fd >= 0 ? fd : STDERR_FILENO, line, len);

	(void)count; /* there is nobody to tell */
	if (fd >= 0)
		close(fd);
}

/* The system log stamps its lines itself, and has their severity. */
static inline void opendat_log_line(const struct opendat_log *log, const char *library,
				    unsigned int kinds, const char *text)
{
	int severity = opendat_log_severity(kinds);
	int pid = (int)getpid();
	struct timespec now;
	char line[1200];
	struct tm utc;
	int len;

	if (!log->path && log->destinations & OPENDAT_LOG_SYSLOG)
		syslog(severity, "%s[%d]: %s", library, pid, text);
	if (!log->path && !(log->destinations & OPENDAT_LOG_STDERR))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc); /* UTC: needs no file, and compares between hosts */
	len = snprintf(line, sizeof(line), "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ %s[%d]: %s%s\n",
		       utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
		       utc.tm_sec, now.tv_nsec / 1000, library, pid,
		       severity == LOG_ERR	 ? "error: "
		       : severity == LOG_WARNING ? "warning: "
						 : "",
		       text);
	if (len >= (int)sizeof(line)) {
		len = sizeof(line) - 1;
		line[len - 1] = '\n';
	}
	opendat_log_put(log, line, (size_t)len);
}

#endif
