// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each test of the registry runs in a process of its own, because dat.conf is read once per
 * process. The test is a function that checks conditions with `must`. The first failed condition
 * ends the child, and the cmocka test that started it fails.
 */
#ifndef TESTS_REGISTRY_CHILD_H
#define TESTS_REGISTRY_CHILD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <dat/udat.h>

#include "../../lib/must.h"

#define CHILD_SECONDS_MAX 60
#define CHILD_SKIP 77

/* The call fails with exactly this type and subtype (GEN-09). */
#define must_fail(call, type, subtype)                                                             \
	must((call) == (DAT_CLASS_ERROR | (DAT_RETURN)(type) | (DAT_RETURN)(subtype)))

/* An emulator may be unable to execute a program of the machine that it emulates. */
static inline void child_exec_failed(void)
{
	int error = errno;

	fprintf(stderr, "the test's own program cannot be executed: %s\n", strerror(error));
	_exit(error == ENOEXEC ? CHILD_SKIP : 1);
}

static inline void child_run(void (*body)(void))
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(CHILD_SECONDS_MAX);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIP)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Makes this the text of the file that DAT_OVERRIDE names. No file remains. */
static inline void conf_set(const char *text)
{
	char path[64];
	int fd = memfd_create("dat.conf", 0);

	must(fd >= 0);
	must(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(setenv("DAT_OVERRIDE", path, 1) == 0);
}

/* As conf_set; each %s in the text is replaced with the path of this library. */
static inline void conf_set_library(const char *format, const char *library)
{
	char *text = calloc(1, strlen(format) + 16 * (strlen(library) + 1));
	char *out = text;

	must(text != NULL);
	for (; *format; format++) {
		if (format[0] == '%' && format[1] == 's') {
			out = stpcpy(out, library);
			format++;
		} else {
			*out++ = *format;
		}
	}
	conf_set(text);
	free(text);
}

/* The libraries that meson.build built. */
static inline const char *library_get(const char *variable)
{
	const char *path = getenv(variable);

	must(path != NULL);
	return path;
}

#endif
