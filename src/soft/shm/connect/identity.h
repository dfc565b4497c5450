// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who the peer is. SO_PEERCRED shows a caller as it was when it called connect, and a listener as
 * it was when it called listen; either may have given up its user since. So a peer is trusted
 * only after a proof of the present: the kernel's credentials of its REQUEST or ACCEPT name
 * the same process and our user, and all ids of that process are ours, in /proc/PID/status, while a
 * descriptor of the process shows that the number is still its own.
 */
#ifndef SHM_IDENTITY_H
#define SHM_IDENTITY_H

#include <stdbool.h>
#include <sys/socket.h>

struct shm_conn;
struct transport_peer;

/*
 * Does the kernel keep other processes of the user from the memory of this one (PR_SET_DUMPABLE)?
 * Then it shares no memory with them either.
 */
bool shm_process_is_protected(void);

/* Asks the kernel who has called or listens: fills remote.peer, pid and process; trusts nobody. */
void shm_identify(struct shm_conn *conn);
/*
 * Is the process at the other end of our user, and of no other one, right now? Fills
 * remote.is_proven and is_trusted. sender: of the packet that has arrived, NULL if none has.
 */
void shm_identity_prove(struct shm_conn *conn, const struct ucred *sender);
/* Does the setting `peers` forbid the peer, as far as it has proven who it is? */
bool shm_identity_is_barred(const struct shm_conn *conn);
/* The slot `peer`: asks the kernel once more. */
void shm_identity_tell(const struct shm_conn *conn, struct transport_peer *peer_out);
/* Nothing but rings is shared with the peer from now on. */
void shm_identity_distrust(struct shm_conn *conn);
/* Was the packet sent by the process, user and group that sent the REQUEST or ACCEPT? */
bool shm_identity_is_same(const struct shm_conn *conn, const struct ucred *sender);

#endif
