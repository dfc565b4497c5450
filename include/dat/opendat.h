/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extensions of OpenDAT to uDAPL 1.2. They are no part of the specification: a program that uses
 * them needs this library. Include <dat/udat.h> first, or this header alone.
 */
#ifndef _OPENDAT_H_
#define _OPENDAT_H_

#include <dat/udat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calls: consumer notification objects ---- */

/*
 * Give a file descriptor that is readable while a CNO keeps a notification. It is for loops
 * around poll, select or epoll.
 *
 * When it is readable, call dat_cno_wait with timeout 0 until it returns DAT_QUEUE_EMPTY, and take
 * the events of each EVD it names until that is empty: this clears the descriptor.
 *
 * cno_handle [in]    the CNO
 * fd [out]           the descriptor, the same at every call. It belongs to the library, which
 *                    closes it when the CNO is freed. Wait for readability only; do not read
 *                    from it
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO: no live CNO
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG2: NULL
 *   DAT_MODEL_NOT_SUPPORTED: the provider is none of OpenDAT's
 *   DAT_INSUFFICIENT_RESOURCES: no descriptor is left
 * Thread safe. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_cno_fd(DAT_CNO_HANDLE cno_handle, int *fd);

#ifdef __cplusplus
}
#endif

#endif
