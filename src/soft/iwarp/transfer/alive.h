// SPDX-License-Identifier: BSD-2-Clause
/*
 * Is the peer still there? TCP keepalive answers that for an idle connection. While bytes of ours
 * are not acknowledged, the service thread looks from time to time at what the kernel has heard
 * (IWCM-34). TCP_USER_TIMEOUT would do the same, but Linux applies it to a closed window, too,
 * although the peer answers every probe, and such a peer must be waited for (IWCM-35).
 */
#ifndef IWARP_ALIVE_H
#define IWARP_ALIVE_H

#include "core/base/settings.h"
#include "soft/iwarp/conn.h"

/* Sets the options of a socket by which the kernel notices that a peer is gone: 0 or -errno. */
int iw_alive_set_options(int fd, const struct core_settings *settings);
/* Bytes are on their way. EP locked. */
void iw_alive_begin(struct iw_conn *conn);
/*
 * Service thread, EP locked: a deadline has passed, of this or of something else. The connection is
 * lost if the peer has not answered for too long.
 */
void iw_alive_due(struct iw_conn *conn);
/* Has the peer's kernel acknowledged all that was sent? */
bool iw_alive_is_all_answered(const struct iw_conn *conn);

/* Bytes may be on their way. EP locked. */
static inline void iw_alive_sent(struct iw_conn *conn)
{
	if (!conn->alive.look_ns)
		iw_alive_begin(conn);
}

#endif
