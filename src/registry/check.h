// SPDX-License-Identifier: BSD-2-Clause
/*
 * The provider that checks. With DAT_CHECK in the environment every adapter that a program opens is
 * opened behind it. For a program of DAT 2.0 the log has one warning instead (CHECK-GEN-08).
 */
#ifndef REGISTRY_CHECK_H
#define REGISTRY_CHECK_H

#include "loader.h"

#include <stdlib.h>
#include <string.h>

/* Does the environment ask for one of the two things that the library does? */
static inline bool registry_check_is_on(void)
{
	static const char *const variables[] = {"DAT_CHECK", "DAT_TRACE"};

	for (unsigned i = 0; i < 2; i++) {
		const char *words = secure_getenv(variables[i]);

		if (words && *words && strcmp(words, "0") != 0)
			return true;
	}
	return false;
}

struct registry_check_name {
	char text[DAT_NAME_MAX_LENGTH];
};

/*
 * Changes the program's request into one for the adapter behind the provider that checks, whose name
 * is then in *made. When that provider opens the adapter below, in the same thread, the request
 * becomes that of the program, whatever the adapter is. Each call needs one of registry_check_end.
 */
void registry_check_begin(struct registry_request *request, struct registry_check_name *made);
void registry_check_end(void);

#endif
