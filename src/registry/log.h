// SPDX-License-Identifier: BSD-2-Clause
/*
 * Diagnostics. They are off unless the environment enables them (GEN-30): DAT_DBG_TYPE is a sum of
 * the values below, DAT_DBG_DEST is 1 for standard error (the default), 2 for the system log, or
 * the path of a file.
 */
#ifndef REGISTRY_LOG_H
#define REGISTRY_LOG_H

#include <stdbool.h>

enum registry_log_kind {
	REGISTRY_LOG_ERROR = 0x1, /* causes of failures, refused arguments */
	REGISTRY_LOG_CONF = 0x2,  /* the dat.conf that was read, and lines that were skipped */
	REGISTRY_LOG_LOAD = 0x4,  /* libraries loaded, initialised, finished */
	REGISTRY_LOG_IA = 0x8,	  /* registrations; instances opened and closed */

	REGISTRY_LOG_WARNING = 0x40000000, /* with one of these: nothing has failed */
};

/* Is one of the kinds selected? */
bool registry_log_has(unsigned int kinds);

/* `kinds`: a sum; the line is written if one of them is selected. */
__attribute__((cold, format(printf, 2, 3))) void registry_log(unsigned int kinds,
							      const char *format, ...);

/* Writes a warning, whatever is selected: for what the user has asked for in another way. */
__attribute__((cold)) void registry_log_warning(const char *text);

#endif
