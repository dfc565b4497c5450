// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which path a connection takes with the default settings, and what listens: shared memory on this
 * host, TCP to others, and nothing on TCP where nobody else can or may call.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <dat/opendat.h>

#include "stream.h"

#define TCP_LISTEN 10 /* states in /proc/net/tcp */
#define TCP_ESTABLISHED 1
#define TAKEN_PORT 7000u

enum { FIRST, SECOND, HOSTS };

/* --- what the kernel shows --- */

struct socket_count {
	unsigned count;
	unsigned elsewhere; /* of these, not at that address */
};

/* The sockets of this network namespace in that state. `address`: as the file prints it. */
static struct socket_count sockets_in(int wanted, const char *address)
{
	static const char *const files[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
	struct socket_count found = {0};

	for (size_t i = 0; i < COUNT_OF(files); i++) {
		FILE *file = fopen(files[i], "r");
		char line[256];

		assert_non_null(file);
		while (fgets(line, sizeof(line), file)) {
			char local[64], remote[64];
			unsigned state;

			if (sscanf(line, " %*u: %63[^:]:%*x %63[^:]:%*x %x", local, remote,
				   &state) != 3 ||
			    state != (unsigned)wanted)
				continue;
			found.count++;
			found.elsewhere += strcmp(local, address) != 0;
		}
		fclose(file);
	}
	return found;
}

static unsigned entries(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static unsigned threads(void)
{
	return entries("/proc/self/task");
}

static bool has_transport(const struct dt_ia *ia, const char *value)
{
	for (DAT_COUNT i = 0; i < ia->attr.num_transport_attr; i++)
		if (!strcmp(ia->attr.transport_attr[i].name, "transport"))
			return !strcmp(ia->attr.transport_attr[i].value, value);
	return false;
}

static void open_named(struct dt_ia *ia, const char *name)
{
	setenv("DAT_TEST_ADAPTER", name, 1);
	dt_ia_open(ia);
	setenv("DAT_TEST_ADAPTER", NET_ADAPTER, 1);
}

/* --- who listens --- */

static void listen_here(const struct net_host *host)
{
	struct dt_listener listener;
	unsigned before, descriptors;
	struct dt_ia ia;

	(void)host;
	/* other users of this host come over TCP */
	open_named(&ia, "soft-lo");
	assert_true(has_transport(&ia, "auto"));
	dt_listen(&ia, &listener);
	assert_int_equal(sockets_in(TCP_LISTEN, "0100007F").count, 1);
	assert_int_equal(sockets_in(TCP_LISTEN, "0100007F").elsewhere, 0);
	dt_unlisten(&listener);
	dt_ia_close(&ia);

	/* one socket at the adapter's address, one thread; both end with the instance */
	before = threads();
	dt_ia_open(&ia);
	assert_true(has_transport(&ia, "auto"));
	assert_int_equal(threads(), before + 1);
	assert_int_equal(sockets_in(TCP_LISTEN, "").count, 0);
	dt_listen(&ia, &listener);
	assert_int_equal(threads(), before + 2);
	assert_int_equal(sockets_in(TCP_LISTEN, "0100090A").count, 1);
	assert_int_equal(sockets_in(TCP_LISTEN, "0100090A").elsewhere, 0);
	dt_unlisten(&listener);
	assert_int_equal(sockets_in(TCP_LISTEN, "").count, 0);
	dt_ia_close(&ia);

	/* over TCP nobody can show to be of our user; and the setting for this host alone */
	setenv("DAT_PEERS", "user", 1);
	dt_ia_open(&ia);
	assert_true(has_transport(&ia, "shm"));
	dt_listen(&ia, &listener);
	assert_int_equal(sockets_in(TCP_LISTEN, "").count, 0);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
	unsetenv("DAT_PEERS");
	setenv("DAT_TRANSPORT", "shm", 1);
	dt_ia_open(&ia);
	before = threads();
	descriptors = entries("/proc/self/fd");
	dt_listen(&ia, &listener);
	assert_int_equal(sockets_in(TCP_LISTEN, "").count, 0);
	assert_int_equal(threads(), before);
	assert_int_equal(entries("/proc/self/fd"), descriptors + 1);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* IWCM-09: at the adapter's address, and only where others can and may call */
static void psp_create__default__listens_where_needed(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 1, NET_IPV4, listen_here);
	net_join(&net);
}

/* --- which path --- */

static void call(struct dt_ia *ia, const struct net_host *host, unsigned to, DAT_CONN_QUAL qual)
{
	struct sockaddr_storage address;
	struct stream stream;

	net_address(host->family, to, &address);
	stream_create(&stream, ia, 1);
	stream_connect(&stream, &address, qual);
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_true(stream_is_over_tcp(&stream));
	stream_greet(&stream);
	for (unsigned i = 0; i < 3; i++)
		assert_true(stream_lead(&stream));
	dt_ok(dat_ep_disconnect(stream.ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	stream_free(&stream);
}

static void be_called(struct dt_ia *ia, struct dt_listener *listener)
{
	DAT_OPENDAT_PEER peer = {.size = sizeof(peer)};
	DAT_CR_HANDLE cr = dt_request(listener);
	struct stream stream;

	/* told of the request already */
	dt_ok(dat_opendat_peer(cr, &peer));
	assert_int_equal(peer.flags, DAT_OPENDAT_PEER_TCP);
	assert_int_equal(peer.uid, UINT32_MAX);
	assert_int_equal(peer.gid, UINT32_MAX);
	assert_int_equal(peer.pid, 0);
	stream_create(&stream, ia, 1);
	stream_accept(&stream, cr);
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_true(stream_is_over_tcp(&stream));
	stream_greet(&stream);
	for (unsigned i = 0; i < 3; i++)
		assert_true(stream_follow(&stream));
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	stream_free(&stream);
}

/* Both endpoints in this process. */
static void call_myself(struct dt_ia *ia, struct dt_listener *listener)
{
	DAT_OPENDAT_PEER peer = {.size = sizeof(peer)};
	struct dt_ep a, b;

	dt_ep_create(ia, ia->pz, NULL, &a);
	dt_ep_create(ia, ia->pz, NULL, &b);
	dt_connect(ia, a.ep, listener->qual);
	dt_ok(dat_cr_accept(dt_request(listener), b.ep, 0, NULL));
	dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(sockets_in(TCP_ESTABLISHED, "").count, 0);
	dt_ok(dat_opendat_peer(a.ep, &peer));
	assert_int_equal(peer.flags & DAT_OPENDAT_PEER_TCP, 0);
	dt_ok(dat_opendat_peer(b.ep, &peer));
	assert_int_equal(peer.flags & DAT_OPENDAT_PEER_TCP, 0);
	dt_ok(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ep_free(&a);
	dt_ep_free(&b);
}

static void use_both_paths(const struct net_host *host)
{
	struct dt_listener listener;
	uint64_t quals[NET_MAX];
	struct dt_ia ia;

	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	call_myself(&ia, &listener);
	net_exchange(host, listener.qual, quals);
	if (host->index == FIRST)
		be_called(&ia, &listener);
	else
		call(&ia, host, FIRST, quals[FIRST]);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* IWCM-01 IWCM-03 IWCM-04: one service point, called from this host and from another one */
static void connect__default__path_by_address(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, HOSTS, NET_IPV4, use_both_paths);
	net_pass_on(&net);
	net_join(&net);
}

static bool allow_any_address(void)
{
	return net_run("echo 1 2>/dev/null > /proc/sys/net/ipv4/ip_nonlocal_bind");
}

static void bind_any_address(const struct net_host *host)
{
	assert_true(allow_any_address());
	use_both_paths(host);
}

/* IWCM-01: the kernel binds sockets to addresses of other hosts, too */
static void connect__nonlocal_bind__path_by_address(void **state)
{
	struct net net;

	(void)state;
	if (!allow_any_address()) /* on the bridge, where it does nothing */
		skip();
	net_start(&net, HOSTS, NET_IPV4, bind_any_address);
	net_pass_on(&net);
	net_join(&net);
}

/* --- qualifiers --- */

static int take_port(const struct net_host *host, uint16_t port)
{
	struct sockaddr_storage address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	net_address(host->family, host->index, &address);
	((struct sockaddr_in *)&address)->sin_port = htons(port);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void use_qualifiers(const struct net_host *host)
{
	static const DAT_CONN_QUAL quals[] = {1,     7,	    TAKEN_PORT,
					      65535, 65536, UINT64_C(0x123456789abcdef0)};
	uint64_t unused[NET_MAX];
	struct dt_ia ia;

	dt_ia_open(&ia);
	if (host->index == FIRST) {
		int fd = take_port(host, TAKEN_PORT);

		/* ports below 1024 want a privilege */
		assert_int_equal(setresuid(65534, 65534, 65534), 0);
		for (size_t i = 0; i < COUNT_OF(quals); i++) {
			struct dt_listener listener = {.qual = quals[i]};

			listener.evd = dt_evd_create(&ia, 8, DAT_EVD_CR_FLAG);
			dt_ok(dat_psp_create(ia.ia, quals[i], listener.evd, DAT_PSP_CONSUMER_FLAG,
					     &listener.psp));
			net_exchange(host, 0, unused);
			be_called(&ia, &listener);
			dt_unlisten(&listener);
		}
		close(fd);
	} else {
		for (size_t i = 0; i < COUNT_OF(quals); i++) {
			net_exchange(host, 0, unused);
			call(&ia, host, FIRST, quals[i]);
		}
	}
	dt_ia_close(&ia);
}

/* CONN-GEN-10 IWCM-05: no privilege and no free port is needed, also from another host */
static void psp_create__any_qualifier__reached_from_another_host(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, HOSTS, NET_IPV4, use_qualifiers);
	for (unsigned i = 0; i < 6; i++)
		net_pass_on(&net);
	net_join(&net);
}

/* --- without TCP --- */

static void stay_here(const struct net_host *host)
{
	struct sockaddr_storage address;
	struct dt_listener listener;
	uint64_t quals[NET_MAX];
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_EVENT event;

	if (host->index == SECOND)
		setenv("DAT_TRANSPORT", "shm", 1);
	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	net_exchange(host, listener.qual, quals);
	if (host->index == SECOND) {
		dt_ep_create(&ia, ia.pz, NULL, &ep);
		net_address(host->family, FIRST, &address);
		dt_ok(dat_ep_connect(ep.ep, (DAT_IA_ADDRESS_PTR)&address, quals[FIRST], DT_WAIT_US,
				     0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
		event = dt_event(ep.conn);
		assert_true(event.event_number == DAT_CONNECTION_EVENT_UNREACHABLE ||
			    event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		dt_ep_free(&ep);
	}
	net_exchange(host, 0, quals);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* IWCM-02: shared memory alone does not reach another host */
static void connect__transport_shm__other_host_unreachable(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, HOSTS, NET_IPV4, stay_here);
	net_pass_on(&net);
	net_pass_on(&net);
	net_join(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psp_create__default__listens_where_needed),
		cmocka_unit_test(connect__default__path_by_address),
		cmocka_unit_test(connect__nonlocal_bind__path_by_address),
		cmocka_unit_test(psp_create__any_qualifier__reached_from_another_host),
		cmocka_unit_test(connect__transport_shm__other_host_unreachable),
	};

	if (!net_enter())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
