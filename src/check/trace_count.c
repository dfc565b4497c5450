// SPDX-License-Identifier: BSD-2-Clause
/* Counts by call and by endpoint, in the memory that dat_trace reads at the end. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check/report.h"
#include "check/trace.h"
#include "shared/trace.h"

_Static_assert(CHECK_CALL_COUNT <= OPENDAT_TRACE_CALLS, "each call has its counts");

/* Set once, by trace_count_init. NULL: nothing is counted. */
static struct opendat_trace_counts *counts;

void trace_count_init(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat status;
	void *at = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof(*counts))
		at = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (at != MAP_FAILED && ((struct opendat_trace_counts *)at)->magic == OPENDAT_TRACE_MAGIC)
		counts = at;
}

/* relaxed: they are sums, which dat_trace reads after the processes have ended */
static void add(_Atomic uint64_t *sum, uint64_t value)
{
	atomic_fetch_add_explicit(sum, value, memory_order_relaxed);
}

void trace_count_call(enum check_call_number number, DAT_RETURN result, uint64_t ns)
{
	if (!counts)
		return;
	add(&counts->calls[number].count, 1);
	/* an empty queue is no failure */
	add(&counts->calls[number].failed,
	    result != DAT_SUCCESS && DAT_GET_TYPE(result) != DAT_QUEUE_EMPTY);
	add(&counts->calls[number].ns, ns);
}

/* The entry of the endpoint; NULL: the table is full. */
static struct opendat_trace_ep *entry_of(const struct check_object *ep)
{
	uint64_t key = (uint64_t)getpid() << 32 | check_number(ep);

	for (unsigned i = 0; counts && i < OPENDAT_TRACE_EPS; i++) {
		struct opendat_trace_ep *entry = &counts->eps[(key + i) % OPENDAT_TRACE_EPS];
		uint64_t found = 0;

		/* relaxed: the entry has nothing but sums */
		if (atomic_compare_exchange_strong_explicit(
			    &entry->key, &found, key, memory_order_relaxed, memory_order_relaxed) ||
		    found == key)
			return entry;
	}
	return NULL;
}

void trace_count_posted(const struct check_object *ep, enum check_kind kind, uint64_t length)
{
	struct opendat_trace_ep *entry = entry_of(ep);

	if (!entry || kind == CHECK_RECV)
		return;
	add(kind == CHECK_SEND	  ? &entry->sends
	    : kind == CHECK_WRITE ? &entry->writes
	    : kind == CHECK_READ  ? &entry->reads
				  : &entry->binds,
	    1);
	if (kind == CHECK_SEND || kind == CHECK_WRITE)
		add(&entry->bytes_out, length);
}

void trace_count_completed(const struct check_object *ep, const struct check_request *request,
			   DAT_DTO_COMPLETION_STATUS status, uint64_t length)
{
	struct opendat_trace_ep *entry = entry_of(ep);

	if (!entry)
		return;
	if (status != DAT_DTO_SUCCESS) {
		add(&entry->failed, status != DAT_DTO_ERR_FLUSHED);
		return;
	}
	add(&entry->receives, request->kind == CHECK_RECV);
	if (request->kind == CHECK_RECV || request->kind == CHECK_READ)
		add(&entry->bytes_in, length);
}
