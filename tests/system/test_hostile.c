// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer that knows the protocol and does not keep to it. The test plays it: it sets up a
 * connection as one of ours does, then writes what it likes into the shared segment and the socket.
 * What one such peer may do to its own connection, it may; all others, and every call, go on.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/un.h>

#include <dat/opendat.h>

#include "conn_remote.h"
#include "soft/key.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/wire.h"

#define MANY 6
#define LIMIT_US 400000u /* the peer time-out of these tests */
#define LIMIT_MS "400"
#define OTHER_USER 65534

struct hostile {
	int fd;
	struct shm_segment *segment;
	struct shm_side *mine;
	struct soft_key_entry *table;
	uint32_t produced; /* where the next entry goes */
};

static uint8_t token[SHM_TOKEN_SIZE] = "so it can read";

static int sealed_file(size_t size)
{
	const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_not_equal(fd, -1);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	return fd;
}

static void *map_file(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* False: it has hung up on us already. */
static bool hostile_send(const struct hostile *h, const void *bytes, size_t len, const int *fds,
			 size_t count)
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

static void put_head(struct shm_wire_head *head, enum shm_wire_type type)
{
	head->magic = SHM_WIRE_MAGIC;
	head->version = SHM_WIRE_VERSION;
	head->type = (uint16_t)type;
}

static void hostile_word(const struct hostile *h, enum shm_wire_type type, uint32_t word)
{
	struct shm_wire_word packet = {.word = word};

	put_head(&packet.head, type);
	hostile_send(h, &packet, type == SHM_WIRE_WAKE ? sizeof(packet.head) : sizeof(packet), NULL,
		     0);
}

static void hostile_dial(struct hostile *h, const struct sockaddr_in *address, DAT_CONN_QUAL qual)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	char text[INET_ADDRSTRLEN];
	int len;

	h->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_not_equal(h->fd, -1);
	inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
	len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "opendat.1/%s/%llx", text,
		       (unsigned long long)qual);
	assert_int_equal(
		connect(h->fd, (struct sockaddr *)&name,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)),
		0);
}

/* Asks as an endpoint of ours would that says this of itself. */
static void hostile_ask_as(struct hostile *h, const struct sockaddr_in *address, DAT_CONN_QUAL qual,
			   const struct shm_wire_side *side)
{
	const size_t table_size = SOFT_KEY_MAX * sizeof(struct soft_key_entry);
	struct shm_wire_request packet = {
		.qual = qual,
		.side = *side,
		.family = AF_INET,
	};
	int fds[2] = {sealed_file(sizeof(struct shm_segment)), sealed_file(table_size)};

	hostile_dial(h, address, qual);
	h->segment = map_file(fds[0], sizeof(*h->segment));
	h->table = map_file(fds[1], table_size);
	h->mine = &h->segment->side[SHM_ACTIVE];
	put_head(&packet.head, SHM_WIRE_REQUEST);
	memcpy(packet.address, &address->sin_addr, sizeof(address->sin_addr));
	hostile_send(h, &packet, offsetof(struct shm_wire_request, private_data), fds, 2);
	close(fds[0]);
	close(fds[1]);
}

static void hostile_ask(struct hostile *h, const struct sockaddr_in *address, DAT_CONN_QUAL qual)
{
	struct shm_wire_side side = {
		.port = 1, .token_address = (uintptr_t)token, .read_in = 4, .read_out = 4};

	memcpy(side.token, token, sizeof(token));
	hostile_ask_as(h, address, qual, &side);
}

/* The next packet of that type; others are passed over. */
static void hostile_await(const struct hostile *h, enum shm_wire_type type,
			  union shm_wire *packet_out)
{
	struct pollfd input = {.fd = h->fd, .events = POLLIN};

	do {
		assert_int_equal(poll(&input, 1, DT_WAIT_US / 1000), 1);
		assert_true(recv(h->fd, packet_out, sizeof(*packet_out), 0) > 0);
	} while (packet_out->head.type != type);
}

static void hostile_ready(const struct hostile *h)
{
	union shm_wire answer;

	hostile_await(h, SHM_WIRE_ACCEPT, &answer);
	hostile_word(h, SHM_WIRE_READY, 0);
}

