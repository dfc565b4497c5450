// SPDX-License-Identifier: BSD-2-Clause
/* Event dispatchers. */
#ifndef CHECK_EVD_H
#define CHECK_EVD_H

#include <dat/udat.h>

struct check_object;

/* The object of an EVD; NULL: memory is exhausted. */
struct check_object *check_evd_make(const char *maker, struct check_object *ia,
				    DAT_EVD_HANDLE inner);

#endif
