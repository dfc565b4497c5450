/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenDAT's extensions of uDAPL 1.2. They are not part of the specification, so a program that uses
 * them requires OpenDAT.
 */
#ifndef _OPENDAT_H_
#define _OPENDAT_H_

#include <dat/udat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calls: consumer notification objects ---- */

/*
 * Return a file descriptor that is readable while a CNO has a pending notification. It is for event
 * loops with poll, select or epoll.
 *
 * When it is readable, call dat_cno_wait with timeout 0 until it returns DAT_QUEUE_EMPTY, and take
 * all events of each EVD that it returns. This clears the descriptor.
 *
 * cno_handle [in]    the CNO
 * fd [out]           the descriptor, the same at every call. The library owns it and closes it
 *                    when the CNO is freed. Only wait for readability; do not read from it
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO: no live CNO
 *   DAT_INVALID_PARAMETER, fd: NULL
 *   DAT_MODEL_NOT_SUPPORTED: the provider is not one of OpenDAT's
 *   DAT_INSUFFICIENT_RESOURCES: no descriptor is available
 * Thread safe. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_cno_fd(DAT_CNO_HANDLE cno_handle, int *fd);

#ifdef __cplusplus
}
#endif

#endif
