// SPDX-License-Identifier: BSD-2-Clause
/* Do the threads of the library sleep? */
#ifndef TESTS_QUIET_H
#define TESTS_QUIET_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "dt.h"

#define QUIET_THREADS_MAX 32

struct quiet_thread {
	long id;
	unsigned long switches; /* how often it has gone to sleep or was preempted */
	bool is_asleep;
};

struct quiet_threads {
	struct quiet_thread list[QUIET_THREADS_MAX];
	size_t count;
};

/* Those that ran before the adapter was opened are not the library's. */
static struct quiet_threads quiet_before;

static inline bool quiet_read_thread(long id, struct quiet_thread *thread)
{
	char path[64], line[256], state;
	unsigned long count;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/status", id);
	file = fopen(path, "re");
	if (!file)
		return false;
	*thread = (struct quiet_thread){.id = id};
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "State: %c", &state) == 1)
			thread->is_asleep = state == 'S';
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %lu", &count) == 1)
			thread->switches += count;
	}
	fclose(file);
	return true;
}

static inline bool quiet_is_of_before(long id)
{
	for (size_t i = 0; i < quiet_before.count; i++)
		if (quiet_before.list[i].id == id)
			return true;
	return false;
}

static inline void quiet_read(struct quiet_threads *threads)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;

	assert_non_null(tasks);
	threads->count = 0;
	while ((entry = readdir(tasks)) != NULL) {
		const long id = strtol(entry->d_name, NULL, 10);

		if (id <= 0 || quiet_is_of_before(id))
			continue;
		assert_true(threads->count < QUIET_THREADS_MAX);
		threads->count += quiet_read_thread(id, &threads->list[threads->count]);
	}
	closedir(tasks);
}

/* Notes the threads that are not the library's. Call it before an adapter is opened. */
static inline void quiet_begin(void)
{
	quiet_before.count = 0;
	quiet_read(&quiet_before);
}

/* What was seen when some thread ran last. */
struct quiet_watch {
	struct quiet_threads last;
	uint64_t since_us;
	uint64_t quiet_us;
};

static inline bool quiet_have_slept(const struct quiet_threads *threads,
				    const struct quiet_threads *last)
{
	if (threads->count != last->count)
		return false;
	for (size_t i = 0; i < threads->count; i++)
		if (!threads->list[i].is_asleep || threads->list[i].id != last->list[i].id ||
		    threads->list[i].switches != last->list[i].switches)
			return false;
	return true;
}

/* A thread that runs all the time is never asleep, however little it gets of a busy processor. */
static inline bool quiet_is_so(void *arg)
{
	struct quiet_watch *watch = arg;
	struct quiet_threads now;

	quiet_read(&now);
	assert_int_not_equal(now.count, 0);
	if (quiet_have_slept(&now, &watch->last))
		return dt_now_us() - watch->since_us >= watch->quiet_us;
	watch->last = now;
	watch->since_us = dt_now_us();
	return false;
}

/* Waits until no thread of the library has run for that long: until all wait for an event. */
static inline void quiet_await(uint64_t quiet_us)
{
	struct quiet_watch watch = {.quiet_us = quiet_us};

	dt_until(quiet_is_so, &watch);
}

#endif
