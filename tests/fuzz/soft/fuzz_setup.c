// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets from a stranger: what decodes must be exactly what was sent and within its limits; and in
 * the middle of a set-up any packet leads to a connection or to the end of the attempt. The first
 * byte says how many descriptors come along and at what point of the set-up the packet arrives.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void in_set_up(const union shm_wire *wire, enum shm_state state, unsigned fd_choice)
{
	struct lab *lab = lab_open(CORE_COPY_AUTO, false);
	/* a key table, or something that is none */
	int fd = fd_choice & 1 ? soft_keys_fd(lab->peer_keys) : lab->peer_fd;
	const int fds[SHM_WIRE_FDS_MAX] = {fd, fd};
	struct shm_conn *conn = lab->conn;

	/* the bench gives it a table of the peer; here that comes with the packet */
	soft_view_put(conn->remote.view);
	conn->remote.view = NULL;
	shm_conn_set_state(conn, state);
	shm_conn_get(conn);
	if (shm_setup_answer(conn, &lab->ep, wire, fds) < 0)
		shm_conn_fail_setup(conn, &lab->ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	shm_conn_put(conn);
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
	if (wire.head.type == SHM_WIRE_READY && (choice & 4))
		return 0; /* needs the table that an arriving request has brought */
	in_set_up(&wire, SHM_REQUESTED, choice >> 3);
	return 0;
}
