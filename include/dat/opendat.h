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

/*
 * Gives a file descriptor that is readable while a notification object keeps a trigger, for loops
 * around poll, select or epoll.
 *
 * cno_handle [in]   a notification object
 * fd [out]          the descriptor; it belongs to the library, is the same at every call, and is
 * closed when the object is freed. Wait for readability only; do not read from it.
 *
 * When it is readable, call dat_cno_wait with timeout 0 until it returns DAT_QUEUE_EMPTY, and take
 * the events of each event dispatcher it names until that is empty: this clears the descriptor.
 *
 * Returns DAT_SUCCESS; DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO; DAT_INVALID_PARAMETER /
 * DAT_INVALID_ARG2 when fd is NULL; DAT_INSUFFICIENT_RESOURCES when there is no descriptor left;
 * DAT_MODEL_NOT_SUPPORTED when the object's provider is not one of OpenDAT's.
 * Thread safe; does not block.
 */
extern DAT_RETURN dat_opendat_cno_fd(DAT_CNO_HANDLE cno_handle, int *fd);

/* What DAT_PROVIDER.extension of our providers points to. For libdat itself. */
#define OPENDAT_EXTENSION_MAGIC 0x0da7e87eu

struct opendat_extension {
	DAT_UINT32 magic;
	DAT_UINT32 size; /* of this structure: later versions add members at the end */
	DAT_RETURN (*cno_fd_func)(DAT_CNO_HANDLE cno_handle, int *fd);
};

#ifdef __cplusplus
}
#endif

#endif
