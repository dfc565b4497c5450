// SPDX-License-Identifier: BSD-2-Clause
/*
 * Diagnostics. They are off unless the environment enables them (GEN-30): DAT_DBG_TYPE is a sum of
 * the values below, DAT_DBG_DEST is 1 for standard error (the default) or 2 for the system log.
 */
#ifndef REGISTRY_LOG_H
#define REGISTRY_LOG_H

enum registry_log_kind {
	REGISTRY_LOG_ERROR = 0x1, /* the cause of a failure that its return code does not give */
	REGISTRY_LOG_CONF = 0x2,  /* the dat.conf that was read, and lines that were skipped */
	REGISTRY_LOG_LOAD = 0x4,  /* libraries loaded, initialised, finished */
	REGISTRY_LOG_IA = 0x8,	  /* registrations; instances opened and closed */
};

__attribute__((format(printf, 2, 3))) void registry_log(enum registry_log_kind kind,
							const char *format, ...);

#endif
