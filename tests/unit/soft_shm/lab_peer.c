// SPDX-License-Identifier: BSD-2-Clause
/* What the peer does in the lab of lab.h: its packets, its pool and its entries. */
#include "lab.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/fds.h"
#include "soft/key.h"
#include "soft/shm/state.h"

struct shm_conn *lab_make_far(struct lab *lab)
{
	int fd = fcntl(lab->peer_fd, F_DUPFD_CLOEXEC, 0);
	struct shm_conn *far;

	LAB_MUST(fd >= 0 && soft_fd_add(fd) == 0);
	LAB_MUST(shm_conn_create(&lab->engine, fd, SHM_ACTIVE, &far) == 0);
	LAB_MUST(shm_conn_map_segment(far, lab->conn->segment_fd) == 0);
	LAB_MUST(soft_view_get(soft_keys_fd(lab->adapter.keys), &far->remote.view) == 0);
	far->remote.pz = lab->pz.id;
	return far;
}

int lab_pool_file(size_t size, int seals)
{
	int fd = memfd_create("peer-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	LAB_MUST(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	LAB_MUST(!seals || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

void lab_peer_gives_pool(struct lab *lab)
{
	/* created once: fuzzers open thousands of labs in a second */
	static uint8_t *memory;
	static int fd;
	union shm_wire wire;

	if (!memory) {
		fd = lab_pool_file(SHM_POOL_SIZE, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
		memory = mmap(NULL, SHM_POOL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		LAB_MUST(memory != MAP_FAILED);
	}
	lab->peer_pool = memory;
	shm_wire_prepare(&wire, SHM_WIRE_POOL_GIVE);
	wire.pool.number = 0x77;
	memset(wire.pool.secret, 'p', sizeof(wire.pool.secret));
	shm_pool_given(lab->conn, &wire.pool, fd);
	LAB_MUST(lab_peer_packet(lab, &wire) == SHM_WIRE_POOL_HAVE);
	LAB_MUST(wire.pool.number == 0x77 && wire.pool.secret[SHM_TOKEN_SIZE - 1] == 'p');
}

/* Maps our pool as the peer would, and checks that the peer cannot write there. */
static void map_our_pool(struct lab *lab, int fd)
{
	if (lab->our_pool)
		munmap((void *)(uintptr_t)lab->our_pool, SHM_POOL_SIZE);
	lab->our_pool = mmap(NULL, SHM_POOL_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	LAB_MUST(lab->our_pool != MAP_FAILED);
	LAB_MUST(mmap(NULL, SHM_POOL_SIZE, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	LAB_MUST(write(fd, "x", 1) < 0 && ftruncate(fd, 0) < 0);
}

enum shm_wire_type lab_peer_packet(struct lab *lab, union shm_wire *wire_out)
{
	uint8_t bytes[sizeof(*wire_out)];
	struct iovec iov = {bytes, sizeof(bytes)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(SHM_WIRE_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;
	const ssize_t size = recvmsg(lab->peer_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd = -1;

	if (size <= 0)
		return 0;
	header = CMSG_FIRSTHDR(&message);
	if (header)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	LAB_MUST(shm_wire_decode(bytes, (size_t)size, fd >= 0, wire_out) == 0);
	LAB_MUST((fd >= 0) == (wire_out->head.type == SHM_WIRE_POOL_GIVE));
	if (wire_out->head.type == SHM_WIRE_POOL_NAME || fd >= 0)
		lab->offer = wire_out->pool;
	if (fd >= 0) {
		map_our_pool(lab, fd);
		close(fd);
	}
	return (enum shm_wire_type)wire_out->head.type;
}

void lab_peer_takes_pool(struct lab *lab)
{
	struct shm_wire_pool have = lab->offer;

	have.head.type = SHM_WIRE_POOL_HAVE;
	shm_pool_answered(lab->conn, &have);
}

bool lab_peer_entry(struct shm_producer *ring, struct shm_entry *entry, const void *payload)
{
	uint8_t *room;

	if (shm_producer_reserve(ring, entry->payload, &room) != 1)
		return false;
	if (payload)
		memcpy(room, payload, entry->payload);
	shm_producer_commit(ring, entry);
	return shm_producer_publish(ring);
}
