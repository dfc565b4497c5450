// SPDX-License-Identifier: BSD-2-Clause
/*
 * Diagnostics of the providers, off unless the environment asks for them (GEN-30): DAT_DBG_TYPE
 * says what, as a sum of libdat's values and those below; DAT_DBG_DEST where to: 1 standard error
 * (the default), 2 the system log. Never called on the data path.
 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

enum core_log_kind {
	CORE_LOG_ERROR = 0x1,	/* a call failed for a reason that its code does not tell */
	CORE_LOG_CONN = 0x10,	/* set-up, end and loss of connections */
	CORE_LOG_MEMORY = 0x20, /* waits for peers, mappings, copy paths */
};

__attribute__((format(printf, 2, 3))) void core_log(unsigned int kinds, const char *format, ...);

#endif
