// SPDX-License-Identifier: BSD-2-Clause
#include "sweep.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACKS_LIMIT (64u * 1024u * 1024u) /* more than glibc keeps */

static long count_entries(const char *path)
{
	DIR *dir = opendir(path);
	long count = 0;

	if (!dir)
		return -1;
	for (struct dirent *entry; (entry = readdir(dir));)
		count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(dir);
	return count;
}

/*
 * KiB of the mappings that are anonymous or files in memory, without the heap and the stack of the
 * C library. Their number depends on which of them the kernel has merged.
 */
static long mapped_kib(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512];
	long sum = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		if ((strchr(line, '/') && !strstr(line, "/memfd:")) || strchr(line, '['))
			continue;
		if (sscanf(line, "%lx-%lx", &start, &end) == 2)
			sum += (long)((end - start) / 1024);
	}
	fclose(file);
	return sum;
}

/* A thread that was joined, or that ends by itself, may be listed for a while. */
static long count_threads(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	long count = 0;

	for (int i = 0; i < 5000; i++) {
		count = count_entries("/proc/self/task");
		if (count == 1)
			break;
		nanosleep(&pause, NULL);
	}
	return count;
}

static void *thread_end(void *unused)
{
	return unused;
}

/*
 * The C library keeps the stacks of ended threads, with a block of malloc each. Their number
 * depends on how many threads ran at the same time. glibc releases all of them when the stack of a
 * thread that ends exceeds its limit of 40 MiB.
 */
static void release_stacks(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACKS_LIMIT);
	if (pthread_create(&thread, &attr, thread_end, NULL) == 0)
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

void measure_take(struct sweep_measure *measure_out)
{
	measure_out->threads = count_threads();
	release_stacks();
	measure_out->blocks = alloc_blocks();
	measure_out->descriptors = count_entries("/proc/self/fd");
	measure_out->mapped_kib = mapped_kib();
	measure_out->files = count_entries(sweep_dir);
}