static const struct sockaddr_in *own_address(struct conn_fixture *f)
{
	return (const struct sockaddr_in *)f->ia.attr.ia_address_ptr;
}

static void hostile_accept(struct hostile *h, struct conn_fixture *f, struct dt_ep *ep)
{
	h->produced = 0;
	dt_ok(dat_cr_accept(dt_request(&f->listener), ep->ep, 0, NULL));
	hostile_ready(h);
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void hostile_connect(struct hostile *h, struct conn_fixture *f, struct dt_ep *ep)
{
	hostile_ask(h, own_address(f), f->listener.qual);
	hostile_accept(h, f, ep);
}

/* The same for a peer whose memory nobody can reach by a system call. */
static void far_connect(struct hostile *h, struct conn_fixture *f, uint32_t read_in)
{
	const struct shm_wire_side side = {.port = 1,
					   .token_address = (uintptr_t)token,
					   .token = "not the token",
					   .read_in = read_in,
					   .read_out = 4};

	hostile_ask_as(h, own_address(f), f->listener.qual, &side);
	hostile_accept(h, f, &f->a);
}

static void hostile_close(struct hostile *h)
{
	close(h->fd);
	munmap(h->segment, sizeof(*h->segment));
	munmap(h->table, SOFT_KEY_MAX * sizeof(struct soft_key_entry));
}

/* Puts one inline Send into an unused ring; tells nobody. */
static void hostile_put_send(struct hostile *h, uint32_t len)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_SEND,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.payload = len,
		.length = len,
	};
	const uint32_t at = h->produced;

	assert_int_equal(len % SHM_ENTRY_ALIGN, 0);
	entry.stamp = SHM_STAMP(at);
	h->produced += SHM_ENTRY_ALIGN + len;
	memcpy(h->segment->request[SHM_ACTIVE] + at % SHM_REQUEST_RING, &entry, sizeof(entry));
}

/* Two of ours still find each other, at once (the best of three: the machine may be busy). */
static void check_others_work(struct conn_fixture *f)
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

static int limit_setup(void **state)
{
	setenv("DAT_PEER_TIMEOUT_MS", LIMIT_MS, 1);
	return conn_setup(state);
}

static int limit_teardown(void **state)
{
	unsetenv("DAT_PEER_TIMEOUT_MS");
	return conn_teardown(state);
}

/* --- announcements that are never withdrawn --- */

