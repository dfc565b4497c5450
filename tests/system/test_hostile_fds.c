// SPDX-License-Identifier: BSD-2-Clause
/*
 * Descriptors that a peer has no right to send: before it is accepted, or as another user. Kernels
 * from 6.16 on refuse them when asked. On others the socket is closed without receiving them, which
 * is tested here, too: a seccomp filter makes that kernel.
 */
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "hostile.h"
#include "old_kernel.h"

#define OTHER_USER 65534

static bool is_old_kernel; /* or one that we have made so */

/* --- a descriptor that somebody has received is noticed --- */

/* A file with a lock of this process, which the process loses when it closes any descriptor of it:
 * also one that was received. */
struct marked {
	int fd;
	int other; /* of the same file, opened for itself: it sees the lock */
};

static void marked_open(struct marked *marked)
{
	struct flock lock = {.l_type = F_WRLCK};
	char path[64];

	marked->fd = memfd_create("hostile", MFD_CLOEXEC);
	assert_int_not_equal(marked->fd, -1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", marked->fd);
	marked->other = open(path, O_RDWR | O_CLOEXEC);
	assert_int_not_equal(marked->other, -1);
	assert_int_equal(fcntl(marked->fd, F_SETLK, &lock), 0);
}

static void marked_close(struct marked *marked)
{
	close(marked->fd);
	close(marked->other);
}

/* Is a copy of it open here? */
static bool is_open_here(const struct marked *marked)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	bool is_found = false;
	struct stat file;

	assert_non_null(dir);
	assert_int_equal(fstat(marked->fd, &file), 0);
	while ((entry = readdir(dir)) != NULL) {
		const int fd = atoi(entry->d_name);
		struct stat st;

		/* by its name: the thread sanitizer knows descriptors, and who made them */
		if (entry->d_name[0] != '.' && fd != marked->fd && fd != marked->other &&
		    fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && st.st_dev == file.st_dev &&
		    st.st_ino == file.st_ino)
			is_found = true;
	}
	closedir(dir);
	return is_found;
}

static bool is_received(const struct marked *marked)
{
	struct flock lock = {.l_type = F_WRLCK};

	if (is_open_here(marked))
		return true;
	assert_int_equal(fcntl(marked->other, F_OFD_GETLK, &lock), 0);
	return lock.l_type == F_UNLCK; /* it was closed again */
}

static bool is_hung_up(void *arg)
{
	const struct hostile *h = arg;
	struct pollfd input = {.fd = h->fd};

	return poll(&input, 1, 0) == 1 && (input.revents & POLLHUP);
}

/*
 * Sends a packet with a descriptor. Either the kernel refuses it and a packet without one is taken,
 * or the other side closes the socket.
 */
static void send_one(struct hostile *h)
{
	struct marked marked;
	bool is_sent;

	marked_open(&marked);
	is_sent = hostile_send(h, "nonsense", 8, &marked.fd, 1);
	assert_int_equal(is_sent, is_old_kernel);
	if (is_sent)
		dt_until(is_hung_up, h);
	assert_false(is_received(&marked));
	marked_close(&marked);
}

/* CONN-GEN-09 */
static void listener__caller_sends_a_descriptor__refused(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h;

	hostile_dial(&h, own_address(f), f->listener.qual);
	send_one(&h);
	close(h.fd);
	check_others_work(f);
}

/* CONN-GEN-09: until the consumer has decided */
static void listener__descriptor_after_the_request__refused(void **state)
{
	struct conn_fixture *f = *state;
	struct marked marked;
	struct hostile h;
	DAT_CR_HANDLE cr;

	marked_open(&marked);
	hostile_ask(&h, own_address(f), f->listener.qual);
	cr = dt_request(&f->listener);
	assert_int_equal(hostile_send(&h, "nonsense", 8, &marked.fd, 1), is_old_kernel);
	dt_ok(dat_cr_reject(cr));
	dt_until(is_hung_up, &h);
	assert_false(is_received(&marked));
	hostile_close(&h);
	marked_close(&marked);
	check_others_work(f);
}

