// SPDX-License-Identifier: BSD-2-Clause
#include "refuse.h"
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

DAT_RETURN registry_bad_arg(const char *call, unsigned int number, const char *name,
			    const char *format, ...)
{
	char why[512];
	va_list list;

	va_start(list, format);
	vsnprintf(why, sizeof(why), format, list);
	va_end(list);
	registry_log(REGISTRY_LOG_ERROR, "%s: argument %u, %s: %s", call, number, name, why);
	return registry_error(DAT_INVALID_PARAMETER,
			      (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + number - 1));
}

DAT_RETURN registry_bad_handle(const char *call, const char *name, DAT_HANDLE handle,
			       DAT_RETURN_SUBTYPE subtype)
{
	registry_log(REGISTRY_LOG_ERROR, "%s: argument 1, %s: %s", call, name,
		     handle == DAT_HANDLE_NULL ? "DAT_HANDLE_NULL" : "no handle of a live object");
	return registry_error(DAT_INVALID_HANDLE, subtype);
}

struct registry_text registry_code_text(DAT_RETURN code)
{
	const char *type = NULL, *subtype = NULL;
	struct registry_text text;

	if (code == DAT_SUCCESS) /* its name is the empty text for dat_strerror */
		return (struct registry_text){"DAT_SUCCESS"};
	(void)dat_strerror(code, &type, &subtype);
	snprintf(text.text, sizeof(text.text), "%s%s%s", type, *subtype ? " " : "", subtype);
	return text;
}
