// SPDX-License-Identifier: BSD-2-Clause
/*
 * Diagnostics, off unless the environment asks for them (GEN-30): DAT_DBG_TYPE says what, as a sum
 * of the values below, DAT_DBG_DEST where to: 1 standard error (the default), 2 the system log.
 */
#ifndef REGISTRY_LOG_H
#define REGISTRY_LOG_H

enum registry_log_kind {
	REGISTRY_LOG_ERROR = 0x1, /* a call failed for a reason that its code does not tell */
	REGISTRY_LOG_CONF = 0x2,  /* which dat.conf was read, and which of its lines were skipped */
	REGISTRY_LOG_LOAD = 0x4,  /* libraries loaded, initialised, finished */
	REGISTRY_LOG_IA = 0x8,	  /* registrations, adapters opened and closed */
};

__attribute__((format(printf, 2, 3))) void registry_log(enum registry_log_kind kind,
							const char *format, ...);

#endif