/* CR-ACCEPT-01: a peer of our user may send its key table, and memory files later */
static void cr_accept__same_user__takes_descriptors(void **state)
{
	struct conn_fixture *f = *state;
	int fd = sealed_file(4096);
	struct shm_wire_give give = {.key = 5, .length = 4096};
	struct hostile h;

	hostile_connect(&h, f, &f->a);
	/* copy=ring: no key table, and no process number to copy with */
	assert_int_equal(h.answer_fds, is_ring() ? 1 : 2);
	assert_int_equal(h.answer.accept.side.token_address == 0, is_ring());
	put_head(&give.head, SHM_WIRE_MAP_GIVE);
	assert_true(hostile_send(&h, &give, sizeof(give), &fd, 1));
	hostile_word(&h, SHM_WIRE_CLOSE, SHM_WHY_DISCONNECT);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	hostile_close(&h);
	close(fd);
}

/* Asks for the memory behind a key; returns a descriptor of its file, -1 if that is refused. */
static int ask_for_memory(struct hostile *h, uint32_t key)
{
	int fds[SHM_WIRE_FDS_MAX];
	size_t count;

	hostile_word(h, SHM_WIRE_MAP_ASK, key);
	do {
		count = hostile_receive(h, fds);
	} while (h->answer.head.type == SHM_WIRE_WAKE);
	if (h->answer.head.type == SHM_WIRE_MAP_GIVE) {
		assert_int_equal(count, 1);
		return fds[0];
	}
	assert_int_equal(h->answer.head.type, SHM_WIRE_MAP_REFUSE);
	assert_int_equal(count, 0);
	return -1;
}

/* LMR-USE-06 LMR-USE-07: a peer gets memory with the rights of the key */
static void map_ask__key__memory_with_its_rights(void **state)
{
	struct conn_fixture *f = *state;
	DAT_PZ_HANDLE other_zone;
	struct dt_buf fixed, other;
	struct hostile h;
	int fd;

	if (!getenv("DAT_COPY") || strcmp(getenv("DAT_COPY"), "map") != 0)
		skip(); /* the memory is in no file */
	dt_ok(dat_pz_create(f->ia.ia, &other_zone));
	dt_buf_create(&f->ia, f->ia.pz, &fixed, 4096, DAT_MEM_PRIV_REMOTE_READ_FLAG);
	dt_buf_create(&f->ia, other_zone, &other, 4096, DAT_MEM_PRIV_ALL_FLAG);
	hostile_connect(&h, f, &f->a);
	fd = ask_for_memory(&h, f->buf.rkey);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	close(fd);
	fd = ask_for_memory(&h, fixed.rkey);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
	assert_int_equal(ask_for_memory(&h, other.rkey), -1);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0); /* after the peer was accepted */
	assert_int_equal(ask_for_memory(&h, f->buf.rkey), -1);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	hostile_close(&h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_buf_free(&fixed);
	dt_buf_free(&other);
	dt_ok(dat_pz_free(other_zone));
}

struct call {
	struct sockaddr_in address;
	DAT_CONN_QUAL qual;
};

static void call_as_other_user(struct dt_peer *peer, void *arg)
{
	struct call call;
	struct hostile h;

	(void)arg;
	dt_peer_recv(peer, &call, sizeof(call));
	assert_int_equal(setresgid(OTHER_USER, OTHER_USER, OTHER_USER), 0);
	assert_int_equal(setresuid(OTHER_USER, OTHER_USER, OTHER_USER), 0);
	hostile_ask(&h, &call.address, call.qual);
	hostile_take_answer(&h);
	/* not even an address of the process */
	assert_int_equal(h.answer.accept.side.token_address, 0);
	if (!is_old_kernel)
		send_one(&h);
	hostile_word(&h, SHM_WIRE_READY, 0);
	dt_peer_sync(peer);
	send_one(&h);
	dt_peer_sync(peer);
	hostile_close(&h);
}

/* CR-ACCEPT-01 CONN-GEN-09: it is accepted, and may send nothing of that kind */
static void cr_accept__other_user__refused(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	struct call call;
	void *fixture;

	(void)state;
	if (geteuid() != 0)
		skip();
	dt_peer_start(&peer, call_as_other_user, NULL);
	conn_setup(&fixture);
	f = fixture;
	call = (struct call){.address = *own_address(f), .qual = f->listener.qual};
	dt_peer_send(&peer, &call, sizeof(call));
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->a.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_sync(&peer);
	if (is_old_kernel)
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	if (!is_old_kernel)
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	conn_teardown(&fixture);
}

