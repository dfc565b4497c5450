// SPDX-License-Identifier: BSD-2-Clause
/* DAT_CHECK in a program of DAT 2.0: the provider that checks has no table of that generation. */
#include "check.h"
#include "log.h"

#include <pthread.h>

static void say_unchecked(void)
{
	if (registry_check_is_on())
		registry_log_warning("DAT_CHECK or DAT_TRACE is set, and calls of DAT 2.0 are "
				     "neither checked nor traced");
}

void registry_check_begin(struct registry_request *request, struct registry_check_name *made)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)request;
	(void)made;
	pthread_once(&once, say_unchecked);
}

void registry_check_end(void)
{
}
