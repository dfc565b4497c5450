// SPDX-License-Identifier: BSD-2-Clause
#include "core/base/refuse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/base/handle.h"
#include "core/base/log.h"
#include "core/base/status.h"

static void refuse(const struct core_arg *arg, const char *why)
{
	core_log(CORE_LOG_ERROR, "%s: argument %u, %s: %s", arg->call, arg->number, arg->name, why);
}

static DAT_RETURN bad_arg(const struct core_arg *arg)
{
	return core_error(DAT_INVALID_PARAMETER,
			  (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + arg->number - 1));
}

DAT_RETURN core_bad_arg(const struct core_arg *arg, const char *format, ...)
{
	char why[256];
	va_list list;

	if (core_log_has(CORE_LOG_ERROR)) {
		va_start(list, format);
		vsnprintf(why, sizeof(why), format, list);
		va_end(list);
		refuse(arg, why);
	}
	return bad_arg(arg);
}

DAT_RETURN core_bad_null(const struct core_arg *arg)
{
	refuse(arg, "NULL");
	return bad_arg(arg);
}

DAT_RETURN core_bad_bits(const struct core_arg *arg, uint64_t value, uint64_t known)
{
	return core_bad_arg(arg, "0x%" PRIx64 " has bits other than 0x%" PRIx64, value, known);
}

DAT_RETURN core_bad_range(const struct core_arg *arg, int64_t value, int64_t min, int64_t max)
{
	return core_bad_arg(arg, "%" PRId64 " is not from %" PRId64 " to %" PRId64, value, min,
			    max);
}

DAT_RETURN core_bad_handle(const struct core_arg *arg, DAT_RETURN_SUBTYPE subtype,
			   DAT_HANDLE handle)
{
	struct core_name name = core_handle_name(handle);
	char why[128];

	if (handle == DAT_HANDLE_NULL)
		refuse(arg, "DAT_HANDLE_NULL");
	else if (!name.text[0])
		refuse(arg, "no handle of a live object");
	else {
		snprintf(why, sizeof(why),
			 "%s has another type than required, belongs to another instance, or does "
			 "not fit",
			 name.text);
		refuse(arg, why);
	}
	return core_error(DAT_INVALID_HANDLE, subtype);
}

DAT_RETURN core_check_query(const struct core_arg *mask_arg, uint64_t mask, uint64_t known,
			    const struct core_arg *param_arg, const void *param)
{
	if (mask & ~known)
		return core_bad_bits(mask_arg, mask, known);
	return param ? DAT_SUCCESS : core_bad_null(param_arg);
}

DAT_RETURN core_unsupported(const struct core_arg *arg, const char *what)
{
	refuse(arg, what);
	return core_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
}
