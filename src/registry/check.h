// SPDX-License-Identifier: BSD-2-Clause
/*
 * The provider that checks. With DAT_CHECK in the environment every adapter that a program opens is
 * opened behind it.
 */
#ifndef REGISTRY_CHECK_H
#define REGISTRY_CHECK_H

#include "loader.h"

struct registry_check_name {
	char text[DAT_NAME_MAX_LENGTH];
};

/*
 * Changes the program's request into one for the adapter behind the provider that checks, whose name
 * is then in *made. When that provider opens the adapter below, in the same thread, the request
 * becomes that of the program, whatever the adapter is. Each call needs one of registry_check_end.
 */
#if REGISTRY_HAS_CHECK
void registry_check_begin(struct registry_request *request, struct registry_check_name *made);
void registry_check_end(void);
#else
static inline void registry_check_begin(struct registry_request *request,
					struct registry_check_name *made)
{
	(void)request;
	(void)made;
}
static inline void registry_check_end(void)
{
}
#endif

#endif
