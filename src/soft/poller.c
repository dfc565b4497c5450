// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel tells of the thread that polls (poller.h). */
#include "soft/poller.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shared/fd.h"

#define STAT_SIZE 64u /* of the file; the state is behind the number and a short name */
#define NS_PER_S 1000000000u

static bool read_cpu_time(clockid_t clock, uint64_t *ns_out)
{
	struct timespec time;

	if (clock_gettime(clock, &time))
		return false;
	*ns_out = (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
	return true;
}

void soft_poller_store(struct soft_poller *poller)
{
	int32_t id = (int32_t)syscall(SYS_gettid);
	uint64_t cpu_ns;

	if (!read_cpu_time(CLOCK_THREAD_CPUTIME_ID, &cpu_ns))
		id = 0;
	else
		atomic_store_explicit(&poller->cpu_ns, cpu_ns, memory_order_relaxed);
	atomic_store_explicit(&poller->id, id, memory_order_relaxed);
}

bool soft_mark_move(struct soft_mark *mark, uint64_t *used_ns)
{
	int32_t id = atomic_load_explicit(&mark->at.id, memory_order_relaxed);
	uint64_t cpu_ns = atomic_load_explicit(&mark->at.cpu_ns, memory_order_relaxed);
	int64_t sleeps = atomic_load_explicit(&mark->sleeps, memory_order_relaxed);
	struct rusage usage; /* whose times may be a tick old */

	soft_poller_store(&mark->at);
	if (getrusage(RUSAGE_THREAD, &usage))
		return false;
	atomic_store_explicit(&mark->sleeps, usage.ru_nvcsw, memory_order_relaxed);
	*used_ns = atomic_load_explicit(&mark->at.cpu_ns, memory_order_relaxed) - cpu_ns;
	return id && id == atomic_load_explicit(&mark->at.id, memory_order_relaxed) &&
	       sleeps == usage.ru_nvcsw;
}

void soft_poller_clear(struct soft_poller *poller)
{
	atomic_store_explicit(&poller->id, 0, memory_order_relaxed);
}

/* The kernel's name of that clock: the number inverted, per thread (4), the scheduler's (2). */
static clockid_t clock_of(int32_t id)
{
	return (clockid_t)(~(uint32_t)id << 3 | 4 | 2);
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
	fd = opendat_fd_move(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return false;
	size = read(fd, text, sizeof(text));
	close(fd);
	if (size > 0)
		end = memrchr(text, ')', (size_t)size);
	return end && text + size - end > 2 && end[2] == 'R';
}

bool soft_poller_is_preempted(const struct soft_poller *poller, uint64_t most_ns)
{
	int32_t id = atomic_load_explicit(&poller->id, memory_order_relaxed);
	uint64_t before = atomic_load_explicit(&poller->cpu_ns, memory_order_relaxed);
	uint64_t cpu_ns;

	return id && read_cpu_time(clock_of(id), &cpu_ns) && cpu_ns - before < most_ns &&
	       is_runnable(id);
}
