// SPDX-License-Identifier: BSD-2-Clause
#include "log_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dt.h"

static int capture_fd = -1, stderr_fd = -1;
static char captured[65536];

static void restore(void)
{
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	stderr_fd = -1;
}

static void read_captured(void)
{
	const ssize_t len = pread(capture_fd, captured, sizeof(captured) - 1, 0);

	captured[len > 0 ? len : 0] = '\0';
}

/* A check that failed before log_end() has written its reason into the memory file. */
static void show_rest(void)
{
	if (stderr_fd < 0)
		return;
	read_captured();
	restore();
	fputs(captured, stderr);
}

void log_capture_start(void)
{
	setenv("DAT_DBG_TYPE", "1", 1);
	setenv("DAT_DBG_DEST", "1", 1);
	capture_fd = memfd_create("log", MFD_CLOEXEC);
	if (capture_fd < 0 || atexit(show_rest) != 0)
		abort();
}

void log_begin(void)
{
	show_rest();
	assert_int_equal(ftruncate(capture_fd, 0), 0);
	assert_int_equal(lseek(capture_fd, 0, SEEK_SET), 0);
	fflush(stderr);
	stderr_fd = dup(STDERR_FILENO);
	assert_true(stderr_fd >= 0);
	assert_int_equal(dup2(capture_fd, STDERR_FILENO), STDERR_FILENO);
}

const char *log_end(void)
{
	restore();
	read_captured();
	return captured;
}

/* Cuts the last line off the captured text and returns it without its stamp. */
static const char *cut_line(void)
{
	size_t len = strlen(captured);
	char *line, *text;

	if (!len)
		return captured;
	assert_int_equal(captured[len - 1], '\n');
	captured[len - 1] = '\0';
	line = strrchr(captured, '\n');
	text = strstr(line ? line : captured, "]: ");
	assert_non_null(text);
	if (line)
		line[1] = '\0';
	else
		captured[0] = '\0';
	text += strlen("]: ");
	return strncmp(text, "error: ", 7) == 0 ? text + 7 : text;
}

const char *log_last_line(void)
{
	(void)log_end();
	return cut_line();
}

const char *log_line_before(void)
{
	return cut_line();
}
