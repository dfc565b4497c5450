// SPDX-License-Identifier: BSD-2-Clause
/* The processor time of the thread that polls (mark.h). */
#include "soft/mark.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define SET(word, value) atomic_store_explicit(&(word), value, memory_order_relaxed)

bool soft_mark_move(struct soft_mark *mark, uint64_t *used_ns)
{
	const int32_t id = (int32_t)syscall(SYS_gettid);
	struct rusage usage; /* whose times may be a tick old */
	struct timespec time;
	uint64_t cpu_ns;
	bool is_same;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) || getrusage(RUSAGE_THREAD, &usage)) {
		SET(mark->id, 0);
		return false;
	}
	cpu_ns = (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
	*used_ns = cpu_ns - GET(mark->cpu_ns);
	is_same = GET(mark->id) == id && GET(mark->sleeps) == usage.ru_nvcsw;
	SET(mark->id, id);
	SET(mark->cpu_ns, cpu_ns);
	SET(mark->sleeps, usage.ru_nvcsw);
	return is_same;
}
