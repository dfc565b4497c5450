// SPDX-License-Identifier: BSD-2-Clause
/* Values of options that are lists, separated by commas. */
#ifndef BENCH_LIST_H
#define BENCH_LIST_H

#include <stdint.h>

#define LIST_MAX 32u

struct list_numbers {
	uint64_t values[LIST_MAX];
	unsigned count;
};

/* Numbers from `min` to `max`, as tool_parse_number() reads them. 0 or -EINVAL. */
int list_numbers(const char *text, uint64_t min, uint64_t max, struct list_numbers *list_out);
/* Some of the names, which end with NULL, as a set of bits. 0 or -EINVAL. */
int list_names(const char *text, const char *const *names, unsigned *set_out);

#endif
