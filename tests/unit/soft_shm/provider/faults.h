// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls and allocations of the provider that fail on demand, one at a time. The calls of the
 * table in faults.c are replaced at link time (--wrap, see meson.build).
 */
#ifndef TESTS_SOFT_SHM_FAULTS_H
#define TESTS_SOFT_SHM_FAULTS_H

#include <stdbool.h>

enum fault_thread {
	FAULT_CALLER, /* calls of the thread that armed the fault */
	FAULT_OTHERS, /* calls of the service thread */
	FAULT_ANY,
};

/* The nth call by such a thread from now on fails with that errno; then no more. */
void fault_arm(const char *call, int nth, int error, enum fault_thread thread);
/* Disarms; returns whether a call has failed. */
bool fault_disarm(void);
/* For replacements in other files: does this call fail now? Then errno is set. */
bool fault_hits(const char *call);
/* Number of allocations that are not freed. */
int fault_live(void);

#endif
