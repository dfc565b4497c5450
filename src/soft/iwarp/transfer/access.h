// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the streams touch outside the engine: the socket, and memory that the peer reads and writes.
 *
 * The system calls of the data path are no cancellation points, unlike those of the C library
 * (core/base/cancel.h), which costs four atomic operations for each.
 */
#ifndef IWARP_ACCESS_H
#define IWARP_ACCESS_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/base/settings.h"
#include "soft/iwarp/conn.h"
#include "soft/key.h"
#include "soft/pins.h"

ssize_t iw_socket_recv(int fd, void *buffer, size_t size, int flags);
ssize_t iw_socket_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);

/* The bytes of one TCP segment; 0: unknown. */
uint32_t iw_socket_mss(int fd);

/* --- is the peer still there? --- */

/*
 * TCP keepalive answers that for an idle connection. While bytes of ours are not acknowledged, the
 * service thread looks from time to time at what the kernel has heard (IWCM-34). TCP_USER_TIMEOUT
 * would do the same, but Linux applies it to a closed window, too, although the peer answers every
 * probe, and such a peer must be waited for (IWCM-35).
 */

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

/* ==== memory: keys of ours, where the next bytes of a segment go, the CRC over it; EP locked ==== */

/* --- keys --- */

/*
 * Checks a key of ours for the peer, and delays dat_lmr_free until iw_key_end(), which follows in
 * every case. `right`: what it is used for. IW_NO_ERROR, or the error in the terms of RDMA
 * Writes (layer 1) or of Read Requests (layer 0).
 */
iw_error iw_key_begin(struct iw_conn *conn, struct core_ep *ep, uint32_t key, enum soft_right right,
		      uint64_t address, uint64_t length);
/* The same without a check. */
void iw_key_announce(struct iw_conn *conn, uint32_t key);
void iw_key_end(struct iw_conn *conn);

/* --- targets --- */

struct iw_target {
	struct soft_pins pins; /* Send, Read Response; of an RDMA Write the range alone */
	bool has_key;	       /* RDMA Write: a key of ours is announced */
};

/* A Send fills a Receive; any other segment fills a region, or the sink of a Read. */
static inline bool iw_segment_is_send(const struct iw_segment *segment)
{
	return !segment->ddp.is_tagged;
}

/* The Read that a Response belongs to; NULL: none is in flight. */
static inline struct iw_read *iw_oldest_read(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;

	return tx->read_count ? &tx->read[tx->read_first] : NULL;
}

/*
 * Finds the memory of the next `count` bytes and keeps it valid until iw_target_end, which must be
 * called in any case: IW_NO_ERROR, or the error.
 */
iw_error iw_target_begin(struct iw_conn *conn, struct core_ep *ep, const struct iw_segment *segment,
			 uint32_t count, struct iw_target *target);
void iw_target_end(struct iw_conn *conn, struct iw_target *target);
/* That many bytes are placed. */
void iw_target_advance(struct iw_conn *conn, struct iw_segment *segment, uint32_t count);

/* --- the CRC --- */

/* Continues a CRC over the first `len` bytes of pinned memory, which may have been unmapped: 0 or
 * -EFAULT. */
int iw_checksum_pins(const struct soft_pins *pins, size_t len, uint32_t *crc);

#endif
