// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks which copy path the RDMA of a program took. The provider silently takes another path if
 * the one that DAT_COPY names is not possible; a program that runs for one copy path must fail
 * then. The check needs the test build of the soft provider (counters.c) and the environment
 * variable OPENDAT_TEST_BYTES, which says how the program moves bytes:
 *
 *   mapped    RDMA by the copy path; with DAT_COPY=map at least one RDMA uses a mapping
 *   brief     RDMA by the copy path, but too briefly for a mapping to be made in time
 *   refused   RDMA for the copy path, but all of it is refused
 *   sends     only in Sends, which take the ring on every copy path
 *   none      not at all
 *
 * With DAT_COPY=auto any path will do. Without either variable there is no check. The counts of
 * child processes are included, unless they were killed.
 */
#ifndef TESTS_COPY_PATH_H
#define TESTS_COPY_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include <dat/udat.h>

/* RDMA that an instance has started, by the way its bytes move. */
struct copy_path_counts {
	uint64_t map, cma, ring;
};

/* Exported by the test build of the soft provider: the counts of the instance of that object. */
void opendat_test_counters(DAT_HANDLE handle, struct copy_path_counts *counts_out);

/* Reads them; false: this is not the test build. */
bool copy_path_read(DAT_HANDLE handle, struct copy_path_counts *counts_out);

/* Adds the counts of an instance that is about to be closed; any object that it owns will do. */
void copy_path_note(DAT_HANDLE handle);

/* With DAT_COPY=map, memory is mapped some time after its first use: does the instance wait for the
 * first mapping still? No after 20 seconds. */
bool copy_path_awaits_mapping(DAT_HANDLE handle);

/* The tests that move the bytes are skipped: nothing is checked. */
void copy_path_skip(void);

#endif
