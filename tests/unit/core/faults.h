// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fault injection: makes one allocation, thread creation or eventfd of the core fail. The calls are
 * replaced at link time (--wrap, see meson.build).
 */
#ifndef TESTS_UNIT_CORE_FAULTS_H
#define TESTS_UNIT_CORE_FAULTS_H

#include <stdbool.h>

#include <dat/udat.h>

struct faults {
	int allocation;	  /* 1: the next allocation fails, 2: the one after it, ...; 0: none */
	bool thread;	  /* pthread_create fails */
	bool eventfd;	  /* eventfd fails */
	_Atomic int live; /* allocations not freed yet; atomic: an agent's thread frees, too */
};

extern struct faults faults;

void faults_clear(void); /* stops all faults */
/*
 * Calls `make` with its allocation 1, 2, ... failing, until it succeeds. Checks that each failure
 * returns DAT_INSUFFICIENT_RESOURCES and leaks nothing. Then calls `undo`.
 */
void faults_each(DAT_RETURN (*make)(void), void (*undo)(void));
/* faults_each for a call that changes an object. Calls `check` after each failure. */
void faults_each_unchanged(DAT_RETURN (*change)(void), void (*check)(void));

#endif
