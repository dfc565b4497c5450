// SPDX-License-Identifier: BSD-2-Clause
/* What the peer does in the lab of lab.h: its packets, its polls and its entries. */
#include "lab.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "soft/fds.h"
#include "soft/key.h"
#include "soft/shm/socket.h"
#include "soft/shm/state.h"
#include "soft/shm/connect/dir.h"
#include "soft/shm/connect/setup.h"

#define ZONE 9u /* of the peer's memory */

/* --- packets --- */

void lab_peer_send(struct lab *lab, union shm_wire *wire, const int *fds, unsigned count)
{
	struct iovec iov = {wire, shm_wire_size(wire)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {.bytes = {0}};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, count * sizeof(int));
	}
	LAB_MUST(sendmsg(lab->peer_fd, &message, MSG_NOSIGNAL) == (ssize_t)iov.iov_len);
}

enum shm_wire_type lab_peer_packet(struct lab *lab, union shm_wire *wire_out)
{
	uint8_t bytes[sizeof(*wire_out)];
	const ssize_t size = recv(lab->peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (size <= 0)
		return 0;
	LAB_MUST(shm_wire_decode(bytes, (size_t)size, 0, wire_out) == 0);
	return (enum shm_wire_type)wire_out->head.type;
}

/* --- set-up --- */

void lab_fill_side(const struct lab_form *form, struct shm_wire_side *side)
{
	static const uint8_t token[SHM_TOKEN_SIZE] = "the peer's own";

	memcpy(side->token, token, sizeof(token));
	side->token_address = form->has_cma ? (uintptr_t)token : 0;
	side->port = 1;
	side->read_in = form->reads ? form->reads : 2;
	side->read_out = 2;
	side->pz = ZONE;
}

void lab_peer_calls(struct lab *lab, DAT_CONN_QUAL qual, const struct lab_form *form)
{
	static struct shm_dir dir = {.fd = -1}; /* opened once, like the tables of keys */
	char name[SHM_DIR_NAME_MAX];
	union shm_wire wire;

	if (dir.fd < 0)
		LAB_MUST(shm_dir_open("", &lab->ia.address, &dir) == 0);
	shm_dir_name(&dir, &lab->ia.address, qual, name);
	lab->peer_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	LAB_MUST(lab->peer_fd >= 0 && shm_dir_connect(&dir, lab->peer_fd, name) == 0);
	shm_wire_prepare(&wire, SHM_WIRE_REQUEST);
	wire.request.qual = qual;
	wire.request.family = AF_INET;
	lab_fill_side(form, &wire.request.side);
	lab_peer_send(lab, &wire, NULL, 0);
}

/* Receives the answer. The first descriptor is that of the segment. */
static void take_answer(struct lab *lab)
{
	union shm_wire wire;
	struct iovec iov = {&wire, sizeof(wire)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(SHM_WIRE_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int fds[SHM_WIRE_FDS_MAX];
	size_t count;

	LAB_MUST(recvmsg(lab->peer_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) > 0);
	LAB_MUST(wire.head.type == SHM_WIRE_ACCEPT && message.msg_controllen);
	count = (control.align.cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(&control.align), count * sizeof(int));
	lab->segment_fd = fds[0];
	while (count > 1)
		close(fds[--count]);
}

static void map_rings(struct lab *lab)
{
	struct shm_segment *segment;

	segment = mmap(NULL, sizeof(*segment), PROT_READ | PROT_WRITE, MAP_SHARED, lab->segment_fd,
		       0);
	LAB_MUST(segment != MAP_FAILED);
	lab->segment = segment;
	lab->peer = &segment->side[SHM_ACTIVE];
	lab->own = &segment->side[SHM_PASSIVE];
	shm_producer_init(&lab->peer_out, segment->request[SHM_ACTIVE], SHM_REQUEST_RING,
			  &segment->side[SHM_PASSIVE].request_consumed);
	shm_producer_init(&lab->peer_answers, segment->response[SHM_ACTIVE], SHM_RESPONSE_RING,
			  &segment->side[SHM_PASSIVE].response_consumed);
	shm_consumer_init(&lab->peer_in, segment->request[SHM_PASSIVE], SHM_REQUEST_RING,
			  &lab->peer->request_consumed);
	shm_consumer_init(&lab->peer_answers_in, segment->response[SHM_PASSIVE], SHM_RESPONSE_RING,
			  &lab->peer->response_consumed);
}

void lab_peer_is_ready(struct lab *lab)
{
	int keys_fd = soft_keys_fd(lab->peer_keys);
	union shm_wire wire;

	take_answer(lab);
	map_rings(lab);
	shm_wire_prepare(&wire, SHM_WIRE_READY);
	lab_peer_send(lab, &wire, &keys_fd, 1);
}

void lab_peer_leaves(struct lab *lab)
{
	if (lab->segment)
		munmap(lab->segment, sizeof(*lab->segment));
	if (lab->segment_fd >= 0)
		close(lab->segment_fd);
	if (lab->peer_fd >= 0)
		close(lab->peer_fd);
}

struct shm_conn *lab_make_far(struct lab *lab)
{
	const struct shm_packet hello = {
		.sender = {.pid = getpid(), .uid = geteuid(), .gid = getegid()}};
	const struct shm_wire_side side = {.pz = lab->pz.id};
	int fd = fcntl(lab->peer_fd, F_DUPFD_CLOEXEC, 0);
	struct shm_conn *far;

	LAB_MUST(fd >= 0);
	soft_fd_begin();
	LAB_MUST(soft_fd_end(fd) == fd);
	LAB_MUST(shm_conn_create(lab->engine, fd, &far) == 0);
	shm_identity_learn(far, &hello);
	shm_setup_learn_side(far, &side);
	LAB_MUST(shm_setup_take_keys(far, soft_keys_fd(lab->adapter.keys)) == 0);
	LAB_MUST(shm_conn_map_segment(far, lab->segment_fd) == 0);
	return far;
}

/* --- polls and entries --- */

void lab_peer_polled_at(struct lab *lab, uint64_t ns)
{
	atomic_store(soft_keys_pulse(lab->peer_keys), ns);
}

void lab_peer_polls(struct lab *lab)
{
	/* the near future, so that a test that loses the processor sees it as well */
	lab_peer_polled_at(lab, core_now_ns() + UINT64_C(60000000000));
}

bool lab_peer_entry(struct shm_producer *ring, struct shm_entry *entry, const void *payload)
{
	uint8_t *room;

	if (shm_producer_reserve(ring, entry->payload, &room) != 1)
		return false;
	if (payload)
		memcpy(room, payload, entry->payload);
	shm_producer_commit(ring, entry);
	return true;
}

bool lab_peer_takes(struct shm_consumer *ring, struct shm_entry *entry_out,
		    const uint8_t **payload_out)
{
	if (shm_consumer_peek(ring, entry_out, payload_out) != 1)
		return false;
	shm_consumer_take(ring, entry_out->payload);
	shm_consumer_give_back(ring);
	return true;
}

unsigned lab_peer_takes_all(struct lab *lab)
{
	const uint8_t *payload;
	struct shm_entry entry;
	unsigned count = 0;

	while (lab_peer_takes(&lab->peer_in, &entry, &payload))
		count++;
	return count;
}

void lab_peer_done(struct lab *lab, uint32_t done)
{
	(void)lab_peer_takes_all(lab);
	atomic_store(&lab->peer->done, done);
}
