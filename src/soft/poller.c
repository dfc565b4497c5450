// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel tells of the thread that polls (poller.h). */
#include "soft/poller.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STAT_SIZE 64u /* of the file; the state is behind the number and a short name */
#define NS_PER_S 1000000000u

__thread int32_t soft_poller_self CORE_TLS_FAST = -1;

/* The thread that calls fork has another number in the child. */
static void forget_self(void)
{
	soft_poller_self = -1;
}

static void poller_watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_self);
}

void soft_poller_set(struct soft_poller *poller)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (soft_poller_self < 0) {
		pthread_once(&once, poller_watch_forks);
		soft_poller_self = (int32_t)syscall(SYS_gettid);
	}
	atomic_store_explicit(&poller->id, soft_poller_self, memory_order_relaxed);
}

/* False: there is no such thread in this process. */
static bool read_cpu_time(int32_t id, uint64_t *ns_out)
{
	/* the kernel's name of that clock: the number inverted, per thread (4), scheduler's (2) */
	clockid_t clock = (clockid_t)(~(uint32_t)id << 3 | 4 | 2);
	struct timespec time;

	if (clock_gettime(clock, &time))
		return false;
	*ns_out = (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
	return true;
}

struct soft_poller_time soft_poller_time(const struct soft_poller *poller)
{
	struct soft_poller_time time = {
		.id = atomic_load_explicit(&poller->id, memory_order_relaxed)};

	if (time.id <= 0 || !read_cpu_time(time.id, &time.cpu_ns))
		time.id = 0;
	return time;
}

/* The state in /proc: "NUMBER (NAME) STATE ..."; NAME may contain parentheses. */
static bool is_runnable(int32_t id)
{
	char path[sizeof("/proc/self/task/-2147483648/stat")];
	const char *end = NULL;
	char text[STAT_SIZE];
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)id);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size = read(fd, text, sizeof(text));
	close(fd);
	if (size > 0)
		end = memrchr(text, ')', (size_t)size);
	return end && text + size - end > 2 && end[2] == 'R';
}

bool soft_poller_is_preempted(const struct soft_poller_time *since, uint64_t most_ns)
{
	uint64_t cpu_ns;

	return since->id && read_cpu_time(since->id, &cpu_ns) && cpu_ns - since->cpu_ns < most_ns &&
	       is_runnable(since->id);
}
