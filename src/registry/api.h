// SPDX-License-Identifier: BSD-2-Clause
/*
 * Includes the public headers of the front so that the library exports what they declare and hides
 * everything else. Include them through this header only. registry_error() composes a return code.
 */
#ifndef REGISTRY_API_H
#define REGISTRY_API_H

#include "front_1.h"

#pragma GCC visibility push(default)
/* Old binaries and providers import it, although no public header declares it. */
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);
#pragma GCC visibility pop

static inline DAT_RETURN registry_error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype)
{
	return DAT_CLASS_ERROR | (DAT_RETURN)type | (DAT_RETURN)subtype;
}

#endif
