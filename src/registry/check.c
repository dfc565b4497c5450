// SPDX-License-Identifier: BSD-2-Clause
/* DAT_CHECK, and the handler of reports. */
#include "check.h"
#include "builtin.h"
#include "log.h"
#include "refuse.h"

#include "shared/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How deep this thread is in calls that open an adapter. */
static __thread unsigned int depth;
static __thread struct registry_request asked; /* by the program */
static __thread bool is_behind;		       /* the outermost call opens check:NAME */

static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER;
static DAT_OPENDAT_CHECK_HANDLER handler;
static DAT_PVOID handler_context;

/* Is the library installed, and the name not too long? */
static bool name_make(const char *name, struct registry_check_name *made)
{
	struct registry_builtin *builtin = malloc(sizeof(*builtin));
	bool is_found;

	snprintf(made->text, sizeof(made->text), "check:%.*s", (int)sizeof(made->text) - 7, name);
	is_found = builtin && registry_builtin_find(made->text, builtin) &&
		   strcmp(builtin->data, name) == 0;
	free(builtin);
	if (!is_found)
		registry_log(REGISTRY_LOG_ERROR,
			     "%s: DAT_CHECK or DAT_TRACE is set, and libdat-check.so.1 is not "
			     "installed",
			     name);
	return is_found;
}

void registry_check_begin(struct registry_request *request, struct registry_check_name *made)
{
	bool is_check = registry_builtin_is_check(request->name);

	if (depth++) {
		if (!is_behind)
			return;
		request->version_major = asked.version_major;
		request->version_minor = asked.version_minor;
		request->is_thread_safe = asked.is_thread_safe;
		return;
	}
	asked = *request;
	if (!is_check && registry_check_is_on() && name_make(request->name, made)) {
		request->name = made->text;
		is_check = true;
	}
	is_behind = is_check;
	if (is_check) { /* it is there for all, and the adapter below decides */
		request->version_major = DAT_VERSION_MAJOR;
		request->version_minor = DAT_VERSION_MINOR;
	}
}

void registry_check_end(void)
{
	depth--;
}

DAT_RETURN dat_opendat_check_handler(DAT_OPENDAT_CHECK_HANDLER function, DAT_PVOID context)
{
	if (!function)
		return registry_bad_arg("dat_opendat_check_handler", 1, "handler", "NULL");
	pthread_mutex_lock(&handler_lock);
	handler = function;
	handler_context = context;
	pthread_mutex_unlock(&handler_lock);
	return DAT_SUCCESS;
}

bool opendat_check_deliver(const DAT_OPENDAT_CHECK_REPORT *report)
{
	DAT_OPENDAT_CHECK_HANDLER function;
	DAT_PVOID context;

	pthread_mutex_lock(&handler_lock);
	function = handler;
	context = handler_context;
	pthread_mutex_unlock(&handler_lock);
	if (function)
		function(report, context);
	return function != NULL;
}
