// SPDX-License-Identifier: BSD-2-Clause
/* Checks a condition in a process of the test's own: ends the process with status 1 if it fails. */
#ifndef TESTS_MUST_H
#define TESTS_MUST_H

#include <stdio.h>
#include <unistd.h>

#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,          \
				#condition);                                                       \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#endif
