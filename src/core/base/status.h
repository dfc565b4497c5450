// SPDX-License-Identifier: BSD-2-Clause
/* Return codes: how they are composed, and the only translation from errno. Refused arguments are
 * in refuse.h. */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

#include <errno.h>

#include <dat/udat.h>

#include "core/base/refuse.h"

static inline DAT_RETURN core_error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype)
{
	return (DAT_RETURN)DAT_CLASS_ERROR | (DAT_RETURN)type | (DAT_RETURN)subtype;
}

static inline DAT_RETURN core_no_resources(DAT_RETURN_SUBTYPE subtype)
{
	return core_error(DAT_INSUFFICIENT_RESOURCES, subtype);
}

/* The return code for a transport's negative errno. */
static inline DAT_RETURN core_status_from_errno(int error)
{
	switch (-error) {
	case 0:
		return DAT_SUCCESS;
	case EDOM: /* of connect: the qualifier, parameter 3 of dat_ep_connect */
		return core_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	case EADDRINUSE:
		return core_error(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE);
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
		return core_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	case ENETUNREACH:
	case EHOSTUNREACH:
		return core_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	case EOPNOTSUPP:
		return core_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	case EMFILE:
	case ENFILE:
	case ENODEV:
		return core_no_resources(DAT_RESOURCE_DEVICE);
	case ENOMEM:
	case ENOSPC:
	case ENOBUFS:
	case EAGAIN:
	case EFBIG: /* RLIMIT_FSIZE, which also limits memory files */
		return core_no_resources(DAT_RESOURCE_MEMORY);
	default:
		return core_error(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	}
}

#endif
