// SPDX-License-Identifier: BSD-2-Clause
/*
 * The public headers as the registry sees them: what they declare is exported, all else in the
 * library is hidden. Also the one composer of return codes.
 */
#ifndef REGISTRY_API_H
#define REGISTRY_API_H

#pragma GCC visibility push(default)
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <dat/opendat.h>

/* Exported for binaries of old; no public header declares it. */
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);
#pragma GCC visibility pop

static inline DAT_RETURN registry_error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype)
{
	return DAT_CLASS_ERROR | (DAT_RETURN)type | (DAT_RETURN)subtype;
}

#endif
