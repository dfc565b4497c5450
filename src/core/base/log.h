// SPDX-License-Identifier: BSD-2-Clause
/*
 * Diagnostics of the providers, off by default (GEN-30). DAT_DBG_TYPE selects the kinds: a sum of
 * the values of libdat and those below. DAT_DBG_DEST selects the destination: 1 standard error (the
 * default), 2 the system log, or a file. Never called on the data path.
 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdbool.h>

enum core_log_kind {
	CORE_LOG_ERROR = 0x1,	/* causes of failures, refused arguments, broken connections */
	CORE_LOG_CONN = 0x10,	/* connections set up, ended and lost */
	CORE_LOG_MEMORY = 0x20, /* waits for peers, mappings, copy paths */

	/* with one of these: nothing has failed, also if it is shown among the errors */
	CORE_LOG_WARNING = 0x40000000,
};

/* Is one of the kinds logged? For text that costs something to compose. */
bool core_log_has(unsigned int kinds);

__attribute__((cold, format(printf, 2, 3))) void core_log(unsigned int kinds, const char *format,
							  ...);

#endif
