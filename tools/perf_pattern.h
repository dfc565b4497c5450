// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the bytes of a transfer are under --check: they depend on its number and on the offset, so
 * that neither an old transfer nor a shifted one passes.
 */
#ifndef TOOLS_PERF_PATTERN_H
#define TOOLS_PERF_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

void perf_pattern_fill(unsigned char *data, uint64_t size, uint64_t number);
bool perf_pattern_is(const unsigned char *data, uint64_t size, uint64_t number);

#endif
