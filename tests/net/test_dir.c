// SPDX-License-Identifier: BSD-2-Clause
/*
 * Hosts that are containers of one machine: each has a network namespace of its own, and they share
 * the directory that the setting socket_dir names.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dat/opendat.h>

#include "ability.h"
#include "copy_path.h"
#include "dir.h"
#include "must.h"
#include "stream.h"

#define ROUNDS 12u /* all lengths of stream.c */
#define QUAL 0x7a6bu

/* --- connections --- */

enum way { OVER_TCP, DIRECT, BY_RING };

typedef void (*counters_fn)(DAT_HANDLE handle, struct copy_path_counts *counts_out);

static struct copy_path_counts counts_of(const struct stream *stream)
{
	counters_fn counters = NULL;
	struct copy_path_counts counts;
	void *library = dlopen("libdat-soft.so.1", RTLD_NOLOAD | RTLD_LAZY);

	assert_non_null(library);
	*(void **)&counters = dlsym(library, "opendat_test_counters");
	assert_non_null(counters);
	counters(stream->ep.ep, &counts);
	dlclose(library);
	return counts;
}

/* The leader's RDMA shows which way the bytes went. */
static void check_way(const struct stream *stream, enum way way)
{
	const struct copy_path_counts counts = counts_of(stream);

	assert_int_equal(stream_is_over_tcp(stream), way == OVER_TCP);
	if (way == BY_RING)
		assert_true(counts.ring > 0);
	else
		assert_int_equal(counts.ring, 0);
	if (way == DIRECT)
		assert_true(counts.cma + counts.map > 0);
	else
		assert_int_equal(counts.cma + counts.map, 0);
}

