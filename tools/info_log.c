// SPDX-License-Identifier: BSD-2-Clause
/*
 * The errors that the libraries log while an adapter is opened. They write to descriptor 2, which
 * is a file in memory meanwhile. That takes one descriptor more than without.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"
#include "info.h"

#define LOG_KINDS "1" /* errors with their cause */
#define LOG_ROOM 16384u

static bool log_is_ours; /* the user does not want to see the log */
static int log_stderr = -1;

void info_log_enable(void)
{
	log_is_ours = getenv("DAT_DBG_TYPE") == NULL;
	if (log_is_ours) {
		setenv("DAT_DBG_TYPE", LOG_KINDS, 1);
		setenv("DAT_DBG_DEST", "1", 1);
	}
}

void info_log_begin(void)
{
	int fd;

	if (!log_is_ours)
		return;
	fflush(stderr);
	fd = memfd_create("dat_info", MFD_CLOEXEC);
	if (fd < 0)
		return;
	log_stderr = dup(STDERR_FILENO);
	if (log_stderr >= 0)
		dup2(fd, STDERR_FILENO);
	close(fd);
}

/* The text of a line behind the name and number of the process. NULL: the line is of another kind.
 */
static char *log_text(char *line)
{
	static const char *const names[] = {"libdat[", "opendat["};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *name = strstr(line, names[i]);
		char *text = name ? strstr(name, "]: ") : NULL;

		if (text)
			return text + 3;
	}
	return NULL;
}

/* Passes each line to the adapter, unless it opened. */
void info_log_end(struct info_adapter *adapter)
{
	static char text[LOG_ROOM];
	char *rest = text;
	ssize_t len;
	char *line;

	if (log_stderr < 0)
		return;
	len = pread(STDERR_FILENO, text, sizeof(text) - 1, 0);
	dup2(log_stderr, STDERR_FILENO);
	close(log_stderr);
	log_stderr = -1;
	text[len < 0 ? 0 : len] = '\0';
	while (adapter->open_code != DAT_SUCCESS && (line = strsep(&rest, "\n"))) {
		char *reason = log_text(line);

		/* the return code is printed anyway */
		if (reason && !strstr(reason, ": not opened: "))
			info_text_add(&adapter->reasons, "%s", reason);
	}
}
