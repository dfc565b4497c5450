// SPDX-License-Identifier: BSD-2-Clause
/* Processes that are of another user, or become one in the middle of a set-up. */
#ifndef TESTS_IDENTITY_H
#define TESTS_IDENTITY_H

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>

#include <dat/opendat.h>

#include "hostile.h"

#define STRANGER 54321u /* a user and a group; need not exist */

/* Tests that change the user need root. */
static inline void need_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: needs root\n");
	skip();
}

static inline void become(unsigned user)
{
	assert_int_equal(setresgid(user, user, user), 0);
	assert_int_equal(setresuid(user, user, user), 0);
}

/* This process sees no /proc from now on. */
static inline void hide_proc(void)
{
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", "/proc", "tmpfs", 0, NULL), 0);
}

/* The folder that a process of that user has made, if it is empty. */
static inline void remove_folder(unsigned user)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/opendat-%u", user);
	(void)rmdir(path);
}

static inline DAT_UINT32 peer_flags(DAT_HANDLE handle)
{
	DAT_OPENDAT_PEER peer = {.size = sizeof(peer)};

	dt_ok(dat_opendat_peer(handle, &peer));
	return peer.flags;
}

/* What a peer has to know to call. */
struct call {
	struct sockaddr_in address;
	DAT_CONN_QUAL qual;
};

static inline void tell_call(struct dt_peer *peer, struct conn_fixture *f)
{
	const struct call call = {.address = *own_address(f), .qual = f->listener.qual};

	dt_peer_send(peer, &call, sizeof(call));
}

/* --- a process that listens as the user that it was --- */

struct service {
	int server; /* the listening socket */
	struct sockaddr_un name;
	struct hostile h;
};

/* Listens, and is another user when the other process learns the qualifier. */
static inline void service_open(struct service *service, struct dt_peer *peer, unsigned user)
{
	struct call call = {.qual = UINT64_C(1) << 62 | (DAT_CONN_QUAL)getpid()};

	dt_peer_recv(peer, &call.address, sizeof(call.address));
	service->server =
		hostile_listen((const struct sockaddr *)&call.address, call.qual, &service->name);
	become(user);
	dt_peer_send(peer, service, sizeof(*service));
	dt_peer_send(peer, &call.qual, sizeof(call.qual));
}

/* Takes a caller and its REQUEST, and accepts with a segment and a key table. */
static inline void service_accept(struct service *service)
{
	struct shm_wire_accept packet = {.side = {.port = 1, .read_in = 4, .read_out = 4}};
	struct hostile *h = &service->h;
	int fds[SHM_WIRE_FDS_MAX];

	memset(h, 0, sizeof(*h));
	h->fd = accept4(service->server, NULL, NULL, SOCK_CLOEXEC);
	assert_int_not_equal(h->fd, -1);
	assert_int_equal(hostile_receive(h, fds), 0);
	assert_int_equal(h->answer.head.type, SHM_WIRE_REQUEST);
	fds[0] = sealed_file(sizeof(struct shm_segment));
	fds[1] = sealed_file(SOFT_KEY_MAX * sizeof(struct soft_key_entry));
	put_head(&packet.head, SHM_WIRE_ACCEPT);
	assert_true(
		hostile_send(h, &packet, offsetof(struct shm_wire_accept, private_data), fds, 2));
	close(fds[0]);
	close(fds[1]);
}

/* The other side says nothing but that it closes the socket. */
static inline void expect_silence(int fd)
{
	union shm_wire packet;

	while (recv(fd, &packet, sizeof(packet), 0) > 0)
		assert_int_equal(packet.head.type, SHM_WIRE_CLOSE);
}

/* Listens as root, and accepts as another user. */
static inline void accept_as_stranger(struct dt_peer *peer, void *arg)
{
	struct service service;

	(void)arg;
	service_open(&service, peer, STRANGER);
	service_accept(&service);
	expect_silence(service.h.fd);
}

/* Connects to such a process. */
static inline void expect_no_peer(struct conn_fixture *f, struct dt_peer *peer)
{
	struct service service;
	DAT_CONN_QUAL qual;

	dt_peer_send(peer, own_address(f), sizeof(*own_address(f)));
	dt_peer_recv(peer, &service, sizeof(service));
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_connect(&f->ia, f->a.ep, qual);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_peer_join(peer);
	assert_int_equal(unlink(service.name.sun_path), 0);
}

#endif