/* LMR-FREE-21: one time-out, however many peers do not let go */
static void lmr_free__many_peers_hold_the_key__one_time_out(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h[MANY];
	struct dt_ep ep[MANY];
	struct dt_buf buf;
	uint64_t start, took;

	dt_buf_create(&f->ia, f->ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	for (int i = 0; i < MANY; i++) {
		dt_ep_create(&f->ia, f->ia.pz, NULL, &ep[i]);
		hostile_connect(&h[i], f, &ep[i]);
		atomic_store(&h[i].mine->announce, buf.rkey);
	}
	start = dt_now_us();
	dt_ok(dat_lmr_free(buf.lmr));
	took = dt_now_us() - start;
	assert_true(took >= LIMIT_US - LIMIT_US / 10);
	assert_true(took < MANY * LIMIT_US / 2);
	for (int i = 0; i < MANY; i++) {
		dt_expect_conn(ep[i].conn, ep[i].ep, DAT_CONNECTION_EVENT_BROKEN);
		hostile_close(&h[i]);
	}
	dt_mem_free(buf.p, buf.mapped);
	check_others_work(f);
}

/* IA-CLOSE-13 */
static void ia_close__many_peers_hold_keys__one_time_out(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h[MANY];
	struct dt_ep ep[MANY];
	uint64_t start, took;

	for (int i = 0; i < MANY; i++) {
		dt_ep_create(&f->ia, f->ia.pz, NULL, &ep[i]);
		hostile_connect(&h[i], f, &ep[i]);
		atomic_store(&h[i].mine->announce, 0x1234);
	}
	start = dt_now_us();
	dt_ia_abort(&f->ia);
	took = dt_now_us() - start;
	f->is_open = false;
	assert_true(took < MANY * LIMIT_US / 2);
	for (int i = 0; i < MANY; i++)
		hostile_close(&h[i]);
	dt_mem_free(f->buf.p, f->buf.mapped);
}

struct other_user {
	struct sockaddr_in address;
	DAT_CONN_QUAL qual;
	uint32_t key;
};

/* Announces the key as another user, and stays. */
static void announce_as_other_user(struct dt_peer *peer, void *arg)
{
	struct other_user what;
	struct hostile h;

	(void)arg;
	dt_peer_recv(peer, &what, sizeof(what));
	assert_int_equal(setresuid(OTHER_USER, OTHER_USER, OTHER_USER), 0);
	hostile_ask(&h, &what.address, what.qual);
	hostile_ready(&h);
	atomic_store(&h.mine->announce, what.key);
	dt_peer_sync(peer);
	for (;;)
		pause();
}

/* EP-FREE-29 LMR-FREE-21: who cannot copy is not waited for, whatever it announces */
static void ep_free__other_user_announces__does_not_wait(void **state)
{
	struct other_user what;
	struct conn_fixture *f;
	struct dt_peer peer;
	uint64_t start;
	void *fixture;

	(void)state;
	if (geteuid() != 0)
		skip();
	dt_peer_start(&peer, announce_as_other_user, NULL);
	conn_setup(&fixture); /* with the usual time-out of 5 s */
	f = fixture;
	what = (struct other_user){*own_address(f), f->listener.qual, f->buf.rkey};
	dt_peer_send(&peer, &what, sizeof(what));
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->a.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_sync(&peer);
	start = dt_now_us();
	dt_buf_free(&f->buf);
	f->buf.mapped = 0;
	dt_ep_free(&f->a);
	assert_true(dt_now_us() - start < 2500000);
	dt_peer_kill(&peer);
	conn_teardown(&fixture);
}

/* Listens as root, serves as another user. */
static void serve_as_other_user(struct dt_peer *peer, void *arg)
{
	struct conn_fixture *f;
	void *fixture;

	(void)arg;
	conn_setup(&fixture);
	f = fixture;
	dt_peer_send(peer, &f->listener.qual, sizeof(f->listener.qual));
	assert_int_equal(setresuid(OTHER_USER, OTHER_USER, OTHER_USER), 0);
	dt_peer_sync(peer);
	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 1);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->a.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_dto(f->a.recv, f->a.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
	dt_peer_sync(peer);
	for (;;)
		pause();
}

/* EP-CONNECT-18: the sides do not agree whether they are one user; both take the rings */
static void ep_connect__listener_has_changed_its_user__established(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	DAT_CONN_QUAL qual;
	void *fixture;

	(void)state;
	if (geteuid() != 0)
		skip();
	for (int is_root = 0; is_root < 2; is_root++) {
		dt_peer_start(&peer, serve_as_other_user, NULL);
		dt_peer_recv(&peer, &qual, sizeof(qual));
		dt_peer_sync(&peer);
		if (!is_root)
			assert_int_equal(seteuid(OTHER_USER), 0);
		conn_setup(&fixture);
		f = fixture;
		dt_connect(&f->ia, f->b.ep, qual);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 1);
		dt_expect_dto(f->b.request, f->b.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
		dt_peer_sync(&peer);
		assert_int_equal(seteuid(0), 0);
		dt_peer_kill(&peer);
		conn_teardown(&fixture);
	}
}

/* --- packets --- */

/* Makes a descriptor that tells of events on the EVD: who waits on it drives nothing. */
static DAT_CNO_HANDLE cno_of(struct conn_fixture *f, DAT_EVD_HANDLE evd, int *fd_out)
{
	DAT_CNO_HANDLE cno;

	dt_ok(dat_cno_create(f->ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_evd_modify_cno(evd, cno));
	dt_ok(dat_opendat_cno_fd(cno, fd_out));
	return cno;
}

/* A full socket takes no WAKE, so whatever it is full of wakes as well */
static void cno_fd__any_packet_instead_of_wake__readable(void **state)
{
	static const enum shm_wire_type types[] = {SHM_WIRE_KEY_GONE, SHM_WIRE_MAP_ASK,
						   SHM_WIRE_MAP_REFUSE, SHM_WIRE_WAKE};
	struct conn_fixture *f = *state;
	struct pollfd event = {.events = POLLIN};
	struct hostile h;
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;

	cno = cno_of(f, f->a.recv, &event.fd);
	hostile_connect(&h, f, &f->a);
	for (uint64_t i = 0; i < COUNT_OF(types); i++) {
		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, i);
		while (!(atomic_load(&h.segment->side[SHM_PASSIVE].armed) & 1))
			usleep(1000);
		hostile_put_send(&h, 64);
		hostile_word(&h, types[i], 1);
		assert_int_equal(poll(&event, 1, DT_WAIT_US / 1000), 1);
		dt_ok(dat_cno_wait(cno, DT_WAIT_US, &evd));
		dt_expect_dto(f->a.recv, f->a.ep, i, DAT_DTO_SUCCESS, 64);
	}
	hostile_close(&h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* A socket whose last close() takes very long. */
static int lingering_socket(void)
{
	const struct linger linger = {1, 1000};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	static char bytes[65536];
	socklen_t len = sizeof(any);
	int server, fd;

	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(server >= 0 && fd >= 0);
	assert_int_equal(bind(server, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&any, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_not_equal(accept4(server, NULL, NULL, SOCK_CLOEXEC), -1); /* left open */
	close(server);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/* The copy that is under way is the last one. */
static void send_lingering(const struct hostile *h, size_t count)
{
	static const struct linger at_once;
	int fds[20];
	bool is_sent;

	for (size_t i = 0; i < count; i++)
		fds[i] = lingering_socket();
	is_sent = hostile_send(h, "nonsense", 8, fds, count);
	for (size_t i = 0; i < count; i++) {
		if (!is_sent)
			setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(fds[i]);
	}
}

/* CONN-GEN-09: few and many in one packet, some of them read and some not */
static void listener__descriptors_that_linger__nobody_waits(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h;

	for (size_t count = 1; count <= 20; count += 19) {
		hostile_dial(&h, own_address(f), f->listener.qual);
		send_lingering(&h, count);
		send_lingering(&h, 1);
		close(h.fd);
	}
	check_others_work(f);
}

/* EP-FREE-29: nor where they lie unread in a socket that is closed */
static void ep_free__unread_descriptors_linger__does_not_wait(void **state)
{
	struct conn_fixture *f = *state;
	const uint64_t start = dt_now_us();
	struct hostile h;
	DAT_CR_HANDLE cr;

	hostile_ask(&h, own_address(f), f->listener.qual);
	cr = dt_request(&f->listener);
	send_lingering(&h, 1); /* while the consumer thinks, nobody reads */
	dt_ok(dat_cr_reject(cr));
	assert_true(dt_now_us() - start < DT_WAIT_US);
	hostile_close(&h);
	check_others_work(f);
}

/* --- no descriptors left --- */

static int map_setup(void **state)
{
	setenv("DAT_COPY", "map", 1);
	return conn_setup(state);
}

static int map_teardown(void **state)
{
	int rc = conn_teardown(state);

	unsetenv("DAT_COPY"); /* such tests are the last ones */
	return rc;
}

static void post_write(struct conn_fixture *f, uint32_t key, const void *to, uint64_t cookie)
{
	DAT_RMR_TRIPLET remote = {
		.rmr_context = key, .target_address = (uintptr_t)to, .segment_length = 64};
	DAT_LMR_TRIPLET local = dt_seg(&f->buf, 0, 64);

	dt_ok(dat_ep_post_rdma_write(f->a.ep, 1, &local, dt_cookie(cookie), &remote,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(f->a.request, f->a.ep, cookie, DAT_DTO_SUCCESS, 64);
}

/* the shortage of one process is no error of the connection; memory that cannot be
 * mapped is reached otherwise */
static void rdma_write__no_descriptor_for_the_mapping__done_otherwise(void **state)
{
	struct conn_fixture *f = *state;
	const int file = sealed_file(4096);
	struct shm_wire_give give = {.key = 5u, .length = 4096};
	struct rlimit limit, none;
	union shm_wire packet;
	struct hostile h;
	void *memory = map_file(file, 4096);

	hostile_connect(&h, f, &f->a);
	h.table[5].rights = SOFT_RIGHT_REMOTE_WRITE;
	h.table[5].address = (uintptr_t)memory;
	h.table[5].length = 4096;
	atomic_store(&h.table[5].key, 5);
	post_write(f, 5, memory, 1);
	hostile_await(&h, SHM_WIRE_MAP_ASK, &packet);
	put_head(&give.head, SHM_WIRE_MAP_GIVE);
	give.address = (uintptr_t)memory;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	hostile_send(&h, &give, sizeof(give), &file, 1);
	/* behind it in the socket: when this has come, that was dealt with */
	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 7);
	hostile_put_send(&h, 64);
	hostile_word(&h, SHM_WIRE_WAKE, 0);
	dt_expect_dto(f->a.recv, f->a.ep, 7, DAT_DTO_SUCCESS, 64);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	dt_no_event(f->a.conn);
	post_write(f, 5, memory, 2);
	hostile_close(&h);
	munmap(memory, 4096);
	close(file);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* --- noise --- */

static uint32_t noise(void)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static void make_noise(struct hostile *h)
{
	uint32_t *words = (uint32_t *)(void *)h->mine;
	uint8_t *ring = h->segment->request[SHM_ACTIVE];
	union shm_wire packet;

	memset(&packet, 0, sizeof(packet));
	for (unsigned int i = 0; i < 64; i++) {
		if (noise() & 1)
			ring[noise() % 512] = (uint8_t)(noise() % 8);
		if (!(noise() % 8))
			words[noise() % (sizeof(*h->mine) / 4)] =
				noise() % 3 ? noise() & 0x1ff : noise();
		if (!(noise() % 4))
			hostile_put_send(h, 32 * (noise() % 4));
		if (noise() % 8)
			continue;
		put_head(&packet.head, (enum shm_wire_type)(noise() % (SHM_WIRE_TYPE_END + 1)));
		packet.word.word = noise() & 0xff;
		hostile_send(h, &packet,
			     packet.head.type == SHM_WIRE_WAKE	     ? sizeof(packet.head)
			     : packet.head.type == SHM_WIRE_MAP_GIVE ? sizeof(packet.give)
								     : sizeof(packet.word),
			     NULL, 0);
	}
}

static unsigned int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static bool has_descriptors(void *arg)
{
	return count_descriptors() <= *(unsigned int *)arg;
}

/* CONN-GEN-09: nothing is left of any of them, and nobody else notices */
static void connection__noise_in_segment_and_socket__ends_alone(void **state)
{
	struct conn_fixture *f = *state;
	unsigned int before;
	DAT_EVENT event;

	check_others_work(f);
	before = count_descriptors();
	for (unsigned int i = 0; i < 300; i++) {
		struct hostile h;

		hostile_connect(&h, f, &f->a);
		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, i);
		conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, i);
		make_noise(&h);
		atomic_store(&h.mine->announce, 0); /* its time-out is another test's */
		hostile_close(&h);
		do { /* whichever way it ended */
			event = dt_event(f->a.conn);
		} while (dt_ep_state(f->a.ep) != DAT_EP_STATE_DISCONNECTED);
		assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
			    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_drain(f->a.recv);
		dt_drain(f->a.request);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	dt_until(has_descriptors, &before);
	check_others_work(f);
}

/* --- a peer that serves what it said, in its own time --- */

#define FAR_KEY 5u
#define FAR_LEN 64u
#define FAR_AT 0x5000000u /* an address of the peer where it has nothing */
#define FAR_READS 4u

/* How many RDMA Reads it was asked for; there is nothing else in the ring. */
static uint32_t reads_asked(const struct hostile *h)
{
	const struct shm_entry *entries = (const void *)h->segment->request[SHM_PASSIVE];
	uint32_t count = 0;

	while (__atomic_load_n(&entries[count].stamp, __ATOMIC_ACQUIRE) ==
	       SHM_STAMP(count * SHM_ENTRY_ALIGN))
		assert_int_equal(entries[count++].type, SHM_ENTRY_READ);
	return count;
}

/* Answers the RDMA Read of that number. */
static void answer_read(const struct hostile *h, uint32_t number)
{
	const uint32_t at = number * (SHM_ENTRY_ALIGN + FAR_LEN);
	struct shm_entry *entry = (void *)(h->segment->response[SHM_ACTIVE] + at);

	memset((uint8_t *)entry + SHM_ENTRY_ALIGN, (int)number, FAR_LEN);
	entry->type = SHM_ENTRY_DATA;
	entry->flags = SHM_FLAG_LAST;
	entry->payload = FAR_LEN;
	entry->length = FAR_LEN;
	__atomic_store_n(&entry->stamp, SHM_STAMP(at), __ATOMIC_RELEASE);
	hostile_word(h, SHM_WIRE_WAKE, 0);
}

static void post_far(struct conn_fixture *f, bool is_read, uint64_t target, uint64_t cookie)
{
	const DAT_RMR_TRIPLET remote = {
		.rmr_context = FAR_KEY, .target_address = target, .segment_length = FAR_LEN};
	DAT_LMR_TRIPLET local = dt_seg(&f->buf, cookie * FAR_LEN, FAR_LEN);

	if (is_read)
		dt_ok(dat_ep_post_rdma_read(f->a.ep, 1, &local, dt_cookie(cookie), &remote, 0));
	else
		dt_ok(dat_ep_post_rdma_write(f->a.ep, 1, &local, dt_cookie(cookie), &remote, 0));
}

/* One connection on which `limit` of FAR_READS may be in flight. */
static void check_reads(struct conn_fixture *f, uint32_t out, uint32_t in, uint32_t limit)
{
	DAT_EP_PARAM param;
	struct hostile h;

	memset(&param, 0, sizeof(param));
	param.ep_attr.max_rdma_read_out = (DAT_COUNT)out;
	dt_ok(dat_ep_modify(f->a.ep, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, &param));
	far_connect(&h, f, in);
	for (uint32_t i = 0; i < FAR_READS; i++)
		post_far(f, true, FAR_AT, i);
	for (uint32_t i = 0; i < FAR_READS; i++) {
		const uint32_t asked = i + limit < FAR_READS ? i + limit : FAR_READS;
		const uint64_t end = dt_now_us() + DT_WAIT_US;

		/* the service thread may be about to ask, with the endpoint locked */
		while (reads_asked(&h) < asked && dt_now_us() < end)
			dt_no_event(f->a.request);
		for (unsigned int polls = 0; polls < 20; polls++)
			dt_no_event(f->a.request);
		assert_int_equal(reads_asked(&h), asked);
		answer_read(&h, i);
		dt_expect_dto(f->a.request, f->a.ep, i, DAT_DTO_SUCCESS, FAR_LEN);
		dt_check_bytes(f->buf.p + i * FAR_LEN, FAR_LEN, (unsigned char)i);
	}
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	hostile_close(&h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(f->a.ep));
}

/* DTO-108 EP-RDMAR-37: never more than the smaller of the two numbers */
static void rdma_read__more_than_one_side_takes__the_rest_waits(void **state)
{
	for (uint32_t limit = 1; limit <= FAR_READS; limit++) {
		check_reads(*state, FAR_READS, limit, limit);
		check_reads(*state, limit, FAR_READS, limit);
	}
}

/* The memory behind FAR_KEY, which the peer gives away when it is asked for it. */
static void *far_memory(struct hostile *h, int *file_out)
{
	unsigned char *memory;

	*file_out = sealed_file(4096);
	memory = map_file(*file_out, 4096);
	h->table[FAR_KEY].rights = SOFT_RIGHT_REMOTE_WRITE | SOFT_RIGHT_REMOTE_READ;
	h->table[FAR_KEY].address = (uintptr_t)memory;
	h->table[FAR_KEY].length = 4096;
	atomic_store(&h->table[FAR_KEY].key, FAR_KEY);
	return memory;
}

static void far_give(struct hostile *h, const void *memory, int file)
{
	struct shm_wire_give give = {.key = FAR_KEY, .address = (uintptr_t)memory, .length = 4096};
	union shm_wire packet;

	hostile_await(h, SHM_WIRE_MAP_ASK, &packet);
	assert_int_equal(packet.word.word, FAR_KEY);
	put_head(&give.head, SHM_WIRE_MAP_GIVE);
	assert_true(hostile_send(h, &give, sizeof(give), &file, 1));
}

/* It has read all packets up to now: it has answered the last one, which asks for no key of its. */
static void far_settle(struct hostile *h)
{
	union shm_wire packet;

	hostile_word(h, SHM_WIRE_MAP_ASK, UINT32_MAX);
	hostile_await(h, SHM_WIRE_MAP_REFUSE, &packet);
}

/*
 * A Write that had to go through the ring is not placed yet, while the memory of its target has
 * become one that we write and read ourselves.
 */
static void *far_begin_write(struct hostile *h, struct conn_fixture *f)
{
	unsigned char *memory;
	int file;

	far_connect(h, f, 4);
	memory = far_memory(h, &file);
	memset(memory, 'o', 4096);
	for (unsigned char i = 0; i < 3; i++)
		memset(f->buf.p + i * FAR_LEN, '0' + i, FAR_LEN);
	post_far(f, false, (uintptr_t)memory, 0);
	far_give(h, memory, file);
	far_settle(h);
	close(file);
	return memory;
}

/* The peer places it, and says so. */
static void far_end_write(struct hostile *h, struct conn_fixture *f, void *memory)
{
	for (unsigned int polls = 0; polls < 50; polls++)
		dt_no_event(f->a.request);
	dt_check_bytes(memory, FAR_LEN, 'o');
	memset(memory, '0', FAR_LEN);
	atomic_store(&h->mine->done, 1);
	hostile_word(h, SHM_WIRE_WAKE, 0);
	dt_expect_dto(f->a.request, f->a.ep, 0, DAT_DTO_SUCCESS, FAR_LEN);
	dt_expect_dto(f->a.request, f->a.ep, 1, DAT_DTO_SUCCESS, FAR_LEN);
}

/* It is written without the peer's help by now. */
static void far_check_mapped(struct hostile *h, struct conn_fixture *f, unsigned char *memory)
{
	post_far(f, false, (uintptr_t)memory + FAR_LEN, 2);
	dt_expect_dto(f->a.request, f->a.ep, 2, DAT_DTO_SUCCESS, FAR_LEN);
	dt_check_bytes(memory + FAR_LEN, FAR_LEN, '2');
	munmap(memory, 4096);
	hostile_close(h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* DTO-40: the later of two Writes to the same bytes wins */
static void rdma_write__memory_mapped_behind_a_ring_write__not_overtaken(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h;
	unsigned char *memory = far_begin_write(&h, f);

	post_far(f, false, (uintptr_t)memory, 1);
	far_end_write(&h, f, memory);
	dt_check_bytes(memory, FAR_LEN, '1');
	far_check_mapped(&h, f, memory);
}

/* DTO-41: an RDMA Read behind a Write returns what that wrote */
static void rdma_read__memory_mapped_behind_a_ring_write__not_overtaken(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h;
	unsigned char *memory = far_begin_write(&h, f);

	post_far(f, true, (uintptr_t)memory, 1);
	far_end_write(&h, f, memory);
	dt_check_bytes(f->buf.p + FAR_LEN, FAR_LEN, '0');
	far_check_mapped(&h, f, memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lmr_free__many_peers_hold_the_key__one_time_out,
						limit_setup, limit_teardown),
		cmocka_unit_test_setup_teardown(ia_close__many_peers_hold_keys__one_time_out,
						limit_setup, limit_teardown),
		cmocka_unit_test(ep_free__other_user_announces__does_not_wait),
		cmocka_unit_test(ep_connect__listener_has_changed_its_user__established),
		conn_test(cno_fd__any_packet_instead_of_wake__readable),
		conn_test(listener__descriptors_that_linger__nobody_waits),
		conn_test(ep_free__unread_descriptors_linger__does_not_wait),
		conn_test(connection__noise_in_segment_and_socket__ends_alone),
		conn_test(rdma_read__more_than_one_side_takes__the_rest_waits),
		cmocka_unit_test_setup_teardown(
			rdma_write__no_descriptor_for_the_mapping__done_otherwise, map_setup,
			map_teardown),
		cmocka_unit_test_setup_teardown(
			rdma_write__memory_mapped_behind_a_ring_write__not_overtaken, map_setup,
			map_teardown),
		cmocka_unit_test_setup_teardown(
			rdma_read__memory_mapped_behind_a_ring_write__not_overtaken, map_setup,
			map_teardown),
	};

	return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
