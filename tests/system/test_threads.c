// SPDX-License-Identifier: BSD-2-Clause
/* The names of the threads of the library, as top(1), gdb and perf show them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cno_util.h"

#define THREADS_MAX 64

struct names {
	char name[THREADS_MAX][16];
	unsigned int count;
};

/*
 * The threads that are not the library's: the main thread, and one of a sanitizer's runtime. They
 * are a set, because the numbers of threads start again from the lowest at some time.
 */
static int others[THREADS_MAX];
static unsigned int other_count;

static bool is_other(int thread)
{
	for (unsigned int i = 0; i < other_count; i++)
		if (others[i] == thread)
			return true;
	return false;
}

/*
 * The thread sanitizer starts a thread of its own with the first of the program, which may not be
 * among `others`. It has the name of the program.
 */
static bool is_of_runtime(const char *name)
{
#ifdef __SANITIZE_THREAD__
	return strncmp(name, program_invocation_short_name, 15) == 0;
#else
	(void)name;
	return false;
#endif
}

/* The names of all threads of the library. A thread that ends meanwhile is left out. */
static struct names names_read(void)
{
	struct names names = {.count = 0};
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		char path[320];
		ssize_t len;
		int fd;

		if (entry->d_name[0] == '.' || is_other(atoi(entry->d_name)))
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		assert_true(names.count < THREADS_MAX);
		len = read(fd, names.name[names.count], 16);
		close(fd);
		if (len <= 0)
			continue;
		names.name[names.count][len - 1] = '\0';
		if (!is_of_runtime(names.name[names.count]))
			names.count++;
	}
	closedir(folder);
	return names;
}

static bool has_name(const struct names *names, const char *name)
{
	for (unsigned int i = 0; i < names->count; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

static bool all_are_named(void)
{
	struct names names = names_read();

	for (unsigned int i = 0; i < names.count; i++)
		if (strncmp(names.name[i], "dat-", 4) != 0)
			return false;
	return names.count > 0;
}

static void ia_open__threads__have_names(void **state)
{
	struct dt_listener listener;
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	dt_listen(&ia, &listener); /* over TCP: starts the thread */
	assert_true(all_are_named());
	dt_ia_abort(&ia);
}

static void agent__first__thread_has_a_name(void **state)
{
	struct cno_agent agent = {.body = NULL};
	struct names names;
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	(void)cno_agent_create(&ia, &agent);
	cno_agent_arm(&agent);
	names = names_read();
	assert_true(has_name(&names, "dat-agent"));
	assert_true(all_are_named());
	cno_agent_disarm(&agent);
	dt_ia_abort(&ia);
}

static void transport_tcp__both_engines__have_names(void **state)
{
	struct dt_listener listener;
	struct names names;
	struct dt_ia ia;

	(void)state;
	if (strncmp(dt_adapter(), "soft-", 5) != 0)
		skip();
	assert_int_equal(setenv("DAT_TRANSPORT", "tcp", 1), 0);
	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	names = names_read();
	assert_true(has_name(&names, "dat-shm") && has_name(&names, "dat-tcp"));
	assert_true(all_are_named());
	dt_ia_abort(&ia);
	unsetenv("DAT_TRANSPORT");
}

/* Runs before the library makes a thread. */
static int find_others(void **state)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;

	(void)state;
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		assert_true(other_count < THREADS_MAX);
		others[other_count++] = atoi(entry->d_name);
	}
	closedir(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__threads__have_names),
		cmocka_unit_test(agent__first__thread_has_a_name),
		cmocka_unit_test(transport_tcp__both_engines__have_names),
	};

	return cmocka_run_group_tests(tests, find_others, NULL);
}
