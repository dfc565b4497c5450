// SPDX-License-Identifier: BSD-2-Clause
/* What libdat.so.1 does for libdat-check.so.1 alone. */
#ifndef SHARED_CHECK_H
#define SHARED_CHECK_H

#include <stdbool.h>

#include <dat/opendat.h>

/* Gives a report to the program's handler (dat_opendat_check_handler). False: it has none. */
__attribute__((visibility("default"))) bool
opendat_check_deliver(const DAT_OPENDAT_CHECK_REPORT *report);

#endif
