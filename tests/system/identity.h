// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process that listens or calls as one user, and becomes another one in the middle of the set-up.
 * It plays the peer as in hostile.h.
 */
#ifndef TESTS_IDENTITY_H
#define TESTS_IDENTITY_H

#include <grp.h>

#include "hostile.h"

#define STRANGER 54321u /* a user and a group; need not exist */

/* What the process changes. */
struct change {
	const char *name;
	uid_t real, effective, saved;
	gid_t group;
	bool is_forging; /* names the user that it was before: the saved one */
};

static const struct change no_change = {.name = "none"};
static const struct change whole_change = {"all", STRANGER, STRANGER, STRANGER, STRANGER, false};
static const struct change changes[] = {
	{"all users", STRANGER, STRANGER, STRANGER, 0, false},
	{"all but the saved user", STRANGER, STRANGER, 0, 0, true},
	{"the effective user", 0, STRANGER, 0, 0, true},
	{"the real user", STRANGER, 0, 0, 0, true},
	{"the group", 0, 0, 0, STRANGER, false},
};

/* Tests that change the user need root. */
static inline void need_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: needs root\n");
	skip();
}

static inline void become(const struct change *change)
{
	assert_int_equal(setresgid(change->group, change->group, change->group), 0);
	assert_int_equal(setresuid(change->real, change->effective, change->saved), 0);
}

/* Sends with descriptors and with credentials that name the user 0. */
static inline void send_forged(int socket, const void *bytes, size_t len, const int *fds,
			       size_t count)
{
	const struct ucred who = {.pid = getpid(), .uid = 0, .gid = getgid()};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(who)) + CMSG_SPACE(2 * sizeof(int))];
	} control = {.space = ""};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(sizeof(who))};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_CREDENTIALS;
	header->cmsg_len = CMSG_LEN(sizeof(who));
	memcpy(CMSG_DATA(header), &who, sizeof(who));
	if (count) {
		msg.msg_controllen += CMSG_SPACE(count * sizeof(int));
		header = CMSG_NXTHDR(&msg, header);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	}
	assert_true(sendmsg(socket, &msg, MSG_NOSIGNAL) >= 0);
}

/* --- a process that listens --- */

struct service {
	int server; /* the listening socket */
	struct hostile h;
};

/* Listens, and has changed when the other process learns the qualifier. */
static inline void service_open(struct service *service, struct dt_peer *peer,
				const struct change *change)
{
	const DAT_CONN_QUAL qual = UINT64_C(1) << 62 | (DAT_CONN_QUAL)getpid();
	struct sockaddr_in address;
	struct sockaddr_un name;
	socklen_t len;

	dt_peer_recv(peer, &address, sizeof(address));
	service->server = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	len = hostile_name(&address, qual, &name);
	assert_int_equal(bind(service->server, (struct sockaddr *)&name, len), 0);
	assert_int_equal(listen(service->server, 8), 0);
	become(change);
	dt_peer_send(peer, &qual, sizeof(qual));
}

/* Takes a caller, and its REQUEST. */
static inline void service_take(struct service *service)
{
	struct hostile *h = &service->h;
	int none[SHM_WIRE_FDS_MAX];

	memset(h, 0, sizeof(*h));
	h->fd = accept4(service->server, NULL, NULL, SOCK_CLOEXEC);
	assert_int_not_equal(h->fd, -1);
	assert_int_equal(hostile_receive(h, none), 0);
	assert_int_equal(h->answer.head.type, SHM_WIRE_REQUEST);
}

/* Accepts with a segment and a key table. */
static inline void service_accept(struct service *service, bool is_forging)
{
	struct shm_wire_accept packet = {.side = {.port = 1,
						  .token_address = (uintptr_t)token,
						  .read_in = 4,
						  .read_out = 4,
						  .ability = SHM_ABLE_TRUST}};
	const size_t size = offsetof(struct shm_wire_accept, private_data);
	struct hostile *h = &service->h;
	int fds[2] = {sealed_file(sizeof(struct shm_file)),
		      sealed_file(SOFT_KEY_MAX * sizeof(struct soft_key_entry))};

	memcpy(packet.side.token, token, sizeof(token));
	put_head(&packet.head, SHM_WIRE_ACCEPT);
	if (is_forging)
		send_forged(h->fd, &packet, size, fds, 2);
	else
		assert_true(hostile_send(h, &packet, size, fds, 2));
	h->segment = map_file(fds[0], sizeof(*h->segment));
	close(fds[0]);
	close(fds[1]);
}

static inline void service_drop(struct service *service)
{
	close(service->h.fd);
	if (service->h.segment)
		munmap(service->h.segment, sizeof(*service->h.segment));
}

#endif
