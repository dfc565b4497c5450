// SPDX-License-Identifier: BSD-2-Clause
/*
 * The local socket of a connection: packets and descriptors out and in, epoll, and the process at
 * the other end.
 */
#ifndef SHM_SOCKET_H
#define SHM_SOCKET_H

#include <errno.h>
#include <stdbool.h>

#include "soft/shm/conn.h"
#include "soft/shm/bytes/wire.h"

/* Did a call fail because descriptors or memory are short? */
static inline bool shm_is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/* A packet that was received and checked. */
struct shm_packet {
	union shm_wire wire;
	int fds[SHM_WIRE_FDS_MAX]; /* -1: it did not come */
	unsigned fd_count;
	struct ucred sender; /* by the kernel; pid 0: not known here; uid -1: it has not told */
};

/* Receives one packet without waiting: 1, 0 at the end of the socket, -EAGAIN, -EPROTO. */
int shm_packet_receive(struct shm_conn *conn, struct shm_packet *packet);
/* Closes the descriptors that are left in the packet. */
void shm_packet_close_fds(struct shm_packet *packet);

/* Sends one packet without waiting, with descriptors; 0 or -errno. */
int shm_conn_send(struct shm_conn *conn, const union shm_wire *wire, const int *fds,
		  unsigned count);
int shm_conn_send_word(struct shm_conn *conn, enum shm_wire_type type, uint32_t word);

/* Has the kernel say who sent each packet. A listening socket passes that on. */
void shm_socket_name_senders(int fd);

/* Adds the socket to the epoll set of the engine, or removes it if it is there. */
int shm_conn_epoll_add(struct shm_conn *conn);
void shm_conn_epoll_remove(struct shm_conn *conn);

/* Has the peer's end of the socket been closed? The kernel does so after the last copy of a process
 * that dies. */
bool shm_conn_has_hung_up(const struct shm_conn *conn);
#endif
