// SPDX-License-Identifier: BSD-2-Clause
/* Diagnostics: their kinds, destinations and format. Each case runs in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "core/base/log.h"

/* shared with the children */
static struct {
	char text[1024]; /* the last message to syslog */
	int priority;
} * logged;
static unsigned int message_kinds = CORE_LOG_ERROR;

void __wrap_syslog(int priority, const char *format, ...);
void __wrap___syslog_chk(int priority, int flag, const char *format, ...);

void __wrap_syslog(int priority, const char *format, ...)
{
	va_list list;

	logged->priority = priority;
	va_start(list, format);
	vsnprintf(logged->text, sizeof(logged->text), format, list);
	va_end(list);
}

/* With _FORTIFY_SOURCE, the compiler calls this one. */
void __wrap___syslog_chk(int priority, int flag, const char *format, ...)
{
	va_list list;

	(void)flag;
	logged->priority = priority;
	va_start(list, format);
	vsnprintf(logged->text, sizeof(logged->text), format, list);
	va_end(list);
}

/* Runs a process with these variables and returns what it wrote to standard error. */
static void run(const char *kinds, const char *dest, const char *message, char *out, size_t size)
{
	FILE *file = tmpfile();
	size_t len;
	int status;
	pid_t pid;

	assert_non_null(file);
	logged->text[0] = '\0';
	pid = fork();
	if (!pid) {
		dup2(fileno(file), STDERR_FILENO);
		if (kinds)
			setenv("DAT_DBG_TYPE", kinds, 1);
		if (dest)
			setenv("DAT_DBG_DEST", dest, 1);
		core_log(message_kinds, "adapter %s: %d", message, 7);
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rewind(file);
	len = fread(out, 1, size - 1, file);
	out[len] = '\0';
	fclose(file);
}

/* GEN-30 */
static void log__no_variable_or_other_kinds__silent(void **state)
{
	char text[1024], others[32];

	(void)state;
	run(NULL, NULL, "a", text, sizeof(text));
	assert_string_equal(text, "");
	snprintf(others, sizeof(others), "0x%lx", 0xffffffffUL & ~(unsigned long)CORE_LOG_ERROR);
	run(others, "3", "a", text, sizeof(text));
	assert_string_equal(text, "");
	assert_string_equal(logged->text, "");
}

/* The time in UTC, then library and process. */
static void check_stamp(const char *text)
{
	struct tm utc = {0};
	int micros, pid, end = 0;

	assert_int_equal(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ opendat[%d]: %n", &utc.tm_year,
				&utc.tm_mon, &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec,
				&micros, &pid, &end),
			 8);
	assert_true(end > 0);
	utc.tm_year -= 1900;
	utc.tm_mon--;
	assert_true(llabs((long long)(timegm(&utc) - time(NULL))) < 600);
}

static void log__kind_selected__one_line_per_destination(void **state)
{
	char text[1024];

	(void)state;
	run("0xffffffff", NULL, "a", text, sizeof(text));
	assert_non_null(strstr(text, "]: error: adapter a: 7\n"));
	check_stamp(text);
	assert_string_equal(logged->text, "");
	run("0xffffffff", "2", "b", text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(strncmp(logged->text, "opendat[", 8),
			 0); /* the system log has its own stamp */
	assert_non_null(strstr(logged->text, "]: adapter b: 7"));
	run("0xffffffff", "3", "c", text, sizeof(text));
	assert_non_null(strstr(text, "]: error: adapter c: 7\n"));
	assert_non_null(strstr(logged->text, "]: adapter c: 7"));
}

/* The message is truncated, and still ends in a newline. */
static void log__longer_than_a_line__truncated(void **state)
{
	char text[2048], message[1500];

	(void)state;
	memset(message, 'x', sizeof(message) - 1);
	message[sizeof(message) - 1] = '\0';
	run("0xffffffff", "1", message, text, sizeof(text));
	assert_true(strlen(text) > 400 && strlen(text) < 600);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* Each message has its own severity, in the system log, too. */
static void log__severity__in_the_line_and_the_system_log(void **state)
{
	static const struct {
		unsigned int kinds;
		int severity;
		const char *word;
	} cases[] = {
		{CORE_LOG_ERROR, LOG_ERR, "error: "},
		{CORE_LOG_CONN | CORE_LOG_ERROR, LOG_ERR, "error: "},
		{CORE_LOG_ERROR | CORE_LOG_WARNING, LOG_WARNING, "warning: "},
		{CORE_LOG_CONN, LOG_INFO, ""},
	};
	char text[1024], expected[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		message_kinds = cases[i].kinds;
		run("63", "3", "a", text, sizeof(text));
		snprintf(expected, sizeof(expected), "]: %sadapter a: 7\n", cases[i].word);
		assert_non_null(strstr(text, expected));
		assert_int_equal(logged->priority & LOG_PRIMASK, cases[i].severity);
		assert_int_equal(logged->priority & LOG_FACMASK, 0); /* the program's own */
		assert_non_null(strstr(logged->text, "]: adapter a: 7"));
	}
	/* a warning is no kind of its own */
	message_kinds = CORE_LOG_CONN | CORE_LOG_WARNING;
	run("0x40000001", "1", "a", text, sizeof(text));
	assert_string_equal(text, "");
	message_kinds = CORE_LOG_ERROR;
}

/* --- a file --- */

static void read_file(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t len;

	assert_non_null(file);
	len = fread(text, 1, size - 1, file);
	text[len] = '\0';
	fclose(file);
}

/* Writes a line, renames the file as logrotate does, and writes another one. */
static void log_and_rotate(const char *path, const char *old)
{
	setenv("DAT_DBG_TYPE", "1", 1);
	setenv("DAT_DBG_DEST", path, 1);
	core_log(CORE_LOG_ERROR, "before");
	if (rename(path, old) != 0)
		_exit(1);
	core_log(CORE_LOG_ERROR, "after");
	_exit(0);
}

static void log__file_renamed__next_line_in_a_new_file(void **state)
{
	char folder[] = "/tmp/opendat-log-XXXXXX", path[64], old[64], text[1024];
	int status;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/log", folder);
	snprintf(old, sizeof(old), "%s/log.1", folder);
	pid = fork();
	if (!pid)
		log_and_rotate(path, old);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	read_file(old, text, sizeof(text));
	check_stamp(text);
	assert_non_null(strstr(text, "]: error: before\n"));
	assert_null(strstr(text, "after"));
	read_file(path, text, sizeof(text));
	assert_non_null(strstr(text, "]: error: after\n"));
	assert_null(strstr(text, "before"));
	assert_int_equal(remove(path) | remove(old) | remove(folder), 0);
}

static void log__file_cannot_be_opened__standard_error(void **state)
{
	char text[1024];

	(void)state;
	run("1", "/nonexistent/log", "a", text, sizeof(text));
	assert_non_null(strstr(text, "]: error: adapter a: 7\n"));
}

static int setup(void **state)
{
	(void)state;
	logged = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return logged == MAP_FAILED;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log__no_variable_or_other_kinds__silent),
		cmocka_unit_test(log__kind_selected__one_line_per_destination),
		cmocka_unit_test(log__longer_than_a_line__truncated),
		cmocka_unit_test(log__severity__in_the_line_and_the_system_log),
		cmocka_unit_test(log__file_renamed__next_line_in_a_new_file),
		cmocka_unit_test(log__file_cannot_be_opened__standard_error),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
