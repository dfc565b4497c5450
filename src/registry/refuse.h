// SPDX-License-Identifier: BSD-2-Clause
/*
 * Refusals of a call: each function logs the call, the parameter and what is wrong with it (kind
 * REGISTRY_LOG_ERROR), and composes the return code. They are called on cold paths only.
 */
#ifndef REGISTRY_REFUSE_H
#define REGISTRY_REFUSE_H

#include "api.h"

/* DAT_INVALID_PARAMETER; `number`: of the parameter, from 1. */
__attribute__((cold, noinline, format(printf, 4, 5))) DAT_RETURN
registry_bad_arg(const char *call, unsigned int number, const char *name, const char *format, ...);

/* DAT_INVALID_HANDLE of the first parameter */
__attribute__((cold, noinline)) DAT_RETURN registry_bad_handle(const char *call, const char *name,
							       DAT_HANDLE handle,
							       DAT_RETURN_SUBTYPE subtype);

/* The names of a return code, as one text. */
struct registry_text {
	char text[96];
};

struct registry_text registry_code_text(DAT_RETURN code);

#endif