static void lead(struct dt_ia *ia, const struct net_host *host, DAT_CONN_QUAL qual, enum way way)
{
	struct sockaddr_storage address;
	struct stream stream;

	net_address(host->family, FIRST, &address);
	stream_create(&stream, ia, 1);
	stream_connect(&stream, &address, qual);
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	stream_greet(&stream);
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_true(stream_lead(&stream));
	check_way(&stream, way);
	dt_ok(dat_ep_disconnect(stream.ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	stream_free(&stream);
}

static void follow(struct dt_ia *ia, struct dt_listener *listener, enum way way)
{
	struct stream stream;

	stream_create(&stream, ia, 1);
	stream_accept(&stream, dt_request(listener));
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(stream_is_over_tcp(&stream), way == OVER_TCP);
	stream_greet(&stream);
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_true(stream_follow(&stream));
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	stream_free(&stream);
}

/* Two connections: with copy=ring or not, the second one may find a socket that was kept. */
static void meet(const struct net_host *host, enum way way)
{
	struct dt_listener listener;
	uint64_t quals[NET_MAX];
	struct dt_ia ia;

	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	net_exchange(host, listener.qual, quals);
	for (unsigned i = 0; i < 2; i++) {
		if (host->index == FIRST)
			follow(&ia, &listener, way);
		else
			lead(&ia, host, quals[FIRST], way);
	}
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* --- which path --- */

static void meet_directly(const struct net_host *host)
{
	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	meet(host, DIRECT);
}

static void meet_by_ring(const struct net_host *host)
{
	setenv("DAT_SOCKET_DIR", dir_shared, 1);
	meet(host, BY_RING);
}

/* IWCM-60 IWCM-61: processes of one user that see each other share memory as on one network */
static void connect__shared_directory__over_shared_memory(void **state)
{
	static const char *const copies[] = {"map", "cma"};

	(void)state;
	setenv("DAT_COPY", "ring", 1);
	dir_run(HOSTS, 1, meet_by_ring);
	unsetenv("DAT_COPY");
	ABILITY_NEED_VM_CALLS();
	for (size_t i = 0; i < COUNT_OF(copies); i++) {
		setenv("DAT_COPY", copies[i], 1);
		dir_run(HOSTS, 1, meet_directly);
		unsetenv("DAT_COPY");
	}
}

static void meet_over_tcp(const struct net_host *host)
{
	/* the host that connects has the setting, the other one has not; then the other way round
	 */
	if (host->index == (getenv("LISTENER_SHARES") ? FIRST : SECOND))
		setenv("DAT_SOCKET_DIR", dir_shared, 1);
	meet(host, OVER_TCP);
}

/* IWCM-60: who is not found in the directory, or does not look there, is reached over TCP */
static void connect__one_side_without_directory__over_tcp(void **state)
{
	(void)state;
	dir_run(HOSTS, 1, meet_over_tcp);
	setenv("LISTENER_SHARES", "1", 1);
	dir_run(HOSTS, 1, meet_over_tcp);
	unsetenv("LISTENER_SHARES");
}

static void look_in_vain(const struct net_host *host)
{
	struct dt_listener listener;
	uint64_t unused[NET_MAX];
	struct dt_ia ia;

	setenv("DAT_TRANSPORT", "shm", 1);
	if (host->index == SECOND)
		setenv("DAT_SOCKET_DIR", dir_shared, 1);
	dt_ia_open(&ia);
	if (host->index == FIRST)
		dir_listen(&ia, QUAL, &listener);
	net_exchange(host, 0, unused);
	if (host->index == SECOND)
		dir_expect_unreachable(host, &ia, QUAL);
	net_exchange(host, 0, unused);
	if (host->index == FIRST)
		dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* IWCM-02 IWCM-60: without TCP the peer is unreachable */
static void connect__transport_shm__not_in_directory__unreachable(void **state)
{
	(void)state;
	dir_run(HOSTS, 2, look_in_vain);
}

/* --- containers --- */

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd >= 0);
	must(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* Enters PID, IPC and mount namespaces, and if possible a user namespace: false, errno. */
static bool enter_namespaces(void)
{
	const int most = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS;
	const unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(most | CLONE_NEWUSER) != 0)
		return unshare(most) == 0;
	write_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	write_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	write_text("/proc/self/gid_map", map);
	return true;
}

/* The first process of a PID namespace, which sees the directory under another name. */
static void run_contained(const struct net_host *host, net_fn fn)
{
	must(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	must(mount(dir_shared, dir_place, NULL, MS_BIND, NULL) == 0);
	/* some machines do not allow it; /proc then shows the processes of the machine */
	(void)mount("proc", "/proc", "proc", 0, NULL);
	must(getpid() == 1);
	setenv("DAT_SOCKET_DIR", dir_place, 1);
	fn(host);
	fflush(NULL);
	_exit(0);
}

static void contain(const struct net_host *host, net_fn fn)
{
	int status = 1;
	pid_t pid;

	if (!enter_namespaces()) {
		print_error("no namespaces: %s\n", strerror(errno));
		fail();
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		run_contained(host, fn);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void contained_meet(const struct net_host *host)
{
	meet(host, BY_RING);
}

static void hosts_contained(const struct net_host *host)
{
	contain(host, contained_meet);
}

static void die_or_see_death(const struct net_host *host)
{
	struct dt_listener listener;
	DAT_OPENDAT_PEER peer = {.size = sizeof(peer)};
	struct sockaddr_storage address;
	uint64_t unused[NET_MAX];
	struct dt_ia ia;
	struct dt_ep ep;

	dt_ia_open(&ia);
	if (host->index == FIRST)
		dir_listen(&ia, QUAL, &listener);
	net_exchange(host, 0, unused);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	net_address(host->family, FIRST, &address);
	if (host->index == FIRST)
		dt_ok(dat_cr_accept(dt_request(&listener), ep.ep, 0, NULL));
	else
		dt_ok(dat_ep_connect(ep.ep, (DAT_IA_ADDRESS_PTR)&address, QUAL, DT_WAIT_US, 0, NULL,
				     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_opendat_peer(ep.ep, &peer));
	assert_int_equal(peer.flags, DAT_OPENDAT_PEER_USER | DAT_OPENDAT_PEER_PROVEN);
	net_exchange(host, 0, unused);
	if (host->index == FIRST)
		_exit(0); /* without a word: the name of the service point is left */
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_ep_free(&ep);
	dt_ia_close(&ia);
}

static void death_contained(const struct net_host *host)
{
	contain(host, die_or_see_death);
}

static bool may_be_contained(void)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0) {
		bool is_able = enter_namespaces();
		pid_t inner = is_able ? fork() : -1;

		if (inner == 0)
			_exit(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
			      mount(dir_shared, dir_place, NULL, MS_BIND, NULL));
		_exit(inner < 0 || waitpid(inner, &status, 0) != inner || status != 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* IWCM-61: no process number is known, so all bytes go through the rings */
static void connect__namespaces_of_their_own__by_ring(void **state)
{
	(void)state;
	ABILITY_NEED(may_be_contained(), "no PID and mount namespaces can be made");
	dir_run(HOSTS, 1, hosts_contained);
	setenv("DAT_COPY", "map", 1);
	dir_run(HOSTS, 1, hosts_contained);
	unsetenv("DAT_COPY");
}

/* IWCM-61: the end of the socket alone shows that a peer has died */
static void death__namespaces_of_their_own__broken(void **state)
{
	struct net net;

	(void)state;
	ABILITY_NEED(may_be_contained(), "no PID and mount namespaces can be made");
	net_start(&net, HOSTS, NET_IPV4, death_contained);
	net_pass_on(&net);
	net_pass_on(&net);
	net_join(&net);
	assert_true(dir_has(dir_file(FIRST, QUAL)));
	assert_int_equal(unlink(dir_file(FIRST, QUAL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect__shared_directory__over_shared_memory),
		cmocka_unit_test(connect__one_side_without_directory__over_tcp),
		cmocka_unit_test(connect__transport_shm__not_in_directory__unreachable),
		cmocka_unit_test(connect__namespaces_of_their_own__by_ring),
		cmocka_unit_test(death__namespaces_of_their_own__broken),
	};

	if (!net_enter())
		return 77;
	return cmocka_run_group_tests(tests, dir_make, dir_remove);
}
