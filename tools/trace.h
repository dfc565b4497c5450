// SPDX-License-Identifier: BSD-2-Clause
/* The summary of dat_trace. */
#ifndef TOOLS_TRACE_H
#define TOOLS_TRACE_H

#include <stdio.h>

#include "shared/trace.h"

/* In the order of the counts; the last one is NULL. */
extern const char *const trace_call_names[];

/* The calls, those that took longest first. */
void trace_print_calls(FILE *out, const struct opendat_trace_counts *counts);
/* The endpoints that have transferred something, those of each process together. */
void trace_print_eps(FILE *out, const struct opendat_trace_counts *counts);

#endif
