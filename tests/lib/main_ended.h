// SPDX-License-Identifier: BSD-2-Clause
/* A process whose main thread has ended: /proc/self is that thread, and shows no mappings then. */
#ifndef TESTS_MAIN_ENDED_H
#define TESTS_MAIN_ENDED_H

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAIN_ENDED_SECONDS_MAX 60

static inline bool main_has_mappings(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char c;
	bool is_read = fd >= 0 && read(fd, &c, 1) == 1;

	if (fd >= 0)
		close(fd);
	return is_read;
}

struct main_ended {
	bool (*check)(void);
};

static inline void *main_ended_run(void *arg)
{
	const struct main_ended *ended = arg;

	while (main_has_mappings())
		sched_yield();
	_exit(ended->check() ? 0 : 1);
}

/* Does the check succeed in a child whose main thread has ended? */
static inline bool main_ended_check(bool (*check)(void))
{
	static struct main_ended ended;
	int status = -1;
	pthread_t thread;
	pid_t pid;

	ended.check = check;
	pid = fork();
	if (pid == 0) {
		alarm(MAIN_ENDED_SECONDS_MAX);
		if (pthread_create(&thread, NULL, main_ended_run, &ended))
			_exit(2);
		pthread_exit(NULL);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

#endif
