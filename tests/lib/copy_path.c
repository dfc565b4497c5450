// SPDX-License-Identifier: BSD-2-Clause
/* The copy paths that the bytes took; see the header. */
#include "copy_path.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAPPING_S 20 /* the longest wait for the first mapping */

/* In memory that the program shares with the processes that it forks. */
static struct {
	pid_t program;
	_Atomic uint64_t map, cma, ring;
} * noted;

__attribute__((constructor)) static void copy_path_begin(void)
{
	void *p;

	if (!getenv("OPENDAT_TEST_BYTES"))
		return;
	p = mmap(NULL, sizeof(*noted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		abort();
	noted = p;
	noted->program = getpid();
}

typedef void (*counters_fn)(DAT_HANDLE handle, struct copy_path_counts *counts_out);

/* The provider is loaded when an instance is open. */
static counters_fn find_counters(void)
{
	void *library = dlopen("libdat-soft.so.1", RTLD_NOLOAD | RTLD_LAZY);
	counters_fn counters = NULL;

	if (!library)
		return NULL;
	*(void **)&counters = dlsym(library, "opendat_test_counters");
	dlclose(library);
	return counters;
}

bool copy_path_read(DAT_HANDLE handle, struct copy_path_counts *counts_out)
{
	counters_fn counters = find_counters();

	if (counters)
		counters(handle, counts_out);
	return counters;
}

void copy_path_note(DAT_HANDLE handle)
{
	struct copy_path_counts counts;
	DAT_HANDLE_TYPE type;

	if (!noted || dat_get_handle_type(handle, &type) != DAT_SUCCESS ||
	    !copy_path_read(handle, &counts))
		return;
	noted->map += counts.map;
	noted->cma += counts.cma;
	noted->ring += counts.ring;
}

bool copy_path_awaits_mapping(DAT_HANDLE handle)
{
	static time_t give_up;
	const char *path = getenv("DAT_COPY");
	counters_fn counters = noted ? find_counters() : NULL;
	struct copy_path_counts counts;

	if (!counters || !path || strcmp(path, "map") != 0)
		return false;
	if (!give_up)
		give_up = time(NULL) + MAPPING_S;
	counters(handle, &counts);
	return !counts.map && time(NULL) < give_up;
}

/* --- the check --- */

/* A ptrace restriction or a seccomp filter may forbid it. */
static bool may_copy_by_kernel(void)
{
	char from[] = "a", to[] = "b";
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		const struct iovec local = {to, 1}, remote = {from, 1};

		_exit(process_vm_readv(getppid(), &local, 1, &remote, 1, 0) != 1);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* RDMA that took another path than `path`; without a path, all of it. */
static uint64_t count_others(const char *path)
{
	if (strcmp(path, "map") == 0)
		return noted->ring;
	if (strcmp(path, "cma") == 0)
		return noted->map + noted->ring;
	if (strcmp(path, "ring") == 0)
		return noted->map + noted->cma;
	if (strcmp(path, "auto") == 0)
		return 0;
	return noted->map + noted->cma + noted->ring;
}

/* RDMA that took that path. Until a region is mapped, the kernel copies instead. */
static uint64_t count_own(const char *path, const char *bytes)
{
	if (strcmp(path, "ring") == 0)
		return noted->ring;
	if (strcmp(path, "cma") == 0)
		return noted->cma;
	if (strcmp(path, "auto") == 0)
		return noted->map + noted->cma + noted->ring;
	return strcmp(bytes, "mapped") == 0 ? noted->map : noted->map + noted->cma;
}

void copy_path_skip(void)
{
	unsetenv("OPENDAT_TEST_BYTES");
}

static bool is_as_declared(const char *path, const char *bytes)
{
	const bool has_path = strcmp(bytes, "mapped") == 0 || strcmp(bytes, "brief") == 0;

	if (strcmp(bytes, "sends") == 0 || strcmp(bytes, "none") == 0)
		return count_others("") == 0;
	return count_others(path) == 0 && (!has_path || count_own(path, bytes));
}

/* After main: a program that passed all its tests fails here. */
__attribute__((destructor)) static void copy_path_check(void)
{
	const char *bytes = getenv("OPENDAT_TEST_BYTES");
	const char *path = getenv("DAT_COPY");

	if (!noted || getpid() != noted->program || !bytes)
		return;
	if (!path)
		path = "";
	if (is_as_declared(path, bytes))
		return;
	if (strcmp(path, "ring") != 0 && !may_copy_by_kernel()) {
		fprintf(stderr, "copy path not checked: the kernel forbids process_vm_readv\n");
		return;
	}
	fprintf(stderr,
		"error: copy path '%s', bytes '%s': RDMA %" PRIu64 " mapped, %" PRIu64
		" by the kernel, %" PRIu64 " by the ring\n",
		path, bytes, noted->map, noted->cma, noted->ring);
	fflush(NULL);
	_exit(1);
}
