// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of connection qualifiers that an unrelated program has bound, or sends to. They must not
 * delay the creation of a service point by more than a second, however many there are.
 * tests/unit/core/test_sp_busy.c checks that time. Here the processors may be busy, and the limit
 * is far below the time for one name after the other.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "dt.h"
#include "lingering.h"

#define FIRST_PORT 40000u
#define PORTS 64u /* all that the kernel chooses from in the private network */
/* odd and in the lower half, where the kernel chooses in any case */
#define FREE_PORT (FIRST_PORT + 21)
#define LINGER_S 2
#define LIMIT_US (PORTS * 200000u * 3 / 4)

/* A network of its own, in which the kernel chooses ports only from a short range. */
static bool enter_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	FILE *range;
	int fd;

	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	range = fopen("/proc/sys/net/ipv4/ip_local_port_range", "w");
	if (!range)
		return false;
	fprintf(range, "%u %u\n", FIRST_PORT, FIRST_PORT + PORTS - 1);
	if (fclose(range) != 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_not_equal(fd, -1);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	return true;
}

/* The name that claims a qualifier; returns its length. */
static socklen_t claim_name(const struct sockaddr_in *own, DAT_CONN_QUAL qual,
			    struct sockaddr_un *name)
{
	char text[INET_ADDRSTRLEN];
	int len;

	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	inet_ntop(AF_INET, &own->sin_addr, text, sizeof(text));
	len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "opendat.tcp.1/%s/%llx",
		       text, (unsigned long long)qual);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int squat(const struct dt_ia *ia, DAT_CONN_QUAL qual)
{
	const struct sockaddr_in *own = (const struct sockaddr_in *)ia->attr.ia_address_ptr;
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	const socklen_t len = claim_name(own, qual, &name);

	assert_int_not_equal(fd, -1);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, len), 0);
	return fd;
}

/* A peer can connect to it. */
static void check_reachable(struct dt_ia *ia, DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual)
{
	DAT_EVENT event;
	struct dt_ep ep;

	dt_ep_create(ia, ia->pz, NULL, &ep);
	dt_connect(ia, ep.ep, qual);
	event = dt_event(evd);
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	dt_ok(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle));
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ep_free(&ep);
}

static void create_among_squatters(struct dt_peer *peer, void *arg)
{
	const bool is_private = enter_network();
	DAT_CONN_QUAL qual = 0;
	int fds[PORTS];
	struct dt_ia ia;
	DAT_EVD_HANDLE evd;
	DAT_PSP_HANDLE psp;
	uint64_t start;

	(void)arg;
	dt_peer_send(peer, &is_private, sizeof(is_private));
	if (!is_private)
		return;
	dt_ia_open(&ia);
	evd = dt_evd_create(&ia, 4, DAT_EVD_CR_FLAG);
	for (unsigned int i = 0; i < PORTS; i++)
		fds[i] = squat(&ia, FIRST_PORT + i);

	start = dt_now_us();
	if (getenv("DAT_HEADER")) {
		dt_fails(dat_psp_create_any(ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp),
			 DAT_CONN_QUAL_UNAVAILABLE);
	} else {
		dt_ok(dat_psp_create_any(ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
		assert_true(qual > UINT16_MAX);
		check_reachable(&ia, evd, qual);
		dt_ok(dat_psp_free(psp));
	}
	assert_true(dt_now_us() - start < LIMIT_US);

	start = dt_now_us();
	dt_fails(dat_psp_create(ia.ia, FIRST_PORT, evd, DAT_PSP_CONSUMER_FLAG, &psp),
		 DAT_CONN_QUAL_IN_USE);
	assert_true(dt_now_us() - start < LIMIT_US);

	close(fds[FREE_PORT - FIRST_PORT]);
	start = dt_now_us();
	dt_ok(dat_psp_create_any(ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	assert_true(dt_now_us() - start < LIMIT_US);
	assert_true(qual == FREE_PORT);
	dt_ok(dat_psp_free(psp));
	dt_ok(dat_evd_free(evd));
	dt_ia_close(&ia);
}

static void run(void)
{
	struct dt_peer peer;
	bool is_private;

	dt_peer_start(&peer, create_among_squatters, NULL);
	dt_peer_recv(&peer, &is_private, sizeof(is_private));
	dt_peer_join(&peer);
	if (!is_private)
		skip(); /* may not make a network namespace */
}

/* PSP-CRANY-02 PSP-CRANY-18 PSP-CREATE-16 */
static void psp_create__names_bound_by_a_stranger__bounded(void **state)
{
	(void)state;
	run();
}

/* PSP-CRANY-02 PSP-CRANY-18 PSP-CREATE-16 */
static void psp_create__transport_tcp__bounded(void **state)
{
	(void)state;
	setenv("DAT_TRANSPORT", "tcp", 1);
	run();
}

/* PSP-CRANY-05: qualifiers above 65535 cannot be connected to with header=off */
static void psp_create_any__header_off__unavailable(void **state)
{
	(void)state;
	setenv("DAT_HEADER", "off", 1);
	run();
}

struct called {
	struct sockaddr_in address;
	DAT_CONN_QUAL qual;
};

/* Sends a descriptor whose last close blocks, if the socket takes it. */
static void send_lingering(int type, const struct sockaddr_un *name, socklen_t len, int fd)
{
	const int sender = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	struct iovec iov = {(char[]){"x"}, 1};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.space = ""};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (connect(sender, (const struct sockaddr *)name, len) == 0)
		(void)sendmsg(sender, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(sender);
}

static void send_descriptors(struct dt_peer *peer, void *arg)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
	struct lingering lingering;
	struct sockaddr_un name;
	struct called called;
	socklen_t len;

	(void)arg;
	dt_peer_recv(peer, &called, sizeof(called));
	len = claim_name(&called.address, called.qual, &name);
	lingering_open(&lingering, LINGER_S);
	for (size_t i = 0; i < COUNT_OF(types); i++)
		send_lingering(types[i], &name, len, lingering.fd);
	close(lingering.fd); /* waits, unless a socket of the other process holds it */
	dt_peer_sync(peer);
	dt_peer_sync(peer);
	lingering_release(&lingering);
}

/* PSP-FREE-06: anybody can send to an abstract name */
static void psp_free__strangers_have_sent_descriptors__does_not_wait(void **state)
{
	struct dt_listener listener;
	struct called called;
	struct dt_peer peer;
	uint64_t start;
	struct dt_ia ia;

	(void)state;
	dt_peer_start(&peer, send_descriptors, NULL);
	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	called.address = *(const struct sockaddr_in *)ia.attr.ia_address_ptr;
	called.qual = listener.qual;
	dt_peer_send(&peer, &called, sizeof(called));
	dt_peer_sync(&peer);
	start = dt_now_us();
	dt_unlisten(&listener);
	assert_true(dt_now_us() - start < LINGER_S * 500000u);
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	dt_ia_close(&ia);
}

static int unset_settings(void **state)
{
	(void)state;
	unsetenv("DAT_TRANSPORT");
	unsetenv("DAT_HEADER");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(psp_create__names_bound_by_a_stranger__bounded,
					  unset_settings),
		cmocka_unit_test_teardown(psp_create__transport_tcp__bounded, unset_settings),
		cmocka_unit_test_teardown(psp_create_any__header_off__unavailable, unset_settings),
		cmocka_unit_test(psp_free__strangers_have_sent_descriptors__does_not_wait),
	};

	return cmocka_run_group_tests_name("qualifier_squat", tests, NULL, NULL);
}
