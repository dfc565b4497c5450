// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets of a hostile peer. A packet that is accepted must be exactly what was sent and within its
 * limits; in the middle of a set-up, any packet leads to a connection or to the end of the attempt;
 * packets about pools arrive on a connection. The first byte chooses how many descriptors come with
 * the packet, of what kind, and when it arrives.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/identity.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/state.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/transfer/pool.h"
#include "soft/shm/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void in_set_up(const union shm_wire *wire, enum shm_state state, unsigned fd_choice)
{
	struct lab *lab = lab_open(CORE_COPY_AUTO, false);
	struct shm_conn *conn = lab->conn;
	struct shm_packet packet = {.wire = *wire, .fd_count = SHM_WIRE_FDS_MAX};

	/* a segment and a key table, or something else */
	packet.fds[0] = dup(fd_choice & 1 ? conn->segment_fd : lab->peer_fd);
	packet.fds[1] = fd_choice & 2	? dup(soft_keys_fd(lab->peer_keys))
			: fd_choice & 4 ? dup(lab->peer_fd)
					: -1;
	/* the lab gives it a segment and a table of the peer; here the packet brings them */
	shm_identify(conn);
	if (fd_choice & 8)
		packet.sender = conn->remote.peer;
	conn->remote.sender = conn->remote.peer;
	shm_identity_prove(conn, &conn->remote.sender);
	if (state == SHM_REQUESTED) {
		munmap(conn->segment, sizeof(*conn->segment));
		conn->segment = NULL;
		atomic_store(&conn->has_segment, false);
	} else { /* the acceptor has made the segment, and the packet brings the table alone */
		close(packet.fds[0]);
		packet.fds[0] = packet.fds[1];
		packet.fds[1] = -1;
	}
	shm_conn_set_state(conn, state);
	shm_conn_get(conn);
	if (shm_setup_answer(conn, &lab->ep, &packet) < 0)
		shm_conn_fail_setup(conn, &lab->ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	shm_packet_close_fds(&packet);
	shm_conn_put(conn);
	lab_close(lab);
}

/*
 * Packets about pools: with any content the connection continues, and releases its pools at its
 * end.
 */
static void on_connection(const union shm_wire *wire, unsigned choice)
{
	struct lab *lab = lab_open(CORE_COPY_RING, false);
	union shm_wire ours;
	int fd;

	if (choice & 1)
		lab_peer_gives_pool(lab);
	if (choice & 2)
		lab_post(lab, CORE_OP_SEND, 0, SHM_PIECE, 0, 0);
	if (choice & 4)
		(void)lab_peer_packet(lab, &ours);
	switch (wire->head.type) {
	case SHM_WIRE_POOL_NAME:
		shm_pool_named(lab->conn, &wire->pool);
		break;
	case SHM_WIRE_POOL_GIVE:
		fd = lab_pool_file(SHM_POOL_SIZE, choice & 8 ? F_SEAL_GROW : F_SEAL_SHRINK);
		if (choice & 16)
			assert(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ==
			       0);
		shm_pool_given(lab->conn, &wire->pool, fd);
		assert((lab->conn->bulk.in != NULL) == !!(choice & 16));
		close(fd);
		break;
	default:
		shm_pool_answered(lab->conn, &wire->pool);
	}
	lab_pass(lab);
	assert(lab_is_open(lab));
	lab_close(lab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union shm_wire wire;
	uint8_t choice;

	if (!size)
		return 0;
	choice = data[0];
	data++;
	size--;
	if (shm_wire_decode(data, size, choice & 3, &wire) < 0)
		return 0;
	assert(shm_wire_size(&wire) == size);
	assert(memcmp(&wire, data, size) == 0);
	if (wire.head.type == SHM_WIRE_REQUEST)
		assert(wire.request.private_size <= SHM_PRIVATE_MAX);
	if (wire.head.type >= SHM_WIRE_POOL_NAME && wire.head.type <= SHM_WIRE_POOL_HAVE) {
		on_connection(&wire, choice >> 2);
		return 0;
	}
	in_set_up(&wire, choice & 4 ? SHM_ACCEPTED : SHM_REQUESTED, choice >> 3);
	return 0;
}
