// SPDX-License-Identifier: BSD-2-Clause
/*
 * The errors that the libraries log while an adapter is opened. They write to descriptor 2, which
 * is a pipe meanwhile. That takes two descriptors more than without.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "info.h"

#define LOG_KINDS "1" /* errors with their cause */
#define LOG_ROOM 16384u

static bool log_is_ours; /* the user does not want to see the log */
static int log_stderr = -1;
static int log_pipe = -1;

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
	int ends[2];

	if (!log_is_ours)
		return;
	fflush(stderr);
	/* a system that denies memory files has pipes; what does not fit is lost, which is much */
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	log_pipe = ends[0];
	log_stderr = dup(STDERR_FILENO);
	if (log_stderr >= 0)
		dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
}

/* The text of a line behind the name and number of the process. NULL: the line is of another kind.
 */
static char *log_text(char *line)
{
	static const char *const names[] = {"libdat[", "opendat["};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *name = strstr(line, names[i]);
		char *text = name ? strstr(name, "]: ") : NULL;

		if (!text)
			continue;
		text += strlen("]: ");
		return strncmp(text, "error: ", 7) == 0 ? text + 7 : text;
	}
	return NULL;
}

/* What is in the pipe. Returns its length. */
static ssize_t read_all(char *text, size_t room)
{
	size_t len = 0;
	ssize_t count;

	while (len < room && (count = read(log_pipe, text + len, room - len)) > 0)
		len += (size_t)count;
	close(log_pipe);
	log_pipe = -1;
	return (ssize_t)len;
}

/* Passes each line to the adapter, unless it opened. */
void info_log_end(struct info_adapter *adapter)
{
	static char text[LOG_ROOM];
	char *rest = text;
	ssize_t len;
	char *line;

	if (log_stderr >= 0)
		dup2(log_stderr, STDERR_FILENO);
	close(log_stderr);
	log_stderr = -1;
	len = log_pipe < 0 ? 0 : read_all(text, sizeof(text) - 1);
	text[len < 0 ? 0 : len] = '\0';
	while (adapter->open_code != DAT_SUCCESS && (line = strsep(&rest, "\n"))) {
		char *reason = log_text(line);

		/* the return code is printed anyway */
		if (reason && !strstr(reason, ": not opened: "))
			info_text_add(&adapter->reasons, "%s", reason);
	}
}
