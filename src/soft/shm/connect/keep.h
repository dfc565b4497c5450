// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a connection leaves to the next one between the same two engines: its socket and its
 * segment, which are expensive to create. Each side keeps its own end. The passive side sends IDLE
 * when none of its threads uses the segment any more, and waits for a request. The active side may
 * clear the segment and send a request when IDLE has arrived and none of its own threads uses the
 * segment either. So `revoked` is never reset while a copy is under way. A side that breaks this
 * rule harms only its own connection.
 *
 * The passive side refuses a request on a kept socket if the service point, or the user of a
 * process has changed; the active side then uses a new socket.
 */
#ifndef SHM_KEEP_H
#define SHM_KEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct shm_conn;
struct shm_engine;
struct shm_listener;
struct sockaddr_un;

/* Keeps socket and segment of a connection that is destroyed, if it ended in order. */
void shm_keep_conn(struct shm_conn *conn);
/* Active side: a connection object around a kept socket to that service point, or NULL. */
struct shm_conn *shm_keep_take(struct shm_engine *engine, const struct sockaddr_un *name,
			       socklen_t name_len);
/* Passive side: a request arrived; prepares the segment. -EAGAIN: the peer has to ask again on a
 * new socket. */
int shm_keep_resume(struct shm_conn *conn, const struct ucred *sender);
/* Passive side: stops waiting for a request; false: another thread has stopped it already. */
bool shm_keep_claim(struct shm_conn *conn);
/* Passive side: ends those of a service point that is destroyed (NULL: all). */
void shm_keep_drop_listener(struct shm_engine *engine, const struct shm_listener *listener);
/* Drops those whose time ended before `now` (UINT64_MAX: all). */
void shm_keep_expire(struct shm_engine *engine, uint64_t now);

#endif
