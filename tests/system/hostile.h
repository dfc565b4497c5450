// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer that knows the protocol and violates it. The test plays the peer: it sets up a connection
 * as the provider does, then writes anything into the shared segment and the socket.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "soft/key.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/bytes/wire.h"
#include "conn_remote.h"

#define LIMIT_MS "400"

struct hostile {
	int fd;
	int table_fd;
	struct shm_segment *segment; /* NULL until it is accepted */
	struct shm_side *mine;
	struct soft_key_entry *table;
	uint32_t produced; /* where the next entry goes */
	size_t answer_fds; /* that came with ACCEPT */
	union shm_wire answer;
};

static uint8_t token[SHM_TOKEN_SIZE] = "so it can read";

static inline int sealed_file(size_t size)
{
	const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_not_equal(fd, -1);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	return fd;
}

static inline void *map_file(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* Returns false if the other side has closed the connection. */
static inline bool hostile_send(const struct hostile *h, const void *bytes, size_t len,
				const int *fds, size_t count)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(64 * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	assert_true(count <= 64);
	if (count) {
		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	return sendmsg(h->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static inline void put_head(struct shm_wire_head *head, enum shm_wire_type type)
{
	head->magic = SHM_WIRE_MAGIC;
	head->version = SHM_WIRE_VERSION;
	head->type = (uint16_t)type;
}

static inline void hostile_word(const struct hostile *h, enum shm_wire_type type, uint32_t word)
{
	struct shm_wire_word packet = {.word = word};

	put_head(&packet.head, type);
	hostile_send(h, &packet, type == SHM_WIRE_WAKE ? sizeof(packet.head) : sizeof(packet), NULL,
		     0);
}

/* The name of a service point of a process of this user; needs no library. */
static inline void hostile_name(const struct sockaddr *address, DAT_CONN_QUAL qual,
				struct sockaddr_un *name_out)
{
	const void *bytes = address->sa_family == AF_INET
				    ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
				    : &((const struct sockaddr_in6 *)address)->sin6_addr;
	char text[INET6_ADDRSTRLEN];
	struct stat netns;

	assert_int_equal(stat("/proc/self/ns/net", &netns), 0);
	memset(name_out, 0, sizeof(*name_out));
	name_out->sun_family = AF_UNIX;
	inet_ntop(address->sa_family, bytes, text, sizeof(text));
	snprintf(name_out->sun_path, sizeof(name_out->sun_path),
		 "/dev/shm/opendat-%u/opendat.1-%s@%llx-%llx", (unsigned)geteuid(), text,
		 (unsigned long long)netns.st_ino, (unsigned long long)qual);
}

/* Listens in place of a peer; the caller deletes the name. */
static inline int hostile_listen(const struct sockaddr *address, DAT_CONN_QUAL qual,
				 struct sockaddr_un *name_out)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_not_equal(fd, -1);
	hostile_name(address, qual, name_out);
	assert_int_equal(bind(fd, (struct sockaddr *)name_out, sizeof(*name_out)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static inline void hostile_dial(struct hostile *h, const struct sockaddr_in *address,
				DAT_CONN_QUAL qual)
{
	struct sockaddr_un name;

	hostile_name((const struct sockaddr *)address, qual, &name);
	h->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_not_equal(h->fd, -1);
	assert_int_equal(connect(h->fd, (struct sockaddr *)&name, sizeof(name)), 0);
}

/* Sends a connection request with these properties of the active side. */
static inline void hostile_ask_as(struct hostile *h, const struct sockaddr_in *address,
				  DAT_CONN_QUAL qual, const struct shm_wire_side *side)
{
	const size_t table_size = SOFT_KEY_MAX * sizeof(struct soft_key_entry);
	struct shm_wire_request packet = {
		.qual = qual,
		.side = *side,
		.family = AF_INET,
	};

	hostile_dial(h, address, qual);
	h->segment = NULL;
	h->table_fd = sealed_file(table_size);
	h->table = map_file(h->table_fd, table_size);
	/* the kernel finds our memory by the thread that holds the guard */
	h->table[0].guard = (uint32_t)syscall(SYS_gettid);
	put_head(&packet.head, SHM_WIRE_REQUEST);
	memcpy(packet.address, &address->sin_addr, sizeof(address->sin_addr));
	hostile_send(h, &packet, offsetof(struct shm_wire_request, private_data), NULL, 0);
}

static inline void hostile_ask(struct hostile *h, const struct sockaddr_in *address,
			       DAT_CONN_QUAL qual)
{
	struct shm_wire_side side = {
		.port = 1, .token_address = (uintptr_t)token, .read_in = 4, .read_out = 4};

	memcpy(side.token, token, sizeof(token));
	hostile_ask_as(h, address, qual, &side);
}

/* Receives packets until one has that type. */
static inline void hostile_await(const struct hostile *h, enum shm_wire_type type,
				 union shm_wire *packet_out)
{
	struct pollfd input = {.fd = h->fd, .events = POLLIN};

	do {
		assert_int_equal(poll(&input, 1, DT_WAIT_US / 1000), 1);
		assert_true(recv(h->fd, packet_out, sizeof(*packet_out), 0) > 0);
	} while (packet_out->head.type != type);
}

/* Receives one packet into `answer`, and its descriptors; returns how many came. */
static inline size_t hostile_receive(struct hostile *h, int fds[SHM_WIRE_FDS_MAX])
{
	struct iovec iov = {.iov_base = &h->answer, .iov_len = sizeof(h->answer)};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(SHM_WIRE_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct pollfd input = {.fd = h->fd, .events = POLLIN};
	size_t size;

	assert_int_equal(poll(&input, 1, DT_WAIT_US / 1000), 1);
	assert_true(recvmsg(h->fd, &msg, MSG_CMSG_CLOEXEC) > 0);
	if (!CMSG_FIRSTHDR(&msg))
		return 0;
	size = CMSG_FIRSTHDR(&msg)->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), size);
	return size / sizeof(int);
}

/* Takes the answer with the segment. */
static inline void hostile_take_answer(struct hostile *h)
{
	int fds[SHM_WIRE_FDS_MAX];
	size_t count = hostile_receive(h, fds);

	assert_int_equal(h->answer.head.type, SHM_WIRE_ACCEPT);
	assert_true(count > 0);
	h->answer_fds = count;
	h->segment = map_file(fds[0], sizeof(*h->segment));
	h->mine = &h->segment->side[SHM_ACTIVE];
	while (count)
		close(fds[--count]);
}

static inline void hostile_ready(struct hostile *h)
{
	struct shm_wire_word packet = {.word = 0};

	hostile_take_answer(h);
	put_head(&packet.head, SHM_WIRE_READY);
	assert_true(hostile_send(h, &packet, sizeof(packet), &h->table_fd, 1));
}

static inline bool is_ring(void)
{
	const char *copy = getenv("DAT_COPY");

	return copy && strcmp(copy, "ring") == 0;
}

static inline const struct sockaddr_in *own_address(struct conn_fixture *f)
{
	return (const struct sockaddr_in *)f->ia.attr.ia_address_ptr;
}

static inline void hostile_accept(struct hostile *h, struct conn_fixture *f, struct dt_ep *ep)
{
	h->produced = 0;
	dt_ok(dat_cr_accept(dt_request(&f->listener), ep->ep, 0, NULL));
	hostile_ready(h);
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static inline void hostile_connect(struct hostile *h, struct conn_fixture *f, struct dt_ep *ep)
{
	hostile_ask(h, own_address(f), f->listener.qual);
	hostile_accept(h, f, ep);
}

static inline void hostile_close(struct hostile *h)
{
	close(h->fd);
	close(h->table_fd);
	if (h->segment)
		munmap(h->segment, sizeof(*h->segment));
	munmap(h->table, SOFT_KEY_MAX * sizeof(struct soft_key_entry));
}

/* Two endpoints can connect without delay (the best of three tries: the machine may be busy). */
static inline void check_others_work(struct conn_fixture *f)
{
	uint64_t best = UINT64_MAX;
	struct dt_ep a, b;

	for (unsigned int i = 0; i < 3 && best > 1000000; i++) {
		const uint64_t start = dt_now_us();
		uint64_t took;

		dt_ep_create(&f->ia, f->ia.pz, NULL, &a);
		dt_ep_create(&f->ia, f->ia.pz, NULL, &b);
		conn_link(f, &a, &b);
		conn_transfer(f, &a, &b);
		took = dt_now_us() - start;
		best = took < best ? took : best;
		dt_ep_free(&a);
		dt_ep_free(&b);
	}
	assert_true(best <= 1000000);
}

static inline int limit_setup(void **state)
{
	setenv("DAT_PEER_TIMEOUT_MS", LIMIT_MS, 1);
	return conn_setup(state);
}

static inline int limit_teardown(void **state)
{
	unsetenv("DAT_PEER_TIMEOUT_MS");
	return conn_teardown(state);
}

static inline int map_setup(void **state)
{
	setenv("DAT_COPY", "map", 1);
	return conn_setup(state);
}

static inline int map_teardown(void **state)
{
	int rc = conn_teardown(state);

	unsetenv("DAT_COPY"); /* such tests are the last ones */
	return rc;
}

#endif
