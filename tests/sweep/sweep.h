// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fault sweep. A scenario runs in a forked child with one point in it failing: the n-th
 * allocation, or the n-th call of one system call with one errno, once or from then on. The child
 * then runs the scenario again without a fault, which must succeed in every step, and reports what
 * it holds; a child without a fault is the reference. The driver (sweep.c) increases n until the
 * scenario passes without reaching it.
 *
 *   alloc.c     replaces malloc and its relatives; counts the blocks that are not freed
 *   syscalls.c  the system calls and their errnos; a seccomp filter passes them to the driver
 *   scenario.c  the calls of the public API, with transfer.c
 *   step.c      what each of them may return under a fault
 *   world.c     what they find: settings, a registry file, a directory, a network, memory
 *   measure.c   descriptors, mappings, threads and memory of a process
 *   point.c     runs one point
 */
#ifndef TESTS_SWEEP_H
#define TESTS_SWEEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a process holds after the last adapter is closed. */
struct sweep_measure {
	long descriptors, threads, mapped_kib, blocks, files;
};

/* In memory that driver and child share. Written by the child unless a comment says otherwise. */
struct sweep_shared {
	atomic_bool is_armed; /* faults are counted and injected */
	atomic_uint calls; /* of the function under test while armed; the driver for system calls */
	atomic_uint fired; /* how many of these failed; as calls */
	atomic_bool is_in_loader;	/* inside dlopen */
	atomic_bool is_fired_in_loader; /* a failure was there */
	atomic_int listener;		/* the filter's descriptor, + 1 */
	atomic_bool is_supervised;	/* by the driver */
	bool is_again;			/* the run after the one with the fault */
	atomic_int line;		/* of the step that runs */
	const char *_Atomic function;	/* where that is; the same address in driver and child */
	int error;			/* of the point; the driver */
	bool is_stall; /* the fault looks as if the peer were stopped; the driver */
	struct sweep_measure measure;
	char message[256]; /* what is wrong, or empty */
};

extern struct sweep_shared *sweep;

/* One system call with the errnos to return. Without a `syscall` it is malloc. */
struct sweep_call {
	const char *name;
	int number;
	int errnos[4]; /* up to the first 0 */
	bool has_operation;
	unsigned operation_arg; /* with has_operation: only calls with this argument */
	uint64_t operation;
	bool leaks_descriptors; /* the failure is the leak: close */
	bool leaks_mappings;	/* the same: munmap */
	bool leaks_files;	/* the same: unlinkat */
};

extern const struct sweep_call sweep_calls[];
extern const unsigned sweep_call_count;
#define SWEEP_MALLOC (-1) /* number of the calls of malloc */

struct sweep_point {
	const struct sweep_scenario *scenario;
	const struct sweep_call *call;
	int error;
	unsigned n; /* counts from 1; 0: no fault */
	bool is_always;
};

/* --- scenario.c, world.c --- */

#define SWEEP_NETDEV "veth0" /* in the network of the scenarios with a directory */

/* The part of the scenario during which faults are injected. */
enum sweep_phase { SWEEP_OPEN, SWEEP_OBJECTS, SWEEP_CONNECT, SWEEP_TRANSFER, SWEEP_END };

struct sweep_scenario {
	const char *name;
	const char *copy;      /* DAT_COPY */
	const char *transport; /* DAT_TRANSPORT */
	enum sweep_phase phase;
	bool is_warm;  /* the process has run it once before */
	bool has_conf; /* a registry file defines the adapter */
	bool has_dir;  /* names in a directory, in a network of its own */
};

extern const struct sweep_scenario sweep_scenarios[];
extern const unsigned sweep_scenario_count;

void scenario_prepare(void); /* makes the memory of the consumer and the registry file */
extern char sweep_dir[];     /* the names of service points in the directory */
/* Removes what a child has left there. */
void scenario_clean(void);
/*
 * In the driver: false if the scenario needs a network namespace, which this process may not make.
 * Else the driver enters it, and stays there.
 */
bool scenario_is_possible(const struct sweep_scenario *scenario);
void scenario_environment(const struct sweep_scenario *scenario); /* in the child */
/* Writes to sweep->message if a step returned what it must not return. */
void scenario_run(const struct sweep_scenario *scenario, bool has_fault);

/* --- alloc.c --- */

void alloc_forked(void); /* in the child: counts from here */
void alloc_begin(const struct sweep_point *point);
long alloc_blocks(void); /* allocated since then and not freed */

/* --- syscalls.c --- */

/* Installs the filter in the child. False: the kernel or a sandbox forbids it. */
bool syscalls_filter(const struct sweep_call *call);
/* In the driver: the descriptor of the child's filter, or -1. */
int syscalls_take(pid_t child);
/* Answers one call. */
void syscalls_answer(int listener, const struct sweep_point *point);
const char *syscalls_errno_name(int error);

/* --- measure.c --- */

void measure_take(struct sweep_measure *measure_out);

/* --- point.c --- */

enum sweep_result {
	SWEEP_PASSED,
	SWEEP_NOT_REACHED,
	SWEEP_FAILED,
	SWEEP_BROKEN,	  /* even without a fault */
	SWEEP_IMPOSSIBLE, /* no fault can be injected */
};

/* Fails with a message in sweep->message. */
enum sweep_result point_run(const struct sweep_point *point);

#endif
