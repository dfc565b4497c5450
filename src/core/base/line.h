// SPDX-License-Identifier: BSD-2-Clause
/* Memory that begins at a cache line, for objects whose members are grouped by line. */
#ifndef CORE_LINE_H
#define CORE_LINE_H

#include <stddef.h>

#define CORE_LINE 64u

/* Zeroed memory for that many objects. NULL: no memory. */
void *core_line_alloc(size_t count, size_t size);
/* p may be NULL. */
void core_line_free(void *p);

#endif
