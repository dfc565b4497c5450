// SPDX-License-Identifier: BSD-2-Clause
/*
 * Faults on demand, one at a time: allocations, threads and event descriptors of the core, whose
 * calls are replaced at link time (--wrap, see meson.build).
 */
#ifndef TESTS_UNIT_CORE_FAULTS_H
#define TESTS_UNIT_CORE_FAULTS_H

#include <stdbool.h>

#include <dat/udat.h>

struct faults {
	int allocation; /* the allocation from now on that fails; 0: none */
	bool thread;	/* pthread_create fails */
	bool eventfd;
	_Atomic int live; /* allocations that are not freed; an agent's thread frees too */
};

extern struct faults faults;

void faults_clear(void); /* nothing fails any more */
/*
 * Runs the call with its allocation 1, 2, ... failing until it succeeds: each failure is told as
 * DAT_INSUFFICIENT_RESOURCES and leaves nothing behind. Then `undo` takes the success back.
 */
void faults_each(DAT_RETURN (*make)(void), void (*undo)(void));
/* The same for a call that changes something: `check` finds everything as it was. */
void faults_each_unchanged(DAT_RETURN (*change)(void), void (*check)(void));

#endif