/* Listens as another user for one request. */
static void listen_as_other_user(struct dt_peer *peer, void *arg)
{
	const DAT_CONN_QUAL qual = UINT64_C(1) << 62 | (DAT_CONN_QUAL)getpid();
	struct shm_wire_request packet;
	struct sockaddr_in address;
	struct sockaddr_un name;
	socklen_t len;
	int server, fd;

	(void)arg;
	assert_int_equal(setresuid(OTHER_USER, OTHER_USER, OTHER_USER), 0);
	dt_peer_recv(peer, &address, sizeof(address));
	server = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	len = hostile_name(&address, qual, &name);
	assert_int_equal(bind(server, (struct sockaddr *)&name, len), 0);
	assert_int_equal(listen(server, 8), 0);
	dt_peer_send(peer, &qual, sizeof(qual));
	fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(recv(fd, &packet, sizeof(packet), 0) >= (ssize_t)sizeof(packet.head));
	assert_int_equal(packet.head.type, SHM_WIRE_REQUEST);
	assert_int_equal(packet.side.token_address, 0);
	close(fd);
	close(server);
}

/* EP-CONNECT-22 CONN-GEN-09: a listener of another user learns no address of the process */
static void ep_connect__listener_of_another_user__learns_no_address(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	DAT_CONN_QUAL qual;
	void *fixture;

	(void)state;
	if (geteuid() != 0)
		skip();
	dt_peer_start(&peer, listen_as_other_user, NULL);
	conn_setup(&fixture);
	f = fixture;
	dt_peer_send(&peer, own_address(f), sizeof(*own_address(f)));
	dt_peer_recv(&peer, &qual, sizeof(qual));
	dt_connect(&f->ia, f->a.ep, qual);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_peer_join(&peer);
	conn_teardown(&fixture);
}

struct as {
	uid_t user;
	int is_dumpable;
};

/* Both sides are in this process; it is not trusted. */
static void connect_both_as(struct dt_peer *peer, void *arg)
{
	const struct as *as = arg;
	int fds[SHM_WIRE_FDS_MAX];
	struct conn_fixture *f;
	struct hostile h;
	void *fixture;

	(void)peer;
	assert_int_equal(setresuid(as->user, as->user, as->user), 0);
	assert_int_equal(prctl(PR_SET_DUMPABLE, as->is_dumpable), 0); /* setresuid clears it */
	conn_setup(&fixture);
	f = fixture;
	hostile_ask(&h, own_address(f), f->listener.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->a.ep, 0, NULL));
	assert_int_equal(hostile_receive(&h, fds), 1); /* the segment, and no key table */
	assert_int_equal(h.answer.head.type, SHM_WIRE_ACCEPT);
	assert_int_equal(h.answer.accept.side.token_address, 0);
	close(fds[0]);
	hostile_close(&h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	conn_teardown(&fixture);
}

/* CR-ACCEPT-01: users that a user namespace does not map all look like this one */
static void cr_accept__both_have_the_overflow_user__not_trusted(void **state)
{
	struct as overflow = {OTHER_USER, 1};
	struct dt_peer peer;

	(void)state;
	if (geteuid() != 0)
		skip();
	dt_peer_start(&peer, connect_both_as, &overflow);
	dt_peer_join(&peer);
}

/* CR-ACCEPT-01: a process that the kernel protects from others of its user */
static void cr_accept__process_is_not_dumpable__shares_nothing(void **state)
{
	struct as protected = {geteuid(), 0};
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, connect_both_as, &protected);
	dt_peer_join(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(listener__caller_sends_a_descriptor__refused),
		conn_test(listener__descriptor_after_the_request__refused),
		conn_test(cr_accept__same_user__takes_descriptors),
		conn_test(map_ask__key__memory_with_its_rights),
		cmocka_unit_test(cr_accept__other_user__refused),
		cmocka_unit_test(ep_connect__listener_of_another_user__learns_no_address),
		cmocka_unit_test(cr_accept__both_have_the_overflow_user__not_trusted),
		cmocka_unit_test(cr_accept__process_is_not_dumpable__shares_nothing),
	};
	int failed = 0;

	is_old_kernel = old_kernel_is();
	if (!is_old_kernel) {
		failed = cmocka_run_group_tests_name("this kernel", tests, NULL, NULL);
		old_kernel_make();
		is_old_kernel = true;
	}
	return failed + cmocka_run_group_tests_name("old kernel", tests, NULL, NULL);
}
